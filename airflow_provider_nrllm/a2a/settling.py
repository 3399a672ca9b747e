"""The end of tasks whose run ended without them: cancelled by an editor, dead-lettered, settled by the extension."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import select
from sqlalchemy.engine import Connection

from airflow_provider_nrllm.a2a import rules as a2a
from airflow_provider_nrllm.a2a.completion import Attempt
from airflow_provider_nrllm.a2a.rows import lock_run_and_task, run, task
from airflow_provider_nrllm.a2a.rules import OPEN, RunState, State, TaskNotFoundError
from airflow_provider_nrllm.outcomes import rules as outcomes


@dataclass(slots=True)
class Settling:
    """
    The tasks that were ended.

    :param canceled: those whose run was cancelled
    :param failed: the others, since none of them has a result
    :param locked: those that another held locked, or their run; the next settling ends them
    """

    canceled: int = 0
    failed: int = 0
    locked: int = 0


def left_tasks(connection: Connection, after: int, page_size: int, *, ended_before: int) -> list[tuple[int, str]]:
    """
    Return the uid and id of the next tasks that have not ended though their run has.

    :param ended_before: only where the run ended before this second
    """
    query = (
        select(task.c.uid, task.c.task_id)
        .select_from(task.join(run, run.c.uid == task.c.run))
        .where(
            task.c.uid > after,
            task.c.state.in_([state.value for state in OPEN]),
            run.c.status.in_(sorted(outcomes.ENDED)),
            run.c.finished_at < ended_before,
        )
        .order_by(task.c.uid)
        .limit(page_size)
    )
    return [(row.uid, row.task_id) for row in connection.execute(query)]


def settle_task(connection: Connection, task_id: str, now: int | None, done: Settling) -> None:
    """
    End a task as its run ended, under the locks of both. A task that ended meanwhile is left as it is.

    :param now: the time of the status, in Unix seconds; None for the present, once the locks are had
    """
    try:
        run_row, task_row = lock_run_and_task(connection, task_id, nowait=True)
    except TaskNotFoundError:
        return
    decision = a2a.settled(None if run_row is None else run_row.status)
    attempt = Attempt(task_id, now=now)
    # Its run is ended already, and is not written.
    ended = attempt.write(connection, RunState.LOST, a2a.strictest(task_row.ceiling), task_row, decision)
    if ended.changed and ended.state is State.CANCELED:
        done.canceled += 1
    elif ended.changed:
        done.failed += 1
