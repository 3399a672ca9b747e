"""NrLlmHook: the rows of runs, events, history, outcomes and written records, in and out."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from sqlalchemy import insert
from sqlalchemy.engine import Connection
from sqlalchemy.sql import Select

from airflow_provider_nrllm.database.hook import SiteHook
from airflow_provider_nrllm.database.requirements import Requirements
from airflow_provider_nrllm.database.tables import outcome as outcome_table
from airflow_provider_nrllm.database.tables import run as run_table
from airflow_provider_nrllm.database.tables import tables_of_a_derivation
from airflow_provider_nrllm.edits.changes import edit_of_our_fields
from airflow_provider_nrllm.edits.meanings import IgnoredFields
from airflow_provider_nrllm.edits.reading import read_field_changes
from airflow_provider_nrllm.outcomes import recording, statements
from airflow_provider_nrllm.outcomes.lookup import outcome_lookup
from airflow_provider_nrllm.outcomes.pages import Gap, Page, PageKey, RunsOfUuid, SettledRun, page_of_rows
from airflow_provider_nrllm.outcomes.reading import EvidenceReader, runs_with_writes
from airflow_provider_nrllm.outcomes.rules import (
    EXPLICIT,
    OBSERVED,
    Edit,
    ExplicitOutcome,
    ObservedOutcome,
    any_change,
)

CORRELATION_ID_LENGTH = 36

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Outcomes:
    """The outcomes of one correlation id, the two sources apart (ADR-176)."""

    explicit: ExplicitOutcome | None
    observed: ObservedOutcome | None


class NrLlmHook(SiteHook):
    """
    Read runs and the history of what they wrote, and record outcomes.

    Works over any Airflow connection of type ``mysql`` (MariaDB, MySQL), ``postgres`` or ``sqlite``. Writes
    only ``tx_nrllm_call_outcome``; reads no record content, no user id and no approval.

    :param nrllm_conn_id: the Airflow connection to the TYPO3 database
    :param machine_users: the names of TYPO3 users whose changes are a machine's, such as ``_cli_`` or an importer;
        the database compares them, and needs the right to read ``sys_history.userid`` and
        ``be_users (uid, username)``
    """

    hook_name = "nr_llm"

    def __init__(
        self,
        nrllm_conn_id: str = SiteHook.default_conn_name,
        *,
        machine_users: Sequence[str] = (),
        **kwargs: Any,
    ) -> None:
        super().__init__(nrllm_conn_id, **kwargs)
        self.machine_users = tuple(machine_users)
        self.requirements = Requirements(
            tables_of_a_derivation(self.machine_users), inserted=(outcome_table,), locked=(run_table,)
        )

    def pages(
        self, start: int | None, end: int, *, window: int, page_size: int, our_fields: IgnoredFields | None = None
    ) -> Iterator[Page]:
        """
        Yield the settled runs of a partition that have no outcome, page by page, with what happened to their records.

        Reads only. A page costs a fixed number of statements, all in one snapshot that is over before the page
        is yielded. Pages follow time by a key that always advances, also past runs that are not settled. A uuid is
        on one page only, also if nobody records in between.

        :param start: the first second of the partition, None for all that settled before its end
        :param end: the first second after it, not in the future
        :param window: how long a record is watched after a write, in seconds
        :param page_size: the most runs on a page
        :param our_fields: None: any change is an edit, as ADR-185 decides; else only a change of a field that the
            run set, apart from these fields
        """
        reader = EvidenceReader(window, self.machine_users)
        first = 0 if start is None else start

        def follow(
            rows_after: Callable[[str, PageKey, int], Select[Any]],
            key: PageKey | None,
            last_key: Callable[[RunsOfUuid], PageKey],
            lag: int,
        ) -> Iterator[Page]:
            # The last rows of uuids that the pages have met and not reached yet: they are read again only there.
            ahead: dict[str, PageKey] = {}
            while key is not None:
                with self.database.snapshot() as connection:
                    query = rows_after(connection.dialect.name, key, 2 * page_size + 1)
                    rows, key = page_of_rows(connection.execute(query).fetchall(), page_size)
                    if not rows:
                        return
                    keys = {(at, uid) for at, uid, _ in rows}
                    # Several runs may share a uuid, and a run has many writes: the last of their rows counts.
                    uuids = {uuid for _, _, uuid in rows if uuid not in ahead or ahead[uuid] in keys}
                    settled = []
                    for runs in runs_with_writes(connection, uuids):
                        if (last := last_key(runs)) not in keys:
                            ahead[runs.uuid] = last
                            continue
                        ahead.pop(runs.uuid, None)
                        at = runs.settled_at(window)
                        if at is not None and first <= at < end:
                            settled.append((runs, at))
                    page = self._page(connection, reader, settled, our_fields, rows[-1][0] + lag)
                if settled:
                    yield page

        with self.database.keeping_a_connection():
            with self.database.snapshot() as connection:
                self.database.require_row_locks(connection)
                lookup = outcome_lookup(connection)
                if self.machine_users:
                    self._warn_of_unknown_users(connection)
            # A run settles when its last write closes ...
            by_write = partial(statements.writes_after, before=end - window, lookup=lookup)
            yield from follow(by_write, (first - window, 0), RunsOfUuid.last_write, window)
            # ... or when it ends after that.
            if start is not None:
                by_end = partial(statements.late_ends, before=end, written_before=start - window, lookup=lookup)
                yield from follow(by_end, (start, 0), RunsOfUuid.last_end, 0)

    def gap_before(self, start: int, *, window: int) -> Gap:
        """
        Return how many runs settled before a partition and have no outcome. Reads only.

        A statement looks at the runs made in the window before those of the partition, so that it costs what a few
        partitions cost. Only if one of them has no outcome, a second one counts all there are.

        :param start: the first second of the partition
        :param window: how long a record is watched after a write, in seconds
        """
        with self.database.snapshot() as connection:
            lookup = outcome_lookup(connection)
            for made_from in (start - 2 * window, 0):
                query = statements.settled_without_outcome(
                    connection.dialect.name, start, window, lookup, made_from=made_from
                )
                runs, since = connection.execute(query).one()
                if not runs:
                    return Gap()
        return Gap(int(runs), int(since))

    @staticmethod
    def _page(
        connection: Connection,
        reader: EvidenceReader,
        settled: Sequence[tuple[RunsOfUuid, int]],
        our_fields: IgnoredFields | None,
        reached: int,
    ) -> Page:
        """Return the page of some settled runs."""
        seen = reader.aftermaths(connection, (write for runs, _ in settled for write in runs.writes))
        found, refused = [], []
        for runs, at in settled:
            tables = {write.target.table for write in runs.writes if write.target}
            if denied := tables & reader.refused_tables:
                refused.append((runs.uuid, min(denied)))
            else:
                aftermaths = tuple(seen[write.uid] for write in runs.writes)
                targets = tuple(write.target for write in runs.writes)
                found.append(SettledRun(runs.uuid, tuple(run.uid for run in runs.runs), at, aftermaths, targets))
        edit: Edit = any_change
        if our_fields is not None:
            changes = read_field_changes(connection, filter(None, seen.values()), our_fields)
            edit = edit_of_our_fields(changes, our_fields)
        return Page(tuple(found), reached, edit, reader.present_tables, tuple(refused))

    def _warn_of_unknown_users(self, connection: Connection) -> None:
        query = statements.machine_users_found(connection.dialect.name, self.machine_users)
        found = int(connection.execute(query).scalar_one())
        if found < len(set(self.machine_users)):
            self.log.warning(
                "machine_users names %d TYPO3 users, of which be_users has %d: check how they are spelled.",
                len(set(self.machine_users)), found,
            )  # fmt: skip

    def record_observed(self, runs: Sequence[SettledRun], outcomes: Mapping[str, ObservedOutcome]) -> list[SettledRun]:
        """
        Record the observed outcomes of a page in one transaction, and return the runs that got one.

        The transaction locks the run rows in the order of their uids, looks again which runs are unanswered,
        and inserts in one statement. Safe to repeat and to run twice at once: an observed outcome is final,
        and a run that has one is passed over (ADR-176).

        :param runs: the runs of the page
        :param outcomes: their outcomes by uuid
        """

        def record_locked(connection: Connection) -> tuple[list[SettledRun], list[SettledRun]]:
            uids = [uid for run in runs for uid in run.run_uids]
            locked = set(connection.execute(recording.lock_runs(uids)).scalars()) if uids else set()
            there = [run for run in runs if not locked.isdisjoint(run.run_uids)]
            purged = [run for run in runs if locked.isdisjoint(run.run_uids)]
            unanswered = self._unanswered(connection, there)
            if unanswered:
                by_outcome: dict[str, list[int]] = {}
                for run in unanswered:
                    # Of several that share the uuid, one that is there.
                    there_is = next(uid for uid in run.run_uids if uid in locked)
                    by_outcome.setdefault(str(outcomes[run.uuid]), []).append(there_is)
                connection.execute(recording.insert_observed(by_outcome, int(time.time())))
            return unanswered, purged

        # A page is recorded again while it is in hand: a purge beside it may take what it was read from.
        recorded, purged = self._write(record_locked)
        if purged:
            # A purge took these runs after their evidence was read. There is no row to lock any more.
            recorded += self._write(partial(self._record_purged, runs=purged, outcomes=outcomes), "SERIALIZABLE")
        return recorded

    def _write(self, work: Callable[[Connection], T], isolation_level: str = "READ COMMITTED") -> T:
        """Do some work on outcomes in one transaction; where nodes do not share locks, one of them at a time."""

        def claimed(connection: Connection) -> T:
            if self.database.is_cluster():
                for statement in recording.claim_outcomes():
                    connection.execute(statement)
            return work(connection)

        return self.database.write(claimed, isolation_level)

    @staticmethod
    def _unanswered(connection: Connection, runs: Sequence[SettledRun]) -> list[SettledRun]:
        if not runs:
            return []
        query = recording.observed_of(connection.dialect.name, [run.uuid for run in runs])
        answered = set(connection.execute(query).scalars())
        return [run for run in runs if run.uuid not in answered]

    def _record_purged(
        self, connection: Connection, runs: Sequence[SettledRun], outcomes: Mapping[str, ObservedOutcome]
    ) -> list[SettledRun]:
        unanswered = self._unanswered(connection, runs)
        if unanswered:
            rows = recording.outcome_rows({run.uuid: outcomes[run.uuid] for run in unanswered}, int(time.time()))
            connection.execute(insert(outcome_table), rows)
        return unanswered

    def record_explicit(self, correlation_id: str, outcome: str) -> None:
        """
        Record a person's rating: it replaces the earlier explicit outcome and leaves the observed one alone.

        One transaction, safe to repeat. Of two at once for one correlation id, the later one stays. What the
        database refuses because of another transaction, for another id too, is tried again a few times (ADR-176).

        :param correlation_id: a run's uuid, or the correlation id of a call without a run
        :param outcome: ``helpful`` or ``not_helpful``
        :raises ValueError: for an empty correlation id or one longer than 36 characters, and for any other outcome
        """
        if not correlation_id or len(correlation_id) > CORRELATION_ID_LENGTH:
            raise ValueError(
                f"correlation_id has {len(correlation_id or '')} characters; expected 1 to {CORRELATION_ID_LENGTH}"
            )
        try:
            rating = ExplicitOutcome(outcome)
        except ValueError:
            expected = " or ".join(ExplicitOutcome)
            raise ValueError(f"outcome is {outcome!r}; expected {expected}: observed outcomes are derived") from None

        def replace_rating(connection: Connection) -> None:
            connection.execute(recording.delete_ratings(connection.dialect.name, correlation_id))
            connection.execute(
                insert(outcome_table), recording.outcome_rows({correlation_id: rating}, int(time.time()))
            )

        self._write(replace_rating, "SERIALIZABLE")

    def outcomes(self, correlation_id: str) -> Outcomes:
        """
        Return what is known of a correlation id. A value this version does not know is skipped.

        :param correlation_id: a run's uuid, or the correlation id of a call without a run
        """
        with self.database.snapshot() as connection:
            query = recording.outcomes_of(connection.dialect.name, correlation_id)
            values = connection.execute(query).scalars().all()
        explicit = [ExplicitOutcome(value) for value in values if value in EXPLICIT]
        observed = [ObservedOutcome(value) for value in values if value in OBSERVED]
        # A rating is replaced, so the last one holds; an observed outcome is final, so the first one does.
        return Outcomes(explicit[-1] if explicit else None, observed[0] if observed else None)
