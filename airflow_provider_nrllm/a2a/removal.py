"""Removal of results that a tightened ceiling forbids, and of tasks whose run has gone (ADR-282)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import case, delete, false, or_, select, update
from sqlalchemy.engine import Connection
from sqlalchemy.sql import ColumnElement

from airflow_provider_nrllm.a2a.rows import (
    ENDED,
    HAS_RESULT,
    HAS_RUN,
    event,
    holds_more_than_its_ceiling,
    is_id,
    is_task,
    lock_runs,
    task,
)
from airflow_provider_nrllm.a2a.rules import GOES_ON, Ceiling, Reason, as_strict_as
from airflow_provider_nrllm.database.conditions import value_among


def tasks_of(dialect: str, task_ids: Sequence[str], runs: Sequence[int]) -> ColumnElement[bool]:
    """Return whether a task is one of these, or of one of these runs; an invalid id matches none."""
    by_id = [is_task(dialect, task_id) for task_id in task_ids if is_id(task_id)]
    return or_(false(), task.c.run.in_(runs), *by_id)


@dataclass(slots=True)
class Removal:
    """
    What was taken away.

    :param tasks: how many tasks
    :param events: how many events of theirs
    """

    tasks: int = 0
    events: int = 0


def scrub_page(
    connection: Connection,
    ceiling: Ceiling,
    after: int,
    page_size: int,
    done: Removal,
    only: ColumnElement[bool] | None = None,
) -> int | None:
    """
    Empty what the next tasks hold beyond a ceiling, in the task and in the journal; return the last uid.

    Artifacts, status message and history go; state, times and the order of events stay. A task is emptied whose own
    ceiling is not known to be as strict, and one that holds content though its ceiling keeps none.

    :param only: which tasks; None for all
    """
    dialect = connection.dialect.name
    too_loose = ~value_among(dialect, task.c.ceiling, as_strict_as(ceiling)) | holds_more_than_its_ceiling(dialect)
    if only is not None:
        too_loose &= only
    page = connection.execute(
        select(task.c.uid, task.c.run).where(task.c.uid > after, too_loose).order_by(task.c.uid).limit(page_size)
    ).fetchall()
    if not page:
        return None
    lock_runs(connection, [row.run for row in page])
    locked = connection.execute(
        select(task.c.uid, task.c.state, HAS_RESULT.label("has_result"))
        .where(task.c.uid.in_([row.uid for row in page]), too_loose)
        .order_by(task.c.uid)
        .with_for_update()
    ).fetchall()
    lost = [row.uid for row in locked if row.has_result and row.state in ENDED]
    others = [row.uid for row in locked if row.uid not in set(lost)]
    _empty_tasks(connection, lost, ceiling, Reason.NOT_RETAINABLE)
    _empty_tasks(connection, others, ceiling, None)
    done.tasks += len(locked)
    done.events += empty_events(connection, lost, others)
    return int(page[-1].uid)


def _empty_tasks(connection: Connection, uids: Sequence[int], ceiling: Ceiling, reason: Reason | None) -> None:
    if not uids:
        return
    dialect = connection.dialect.name
    values: dict[str, Any] = {
        # Never loosened: the stricter of its own and this one holds, and a name that is not known keeps nothing.
        "ceiling": case(
            (value_among(dialect, task.c.ceiling, as_strict_as(ceiling)), task.c.ceiling),
            (value_among(dialect, task.c.ceiling, as_strict_as(Ceiling.FULL)), ceiling.value),
            else_=Ceiling.NONE.value,
        ),
        "revision": task.c.revision + 1,
        "status_message": None,
        "history": None,
    }
    if reason is not None:
        # Only a task that had a result says that it has lost it; one that made none keeps its empty list.
        values |= {"artifacts": None, "reason": reason.value}
    connection.execute(update(task).where(task.c.uid.in_(uids)).values(values))
    if reason is None:
        made = task.c.artifacts.is_not(None) & (task.c.artifacts != "[]")
        connection.execute(update(task).where(task.c.uid.in_(uids), made).values(artifacts=None))


def empty_events(connection: Connection, lost: Sequence[int], others: Sequence[int]) -> int:
    """
    Empty what the journal holds of tasks, and return how many events that changed.

    :param lost: the tasks whose end says so too, since it had a result
    :param others: the other tasks
    """
    emptied = event.c.task.in_([*lost, *others]) & event.c.payload.is_not(None)
    ended = event.c.task.in_(lost) & event.c.state.in_(ENDED)
    return int(
        connection.execute(
            update(event)
            .where(emptied | ended if lost else emptied)
            .values(payload=None, reason=Reason.NOT_RETAINABLE.value)
        ).rowcount
    )


def delete_of_runs(connection: Connection, runs: Sequence[int]) -> Removal:
    """Delete the tasks of runs that have ended or gone, and their events, under the locks of both."""
    statuses = lock_runs(connection, runs)
    ended = [uid for uid in runs if statuses.get(uid) not in GOES_ON]
    locked = connection.execute(select(task.c.uid).where(task.c.run.in_(ended)).order_by(task.c.uid).with_for_update())
    return _delete_tasks(connection, [row.uid for row in locked])


def delete_lost_page(connection: Connection, after: int, page_size: int, done: Removal) -> int | None:
    """Delete the next tasks that have lost their run, with their events; return the last uid."""
    page = [
        row.uid
        for row in connection.execute(
            select(task.c.uid).where(task.c.uid > after, ~HAS_RUN).order_by(task.c.uid).limit(page_size)
        )
    ]
    if not page:
        return None
    locked = [
        row.uid
        for row in connection.execute(
            select(task.c.uid).where(task.c.uid.in_(page)).order_by(task.c.uid).with_for_update()
        )
    ]
    removed = _delete_tasks(connection, locked)
    done.tasks += removed.tasks
    done.events += removed.events
    return int(page[-1])


def delete_lost_events_page(connection: Connection, page_size: int, done: Removal) -> bool:
    """Delete the next events that have lost their task; return whether there may be more."""
    has_task = select(task.c.uid).where(task.c.uid == event.c.task).exists()
    uids = [row.uid for row in connection.execute(select(event.c.uid).where(~has_task).limit(page_size))]
    if uids:
        done.events += int(connection.execute(delete(event).where(event.c.uid.in_(uids))).rowcount)
    return len(uids) == page_size


def _delete_tasks(connection: Connection, uids: Sequence[int]) -> Removal:
    if not uids:
        return Removal()
    # Events first, as the extension's own purges do.
    events = connection.execute(delete(event).where(event.c.task.in_(uids))).rowcount
    tasks = connection.execute(delete(task).where(task.c.uid.in_(uids))).rowcount
    return Removal(int(tasks), int(events))
