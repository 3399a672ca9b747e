"""Reading what a purge would take, before it does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from sqlalchemy import and_, exists, func, or_, select
from sqlalchemy.engine import Connection
from sqlalchemy.sql import ColumnElement, FromClause, Select

from airflow_provider_nrllm import statements
from airflow_provider_nrllm.hooks.database import SiteDatabase
from airflow_provider_nrllm.outcomes import ENDED, Event, Run, Write, settled_at
from airflow_provider_nrllm.purge import AtRisk, at_risk
from airflow_provider_nrllm.statements import Key
from airflow_provider_nrllm.tables import event, history, run


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
        while key is not None:
            with self.database.snapshot() as connection:
                query = deletable(connection.dialect.name, key, self.page_size, made_before=made_before)
                rows = connection.execute(query).fetchall()
                key = (rows[-1][0], rows[-1][1]) if len(rows) == self.page_size else None
                settled = self._settled_of(connection, {uuid for *_, uuid in rows}, window) if rows else []
            yield from settled

    @staticmethod
    def _settled_of(connection: Connection, uuids: set[str], window: int) -> list[int | None]:
        runs: dict[str, list[Run]] = {}
        uuid_of: dict[int, str] = {}
        for uid, uuid, status, finished_at in connection.execute(statements.runs_of(uuids)):
            if uuid in uuids:
                runs.setdefault(uuid, []).append(Run(uid, uuid, status, finished_at or 0))
                uuid_of[uid] = uuid
        last: dict[str, list[Write]] = {}
        for run_uid, at in connection.execute(last_write_of(uuid_of)):
            last.setdefault(uuid_of[run_uid], []).append(Write(Event(at, 0), None))
        return [settled_at(same, last.get(uuid, ()), window) for uuid, same in runs.items()]

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


def deletable(dialect: str, after: Key, limit: int, *, made_before: int) -> Select[Any]:
    """
    Runs that the purge would delete, with a write and without an outcome: a row of ``crdate, uid, uuid`` each.

    Of runs that share a uuid only the first made, since they are one.

    :param after: where the page begins
    :param made_before: the purge deletes runs that have ended and were made before this
    """
    other = run.alias("other")
    made_earlier = exists().where(
        statements._same_id(dialect, other.c.uuid, run.c.uuid),
        or_(other.c.crdate < run.c.crdate, and_(other.c.crdate == run.c.crdate, other.c.uid < run.c.uid)),
        _ended_and_wrote(other),
    )
    return (
        select(run.c.crdate, run.c.uid, run.c.uuid)
        .where(
            run.c.crdate < made_before,
            statements._after(run.c.crdate, run.c.uid, after),
            statements._unanswered(dialect),
            _ended_and_wrote(run),
            ~made_earlier,
        )
        .order_by(run.c.crdate, run.c.uid)
        .limit(limit)
    )


def _ended_and_wrote(of: FromClause) -> ColumnElement[bool]:
    wrote = exists().where(event.c.run == of.c.uid, event.c.kind == "tool_write")
    return and_(of.c.status.in_(sorted(ENDED)), wrote)


def last_write_of(runs: Iterable[int]) -> Select[Any]:
    """The time of each run's last write."""
    return (
        select(event.c.run, func.max(event.c.crdate))
        .where(event.c.kind == "tool_write", statements._among(event.c.run, runs))
        .group_by(event.c.run)
    )
