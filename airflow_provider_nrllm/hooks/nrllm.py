"""NrLlmHook: the rows of runs, events, history, outcomes and written records, in and out."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

from airflow.providers.common.compat.sdk import BaseHook
from sqlalchemy import insert
from sqlalchemy.engine import Connection
from sqlalchemy.sql import Select

from airflow_provider_nrllm.database.site import SiteDatabase
from airflow_provider_nrllm.database.tables import DERIVATION_TABLES
from airflow_provider_nrllm.database.tables import outcome as outcome_table
from airflow_provider_nrllm.edits.field_names import read_field_names
from airflow_provider_nrllm.edits.meanings import FieldLists, edit_of_our_fields
from airflow_provider_nrllm.outcomes import statements
from airflow_provider_nrllm.outcomes.evidence import Event, Write, target_of
from airflow_provider_nrllm.outcomes.lookup import outcome_lookup
from airflow_provider_nrllm.outcomes.pages import Page, SettledRun
from airflow_provider_nrllm.outcomes.reading import EvidenceReader
from airflow_provider_nrllm.outcomes.rules import Edit, ExplicitOutcome, ObservedOutcome, Run, any_change, settled_at
from airflow_provider_nrllm.outcomes.statements import Key

CORRELATION_ID_LENGTH = 36
EXPLICIT_VALUES = frozenset(statements.EXPLICIT)
OBSERVED_VALUES = frozenset(statements.OBSERVED)


@dataclass(frozen=True, slots=True)
class Outcomes:
    """What is known of one correlation id, the two sources apart (ADR-176)."""

    explicit: ExplicitOutcome | None
    observed: ObservedOutcome | None


class NrLlmHook(BaseHook):
    """
    Read runs and the history of what they wrote, and record outcomes.

    Works over any Airflow connection of type ``mysql`` (MariaDB, MySQL), ``postgres`` or ``sqlite``. Writes
    only ``tx_nrllm_call_outcome``; reads no record content, no user id and no approval.

    :param nrllm_conn_id: the Airflow connection to the TYPO3 database
    """

    conn_name_attr = "nrllm_conn_id"
    default_conn_name = "nrllm_default"
    hook_name = "nr_llm"

    def __init__(self, nrllm_conn_id: str = default_conn_name, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.nrllm_conn_id = nrllm_conn_id

    @cached_property
    def database(self) -> SiteDatabase:
        """The database behind the connection."""
        return SiteDatabase(self.nrllm_conn_id, required=DERIVATION_TABLES)

    def get_conn(self) -> Any:
        """Return a plain DB-API connection, as the Airflow hook of the connection opens it."""
        return self.database.engine.raw_connection()

    def test_connection(self) -> tuple[bool, str]:
        """Tell whether the tables and columns are there, and name what is missing."""
        try:
            missing = self.database.missing()
        except Exception as error:
            return False, "\n".join([str(error), *getattr(error, "__notes__", ())])
        if missing:
            return False, self.database.explain_missing(missing)
        return (
            True,
            f"Connection {self.nrllm_conn_id!r}: all tables and columns that a derivation needs are there. "
            "Whether its user may read and write them, the first derivation tells.",
        )

    def pages(
        self, start: int | None, end: int, *, window: int, page_size: int, our_fields: FieldLists | None = None
    ) -> Iterator[Page]:
        """
        Yield the settled and unanswered runs of a partition, page by page, with the evidence on what they wrote.

        Reads only. A page costs a fixed number of statements, all in one snapshot that is over before the page
        is yielded. Pages follow time by a key that always advances, also past runs that are not settled; so a
        page may be empty.

        :param start: the first second of the partition, None for all that settled before its end
        :param end: the first second after it, not in the future
        :param window: how long a record is watched after a write, in seconds
        :param page_size: the most runs on a page
        :param our_fields: None: any change is an edit, as ADR-185 decides; else only a change of a field that the
            run set, by these lists of fields that are about no text
        """
        evidence = EvidenceReader(window)
        first = 0 if start is None else start

        def follow(rows_after: Callable[[str, Key, int], Select[Any]], key: Key | None, lag: int) -> Iterator[Page]:
            while key is not None:
                with self.database.snapshot() as connection:
                    query = rows_after(connection.dialect.name, key, page_size + 1)
                    rows = connection.execute(query).fetchall()
                    key = (rows[page_size - 1][0], rows[page_size - 1][1]) if len(rows) > page_size else None
                    rows = rows[:page_size]
                    if not rows:
                        return
                    runs = [
                        run
                        for run in self._settled(connection, {uuid for _, _, uuid in rows}, window)
                        if first <= run.settled < end
                    ]
                    seen = evidence.aftermaths(connection, (write for run in runs for write in run.writes))
                    edit: Edit = any_change
                    if our_fields is not None:
                        edit = edit_of_our_fields(read_field_names(connection, seen.values()), our_fields)
                yield Page(tuple(runs), seen, reached=rows[-1][0] + lag, edit=edit)

        with self.database.snapshot() as connection:
            lookup = outcome_lookup(connection)
        # A run settles when its last write closes ...
        by_last_write = partial(statements.last_writes, before=end - window, lookup=lookup)
        yield from follow(by_last_write, (first - window, 0), window)
        # ... or when it ends after that.
        if start is not None:
            by_end = partial(statements.late_ends, before=end, written_before=start - window, lookup=lookup)
            yield from follow(by_end, (start, 0), 0)

    @staticmethod
    def _settled(connection: Connection, uuids: set[str], window: int) -> Iterator[SettledRun]:
        """Yield those of the uuids whose runs have all ended, with the writes of all of them pooled (ADR-185)."""
        runs: dict[str, list[Run]] = {}
        uuid_of: dict[int, str] = {}
        for uid, uuid, status, finished_at in connection.execute(statements.runs_of(uuids)):
            if uuid in uuids:
                runs.setdefault(uuid, []).append(Run(uid, uuid, status, finished_at or 0))
                uuid_of[uid] = uuid
        writes: dict[str, list[Write]] = {}
        for run_uid, at, uid, payload in connection.execute(statements.writes_of(uuid_of)):
            writes.setdefault(uuid_of[run_uid], []).append(Write(Event(at, uid), target_of(payload)))
        for uuid, same in runs.items():
            settled = settled_at(same, writes.get(uuid, ()), window)
            if settled is not None:
                yield SettledRun(uuid, tuple(run.uid for run in same), settled, tuple(writes[uuid]))

    def record_observed(self, runs: Sequence[SettledRun], outcomes: Mapping[str, ObservedOutcome]) -> list[SettledRun]:
        """
        Record the observed outcomes of a page in one transaction, and return the runs that got one.

        The transaction locks the run rows in the order of their uids, looks again which runs are unanswered,
        and inserts in one statement. Safe to repeat and to run twice at once: an observed outcome is final,
        and a run that has one is passed over (ADR-176).

        :param runs: the runs of the page
        :param outcomes: their outcomes by uuid
        """
        with self.database.transaction() as connection:
            uids = [uid for run in runs for uid in run.run_uids]
            locked = set(connection.execute(statements.lock_runs(uids)).scalars()) if uids else set()
            there = [run for run in runs if not locked.isdisjoint(run.run_uids)]
            recorded = self._insert_unanswered(connection, there, outcomes)
        purged = [run for run in runs if locked.isdisjoint(run.run_uids)]
        if purged:
            # A purge took these runs after their evidence was read. There is no row to lock any more.
            with self.database.transaction("SERIALIZABLE") as connection:
                recorded += self._insert_unanswered(connection, purged, outcomes)
        return recorded

    @staticmethod
    def _insert_unanswered(
        connection: Connection, runs: Sequence[SettledRun], outcomes: Mapping[str, ObservedOutcome]
    ) -> list[SettledRun]:
        if not runs:
            return []
        query = statements.observed_of(connection.dialect.name, [run.uuid for run in runs])
        answered = set(connection.execute(query).scalars())
        unanswered = [run for run in runs if run.uuid not in answered]
        if unanswered:
            rows = statements.outcome_rows({run.uuid: outcomes[run.uuid] for run in unanswered}, int(time.time()))
            connection.execute(insert(outcome_table), rows)
        return unanswered

    def record_explicit(self, correlation_id: str, outcome: str) -> None:
        """
        Record a person's rating: it replaces the earlier explicit outcome and leaves the observed one alone.

        One transaction, safe to repeat. Of two at once for one correlation id, the later one stays, or the
        database refuses one of them with a serialization failure or a deadlock, to be tried again (ADR-176).

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
        with self.database.transaction("SERIALIZABLE") as connection:
            connection.execute(statements.delete_ratings(connection.dialect.name, correlation_id))
            connection.execute(
                insert(outcome_table), statements.outcome_rows({correlation_id: rating}, int(time.time()))
            )

    def outcomes(self, correlation_id: str) -> Outcomes:
        """
        Return what is known of a correlation id. A value this version does not know is skipped.

        :param correlation_id: a run's uuid, or the correlation id of a call without a run
        """
        with self.database.snapshot() as connection:
            query = statements.outcomes_of(connection.dialect.name, correlation_id)
            values = connection.execute(query).scalars().all()
        explicit = [ExplicitOutcome(value) for value in values if value in EXPLICIT_VALUES]
        observed = [ObservedOutcome(value) for value in values if value in OBSERVED_VALUES]
        # A rating is replaced, so the last one holds; an observed outcome is final, so the first one does.
        return Outcomes(explicit[-1] if explicit else None, observed[0] if observed else None)
