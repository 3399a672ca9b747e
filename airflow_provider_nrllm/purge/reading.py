"""Reading what a purge would delete, before it does."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.engine import Connection
from sqlalchemy.sql import Select

from airflow_provider_nrllm.database.conditions import value_among
from airflow_provider_nrllm.database.site import SiteDatabase
from airflow_provider_nrllm.database.tables import event, history, run
from airflow_provider_nrllm.outcomes import statements
from airflow_provider_nrllm.outcomes.evidence import LIVE, OWN_ROW_AGE, Evidence, Target, Write
from airflow_provider_nrllm.outcomes.lookup import Lookup, outcome_lookup
from airflow_provider_nrllm.outcomes.pages import PageKey, RunsOfUuid
from airflow_provider_nrllm.outcomes.reading import read_histories, read_times, runs_with_writes
from airflow_provider_nrllm.outcomes.rules import ENDED
from airflow_provider_nrllm.outcomes.spans import merged
from airflow_provider_nrllm.purge.rules import AtRisk, at_risk


class PurgeReader:
    """
    Reads which runs a purge would destroy unanswered, and how far back TYPO3's history reaches.

    Reads only, in pages of runs, each a fixed number of statements that indexes serve; the history table is
    asked for one row.

    :param database: the TYPO3 database
    :param page_size: the most runs read at once
    :param machine_users: the names of TYPO3 users whose changes are a machine's, with or without an event
    """

    def __init__(self, database: SiteDatabase, page_size: int = 1000, machine_users: Sequence[str] = ()) -> None:
        self.database = database
        self.page_size = page_size
        self.machine_users = tuple(machine_users)

    def at_risk(self, *, made_before: int, window: int, now: int) -> AtRisk:
        """
        Return how many runs ``nrllm:privacy:purge`` would delete too early.

        They have a write and no observed outcome, or their events are needed to answer such a run.

        :param made_before: the purge deletes ended runs made before this second
        :param window: how long a record is watched after a write, in seconds
        :param now: the moment of asking
        """
        with self.database.snapshot() as connection:
            lookup = outcome_lookup(connection)
        risk = at_risk(self._settled(made_before, window, lookup), now)
        return replace(risk, needed=sum(self._needed(made_before, window, lookup)))

    def _settled(self, made_before: int, window: int, lookup: Lookup) -> Iterator[int | None]:
        """Yield when each of the runs without an outcome settles; runs that share a uuid are one."""
        for _, runs in self._pages(made_before, lookup, answered=False):
            yield from (each.settled_at(window) for each in runs)

    def _needed(self, made_before: int, window: int, lookup: Lookup) -> Iterator[int]:
        """Yield, page by page, how many of the runs with an outcome others need to be answered."""
        for connection, runs in self._pages(made_before, lookup, answered=True):
            written = [(each.uuid, write) for each in runs for write in each.writes if write.target]
            if not written:
                continue
            # The writes to whose windows these belong.
            spans = merged((write.at - window, write.at + OWN_ROW_AGE) for _, write in written)
            others = read_times(connection, spans, lookup)
            watched = [
                (uuid, write)
                for uuid, write in written
                if write.target and any_between(others.get(write.target, ()), write.at - window, write.at + OWN_ROW_AGE)
            ]
            yield len(self._with_own_rows(connection, watched, window))

    def _with_own_rows(self, connection: Connection, writes: Sequence[tuple[str, Write]], window: int) -> set[str]:
        """Return the uuids of the writes that made rows which would count as a person's without their events."""
        times: dict[Target, list[int]] = {}
        for _, write in writes:
            if write.target:
                insort(times.setdefault(write.target, []), write.at)
        rows = read_histories(connection, times, None, self.machine_users)
        evidence = {target: Evidence(rows.get(target, ()), of_target, LIVE) for target, of_target in times.items()}
        return {
            uuid
            for uuid, write in writes
            if write.target and any(row.by_editor for row in evidence[write.target].own_rows(write.at, window))
        }

    def _pages(
        self, made_before: int, lookup: Lookup, *, answered: bool
    ) -> Iterator[tuple[Connection, list[RunsOfUuid]]]:
        """Yield the runs that the purge would delete, in pages, each in the snapshot that is yielded with it."""
        key: PageKey | None = (0, 0)
        while key is not None:
            with self.database.snapshot() as connection:
                query = deletable(
                    connection.dialect.name,
                    key,
                    self.page_size,
                    made_before=made_before,
                    lookup=lookup,
                    answered=answered,
                )
                rows = connection.execute(query).fetchall()
                key = (rows[-1][0], rows[-1][1]) if len(rows) == self.page_size else None
                of_page = {uid for _, uid, _ in rows}
                found = runs_with_writes(connection, {uuid for _, _, uuid in rows})
                # Several runs may share a uuid: it counts on the page that holds the last of them.
                yield connection, [runs for runs in found if last_deletable(runs, made_before) in of_page]

    def oldest_history(self) -> int | None:
        """
        Return the stamp of the oldest retained history row; None where there is no row.

        It is the row with the smallest uid: rows get ascending uids, and are trimmed by age. ``tstamp`` has no
        index of its own, and its smallest value would be a scan of the whole table. So a row with a small uid
        and a stamp of long ago, as an import may bring it, hides that the rest was trimmed; and a table whose
        history alone was trimmed is not seen.
        """
        with self.database.snapshot() as connection:
            stamp = connection.execute(select(history.c.tstamp).order_by(history.c.uid).limit(1)).scalar_one_or_none()
        return None if stamp is None else int(stamp)


def deletable(
    dialect: str, after: PageKey, limit: int, *, made_before: int, lookup: Lookup, answered: bool = False
) -> Select[Any]:
    """
    Runs that the purge would delete, with a write and without an outcome: a row of ``crdate, uid, uuid`` each.

    :param after: where the page begins
    :param made_before: the purge deletes runs that have ended and were made before this
    :param lookup: how outcomes are to be found
    :param answered: those with an outcome instead
    """
    # Not EXISTS: MariaDB would turn it round and begin with all events.
    writes = (
        select(func.count(event.c.uid))
        .where(event.c.run == run.c.uid, statements.is_write(dialect))
        .correlate(run)
        .scalar_subquery()
    )
    return (
        select(run.c.crdate, run.c.uid, run.c.uuid)
        .where(
            run.c.crdate < made_before,
            value_among(dialect, run.c.status, sorted(ENDED)),
            statements.later_than(run.c.crdate, run.c.uid, after),
            statements.unanswered(dialect, lookup, answered_instead=answered),
            writes > 0,
        )
        .order_by(run.c.crdate, run.c.uid)
        .limit(limit)
    )


def last_deletable(runs: RunsOfUuid, made_before: int) -> int | None:
    """Return the uid of the last of the runs that a purge deletes and that wrote; one without a date is not deleted."""
    wrote = {write.run for write in runs.writes}
    deletable_runs = (
        (run.created_at, run.uid)
        for run in runs.runs
        if run.uid in wrote and run.status in ENDED and run.created_at is not None and run.created_at < made_before
    )
    return max(deletable_runs, default=(0, None))[1]


def any_between(times: Sequence[int], first: int, last: int) -> bool:
    """Whether one of the times, which are in order, is from ``first`` to ``last``, both included."""
    position = bisect_left(times, first)
    return position < len(times) and times[position] <= last
