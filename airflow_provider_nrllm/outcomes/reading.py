"""Reading the evidence of a page: who else wrote its records, their history, and whether they are there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sqlalchemy.engine import Connection

from airflow_provider_nrllm.database.catalog import WrittenTables
from airflow_provider_nrllm.database.tables import RECORD_COLUMNS
from airflow_provider_nrllm.outcomes import statements
from airflow_provider_nrllm.outcomes.evidence import (
    MISSING,
    OWN_ROW_AGE,
    Event,
    Evidence,
    History,
    HistoryRow,
    Record,
    Stretch,
    Target,
    Write,
    lacking,
    merged,
    record_of,
    stretch_of_account,
    target_of,
)
from airflow_provider_nrllm.outcomes.rules import Aftermath, aftermath


class MachineWrites:
    """
    The writes of all runs that are of account for a page, kept while pages follow time.

    Any run counts: one that still goes on, is answered, or has no uuid (ADR-185). A page reads only the
    stretches that the page before has not read; what no later page needs is forgotten, so that memory holds
    about one window of writes, whatever the partition.
    """

    def __init__(self) -> None:
        self._known: list[Stretch] = []
        self._events: dict[Target, list[Event]] = {}
        self._size = self._size_when_last_forgotten = 0

    def read(self, connection: Connection, needed: list[Stretch]) -> None:
        """
        Read the writes in the needed stretches, with one statement at most.

        :param needed: merged
        """
        self._forget_before(needed[0][0])
        lack = lacking(needed, self._known)
        self._known = merged([*self._known, *lack])
        if not lack:
            return
        touched = set()
        for at, uid, payload in connection.execute(statements.writes_in(lack)).fetchall():
            target = target_of(payload)
            if target is not None:
                self._events.setdefault(target, []).append(Event(at, uid))
                touched.add(target)
                self._size += 1
        for target in touched:
            self._events[target].sort()

    def of(self, target: Target) -> list[Event]:
        """Return the events that wrote a record, in order; there may be more than are of account."""
        return self._events.get(target, [])

    def _forget_before(self, first: int) -> None:
        """Forget what is older, once that is worth a pass over all that is kept."""
        if self._size < 2 * self._size_when_last_forgotten + 1000:
            return
        kept = {target: [event for event in events if event.at >= first] for target, events in self._events.items()}
        self._events = {target: events for target, events in kept.items() if events}
        self._known = [(max(known, first), last) for known, last in self._known if last >= first]
        self._size = self._size_when_last_forgotten = sum(map(len, self._events.values()))


class EvidenceReader:
    """
    Reads the evidence on what the runs of a page wrote, in a fixed number of statements.

    :param window: how long a record is watched after a write, in seconds
    """

    def __init__(self, window: int) -> None:
        self.window = window
        self._machine_writes = MachineWrites()
        self._written_tables = WrittenTables(("uid", *RECORD_COLUMNS))

    def aftermaths(self, connection: Connection, writes: Iterable[Write]) -> dict[Write, Aftermath]:
        """
        Return what happened after each of the writes that name a record.

        :param connection: in the snapshot of the page
        """
        targets = {write: write.target for write in writes if write.target is not None}
        found = self._evidence(connection, targets)
        return {write: aftermath(write.event, found[target], self.window) for write, target in targets.items()}

    def _evidence(self, connection: Connection, targets_of: Mapping[Write, Target]) -> dict[Target, Evidence]:
        if not targets_of:
            return {}
        targets = set(targets_of.values())
        needed = merged(stretch_of_account(write.event, self.window) for write in targets_of)
        self._machine_writes.read(connection, needed)
        # Who looks at the stretch of account also looks at the own rows of the first events in it.
        histories = self._histories(connection, targets, (needed[0][0] - OWN_ROW_AGE, needed[-1][1]))
        # Nothing near shows that the history reaches back to these writes; something older may.
        unsure = {
            target for write, target in targets_of.items() if not histories[target].reaches_back_to(write.event.at)
        }
        if unsure:
            histories |= self._histories(connection, unsure)
        states = self._records(connection, targets)
        return {
            target: Evidence(histories[target], self._machine_writes.of(target), states.get(target, MISSING))
            for target in targets
        }

    @staticmethod
    def _histories(connection: Connection, targets: set[Target], near: Stretch | None = None) -> dict[Target, History]:
        # Most of what a derivation reads. A Target for each row would take as long as all else with it; as a
        # key it is the same as its tuple. Fetched many at a time, rows take half as long as one by one.
        rows: dict[tuple[str, int], list[HistoryRow]] = {}
        for some in connection.execute(statements.history_of(targets, near)).partitions(1000):
            for table, uid, stamp, row_uid, action, workspace in some:
                rows.setdefault((table, uid), []).append(HistoryRow(stamp, row_uid, action, workspace))
        # The collations of MySQL and MariaDB also find a name that differs in case.
        return {target: History(rows.get(target, ())) for target in targets}

    def _records(self, connection: Connection, targets: set[Target]) -> Mapping[Target, Record]:
        """Return the state of the records that have a row; a table that does not exist has none (ADR-185)."""
        uids = statements.uids_by_table(targets)
        columns = self._written_tables.read(connection, uids)
        present = [table for table in uids if "uid" in columns.get(table, ())]
        states: dict[Target, Record] = {}
        # One statement on any site but one with hundreds of tables that are all written at once.
        for position in range(0, len(present), statements.TABLES_AT_ONCE):
            some = {table: uids[table] for table in present[position : position + statements.TABLES_AT_ONCE]}
            for table, uid, deleted, tstamp, workspace in connection.execute(statements.records(some, columns)):
                states[Target(table, uid)] = record_of(deleted=deleted, tstamp=tstamp, workspace=workspace)
        return states
