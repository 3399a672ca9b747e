"""Reading what a purge would take, before it does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.engine import Connection
from sqlalchemy.sql import Select

from airflow_provider_nrllm.database.site import SiteDatabase
from airflow_provider_nrllm.database.tables import event, history, run
from airflow_provider_nrllm.outcomes import statements
from airflow_provider_nrllm.outcomes.evidence import Event, Write
from airflow_provider_nrllm.outcomes.lookup import Lookup, outcome_lookup
from airflow_provider_nrllm.outcomes.rules import ENDED, Run, settled_at
from airflow_provider_nrllm.outcomes.statements import Key
from airflow_provider_nrllm.purge.rules import AtRisk, at_risk


class PurgeReader:
    """
    Reads which runs a purge would destroy unanswered, and how far back TYPO3's history reaches.

    Reads only, in pages of runs, each a fixed number of statements that indexes serve; the history table is
    asked for one row.

    :param database: the TYPO3 database
    :param page_size: the most runs read at once
    """

    def __init__(self, database: SiteDatabase, page_size: int = 1000) -> None:
        self.database = database
        self.page_size = page_size

    def at_risk(self, *, made_before: int, window: int, now: int) -> AtRisk:
        """
        Return how many runs ``nrllm:privacy:purge`` would delete that have a write and no observed outcome.

        :param made_before: the purge deletes ended runs made before this second
        :param window: how long a record is watched after a write, in seconds
        :param now: the moment of asking
        """
        return at_risk(self._settled(made_before, window), now)

    def _settled(self, made_before: int, window: int) -> Iterator[int | None]:
        """Yield when each of the runs settles; runs that share a uuid are one."""
        key: Key | None = (0, 0)
        with self.database.snapshot() as connection:
            lookup = outcome_lookup(connection)
        while key is not None:
            with self.database.snapshot() as connection:
                query = deletable(connection.dialect.name, key, self.page_size, made_before=made_before, lookup=lookup)
                rows = connection.execute(query).fetchall()
                key = (rows[-1][0], rows[-1][1]) if len(rows) == self.page_size else None
                of_page = {uid: uuid for _, uid, uuid in rows}
                settled = self._settled_of(connection, of_page, window) if rows else []
            yield from settled

    @staticmethod
    def _settled_of(connection: Connection, of_page: Mapping[int, str], window: int) -> list[int | None]:
        """Return when those of the page's uuids settle that are on no page before."""
        uuids = set(of_page.values())
        same: dict[str, list[tuple[int | None, Run]]] = {uuid: [] for uuid in uuids}
        for made, uid, uuid, status, finished_at in connection.execute(runs_of(uuids)):
            if uuid in same:
                same[uuid].append((made, Run(uid, uuid, status, finished_at or 0)))
        uids = [each.uid for runs in same.values() for _, each in runs]
        last = {uid: Write(Event(at, 0), None) for uid, at in connection.execute(last_write_of(uids))}
        settled = []
        for runs in same.values():
            # One without a date is on no page: a purge by age does not find it.
            first = min(
                (made, each.uid)
                for made, each in runs
                if made is not None and each.status in ENDED and each.uid in last
            )
            if first[1] in of_page:
                writes = [last[each.uid] for _, each in runs if each.uid in last]
                settled.append(settled_at([each for _, each in runs], writes, window))
        return settled

    def oldest_history(self) -> int | None:
        """
        Return the stamp of the oldest retained history row; None where there is no row.

        It is the row with the smallest uid: rows get ascending uids, and are trimmed by age. ``tstamp`` has no
        index of its own, and its smallest value would be a scan of the whole table. So a row with a small uid
        and a stamp of long ago, as an import may bring it, hides that the rest was trimmed; and a table whose
        history alone was trimmed is not seen.
        """
        with self.database.snapshot() as connection:
            stamp = connection.execute(select(history.c.tstamp).order_by(history.c.uid).limit(1)).scalar()
        return None if stamp is None else int(stamp)


def deletable(dialect: str, after: Key, limit: int, *, made_before: int, lookup: Lookup) -> Select[Any]:
    """
    Runs that the purge would delete, with a write and without an outcome: a row of ``crdate, uid, uuid`` each.

    :param after: where the page begins
    :param made_before: the purge deletes runs that have ended and were made before this
    :param lookup: how outcomes are to be found
    """
    # Not EXISTS: MariaDB would turn it round and begin with all events.
    last_write = (
        select(func.max(event.c.crdate))
        .where(event.c.run == run.c.uid, event.c.kind == "tool_write")
        .correlate(run)
        .scalar_subquery()
    )
    return (
        select(run.c.crdate, run.c.uid, run.c.uuid)
        .where(
            run.c.crdate < made_before,
            run.c.status.in_(sorted(ENDED)),
            statements.later_than(run.c.crdate, run.c.uid, after),
            statements.unanswered(dialect, lookup),
            last_write.is_not(None),
        )
        .order_by(run.c.crdate, run.c.uid)
        .limit(limit)
    )


def runs_of(uuids: Iterable[str]) -> Select[Any]:
    """All runs with one of the uuids, and when they were made."""
    return select(run.c.crdate, run.c.uid, run.c.uuid, run.c.status, run.c.finished_at).where(
        run.c.uuid.in_(sorted(uuids))
    )


def last_write_of(runs: Iterable[int]) -> Select[Any]:
    """The time of each run's last write."""
    return (
        select(event.c.run, func.max(event.c.crdate))
        .where(event.c.kind == "tool_write", statements.among(event.c.run, runs))
        .group_by(event.c.run)
    )
