"""Reading runs with their writes, and the evidence on those: who else wrote the records, their history, their state."""

from __future__ import annotations

from bisect import insort
from collections.abc import Collection, Iterable, Mapping, Sequence

from sqlalchemy.engine import Connection

from airflow_provider_nrllm.database.catalog import WrittenTables
from airflow_provider_nrllm.database.conditions import slices
from airflow_provider_nrllm.database.tables import INSTEAD_OF_RECORD_COLUMNS, RECORD_COLUMNS
from airflow_provider_nrllm.outcomes import statements
from airflow_provider_nrllm.outcomes.evidence import (
    MISSING,
    OWN_ROW_AGE,
    Evidence,
    HistoryRow,
    Record,
    Target,
    Write,
    record_of,
    relevant_span,
)
from airflow_provider_nrllm.outcomes.lookup import Lookup
from airflow_provider_nrllm.outcomes.pages import RunsOfUuid
from airflow_provider_nrllm.outcomes.payloads import target_of
from airflow_provider_nrllm.outcomes.rules import Aftermath, Run, aftermath
from airflow_provider_nrllm.outcomes.spans import Span, lacking, merged


def runs_with_writes(connection: Connection, uuids: Collection[str]) -> list[RunsOfUuid]:
    """Return the runs of each of the uuids with all they wrote, by two statements; a uuid without a run is left out."""
    if not uuids:
        return []
    wanted = frozenset(uuids)
    runs: dict[str, list[Run]] = {}
    uuid_of: dict[int, str] = {}
    for row in connection.execute(statements.runs_of(connection.dialect.name, wanted)):
        run = Run(*row)
        # The collations of MySQL and MariaDB also find a uuid that differs in case.
        if run.uuid in wanted:
            runs.setdefault(run.uuid, []).append(run)
            uuid_of[run.uid] = run.uuid
    writes: dict[str, list[Write]] = {uuid: [] for uuid in runs}
    for some in slices(uuid_of):
        for run_uid, at, uid, payload in connection.execute(statements.writes_of(connection.dialect.name, some)):
            writes[uuid_of[run_uid]].append(Write(at, uid, run_uid, target_of(payload)))
    return [RunsOfUuid(uuid, tuple(same), tuple(writes[uuid])) for uuid, same in runs.items()]


def read_times(
    connection: Connection, spans: Sequence[Span], unanswered_by: Lookup | None = None
) -> dict[Target, list[int]]:
    """
    Return when each record was written in the spans, in order, by one statement.

    :param unanswered_by: how outcomes are to be found; only by runs that have none yet
    """
    times: dict[Target, list[int]] = {}
    query = statements.writes_in(connection.dialect.name, spans, unanswered_by)
    for at, payload in connection.execute(query).fetchall():
        target = target_of(payload)
        if target is not None:
            insort(times.setdefault(target, []), at)
    return times


def read_histories(
    connection: Connection, targets: Iterable[Target], near: Span | None, machine_users: Sequence[str]
) -> dict[Target, list[HistoryRow]]:
    """
    Return the history of the records that have one.

    :param near: of the rows that end, publish or draft nothing only those in this span; None: all
    :param machine_users: the names of TYPO3 users whose rows are a machine's
    """
    # Most of what a derivation reads. A Target for each row would take as long as all else with it; as a
    # key it is the same as its tuple. Fetched many at a time, rows take half as long as one by one.
    rows: dict[tuple[str, int], list[HistoryRow]] = {}
    wanted = list(targets)
    for some in slices(wanted):
        query = statements.history_of(connection.dialect.name, some, near, machine_users)
        for fetched in connection.execute(query).partitions(1000):
            for table, uid, stamp, row_uid, action, workspace, by_editor in fetched:
                row = HistoryRow(stamp, row_uid, action, workspace, by_editor)
                if (key := (table, uid)) in rows:
                    rows[key].append(row)
                else:
                    rows[key] = [row]
    # The collations of MySQL and MariaDB also find a name that differs in case.
    return {target: rows[target] for target in wanted if target in rows}


class MachineWrites:
    """
    When any run wrote which record, kept while pages follow time.

    Any run counts: one that still goes on, is answered, or has no uuid (ADR-185). A page reads only the
    spans that the page before has not read; what no later page needs is forgotten, so that memory holds
    about one window of writes, whatever the partition.
    """

    def __init__(self) -> None:
        self._known: list[Span] = []
        self._times: dict[Target, list[int]] = {}
        self._size = self._size_when_last_forgotten = 0

    def read(self, connection: Connection, needed: list[Span]) -> None:
        """
        Read the writes in the needed spans, with one statement at most.

        :param needed: merged
        """
        self._forget_before(needed[0][0])
        lack = lacking(needed, self._known)
        self._known = merged([*self._known, *lack])
        if not lack:
            return
        for target, times in read_times(connection, lack).items():
            known = self._times.setdefault(target, [])
            known += times
            known.sort()
            self._size += len(times)

    def of(self, target: Target) -> list[int]:
        """Return when a record was written, in order; there may be more times than matter."""
        return self._times.get(target, [])

    def _forget_before(self, first: int) -> None:
        """Forget what is older, once that is worth a pass over all that is kept."""
        if self._size < 2 * self._size_when_last_forgotten + 1000:
            return
        kept = {target: [at for at in times if at >= first] for target, times in self._times.items()}
        self._times = {target: times for target, times in kept.items() if times}
        self._known = [(max(known, first), last) for known, last in self._known if last >= first]
        self._size = self._size_when_last_forgotten = sum(map(len, self._times.values()))


class EvidenceReader:
    """
    Reads the evidence on what the runs of a page wrote, in a fixed number of statements.

    :param window: how long a record is watched after a write, in seconds
    :param machine_users: the names of TYPO3 users whose rows are a machine's
    """

    def __init__(self, window: int, machine_users: Sequence[str] = ()) -> None:
        self.window = window
        self.machine_users = machine_users
        self._machine_writes = MachineWrites()
        self._written_tables = WrittenTables(("uid", *RECORD_COLUMNS), INSTEAD_OF_RECORD_COLUMNS)

    @property
    def present_tables(self) -> frozenset[str]:
        """The tables that were written, as far as they are there."""
        return self._written_tables.present

    @property
    def refused_tables(self) -> frozenset[str]:
        """The tables that were written and may not be read."""
        return self._written_tables.refused

    def aftermaths(self, connection: Connection, writes: Iterable[Write]) -> dict[int, Aftermath | None]:
        """
        Return what happened after each of the writes, by the uid of its event; computed once a write.

        It is None for a write that names no record that can be read, or one in a table that may not be read.

        :param connection: in the snapshot of the page
        """
        writes = list(writes)
        evidence = self._evidence(connection, [write for write in writes if write.target])
        return {
            write.uid: aftermath(write.at, evidence[write.target], self.window) if write.target in evidence else None
            for write in writes
        }

    def _evidence(self, connection: Connection, writes: Sequence[Write]) -> dict[Target | None, Evidence]:
        """Return the evidence on each record that was written, unless its table may not be read."""
        states = self._records(connection, {write.target for write in writes if write.target})
        writes = [write for write in writes if write.target in states]
        if not writes:
            return {}
        needed = merged(relevant_span(write.at, self.window) for write in writes)
        self._machine_writes.read(connection, needed)
        # Who looks at the span of an event also looks at the rows that it may own.
        near = (needed[0][0] - OWN_ROW_AGE, needed[-1][1])
        evidence = self._with_history(connection, states, near)
        # Nothing near shows that the history reaches back to these writes, or what the last end was; older rows may.
        unsure = {
            write.target: states[write.target]
            for write in writes
            if write.target and evidence[write.target].needs_rows_before(near[0], write.at)
        }
        if unsure:
            evidence |= self._with_history(connection, unsure)
        return evidence

    def _with_history(
        self, connection: Connection, states: Mapping[Target, Record], near: Span | None = None
    ) -> dict[Target | None, Evidence]:
        rows = read_histories(connection, states, near, self.machine_users)
        return {
            target: Evidence(rows.get(target, ()), self._machine_writes.of(target), state)
            for target, state in states.items()
        }

    def _records(self, connection: Connection, targets: Collection[Target]) -> dict[Target, Record]:
        """
        Return the state of the records, none for those in a table that may not be read.

        A record without a row, or in a table that does not exist, is missing (ADR-185).
        """
        columns = self._written_tables.read(connection, {target.table for target in targets})
        states = {target: MISSING for target in targets if target.table not in self.refused_tables}
        # One statement on any site but one with hundreds of tables, or thousands of records, written at once.
        for some in slices(target for target in targets if target.table in self.present_tables):
            uids = statements.uids_by_table(some)
            for names in slices(uids, statements.TABLES_AT_ONCE):
                query = statements.records({name: uids[name] for name in names}, columns)
                for table, uid, deleted, tstamp, workspace in connection.execute(query):
                    states[Target(table, uid)] = record_of(deleted=deleted, tstamp=tstamp, workspace=workspace)
        return states
