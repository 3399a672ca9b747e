"""Rows of A2A tasks and events: how they are locked, read and written, always in the same order."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final

from airflow.providers.common.compat.sdk import AirflowException
from sqlalchemy import exists, literal, select, update
from sqlalchemy.engine import Connection
from sqlalchemy.exc import DatabaseError, DataError, IntegrityError, InternalError
from sqlalchemy.sql import ColumnElement

from airflow_provider_nrllm.a2a import tables as a2a_tables
from airflow_provider_nrllm.a2a.rules import KEEPS, TERMINAL, State, TaskNotFoundError, UnknownStateError
from airflow_provider_nrllm.a2a.sealed import UnreadableError, UnsealedValueError, is_sealed, sealed_values
from airflow_provider_nrllm.a2a.tasks import Task, TaskEvent, withheld
from airflow_provider_nrllm.database.conditions import same_id, value_among
from airflow_provider_nrllm.database.errors import named

# The lock order: the run's row first, then its task's, each in the order of uids. Nobody waits for a run while
# it holds a task, so that nobody waits in a circle.

run, task, event = a2a_tables.run, a2a_tables.task, a2a_tables.event

#: The terminal states as the drivers take them, which know no enumerations.
ENDED: Final = tuple(state.value for state in TERMINAL)

#: A task has gone with its run, even before its row is purged.
HAS_RUN: ColumnElement[bool] = exists(select(run.c.uid).where(run.c.uid == task.c.run))
HAS_TERMINAL_EVENT: ColumnElement[bool] = exists(
    select(event.c.uid).where(event.c.task == task.c.uid, event.c.kind == "status", event.c.state.in_(ENDED))
)
HAS_EVENTS_OF_ITS_REVISION: ColumnElement[bool] = exists(
    select(event.c.uid).where(event.c.task == task.c.uid, event.c.revision == task.c.revision)
)
HAS_RESULT: ColumnElement[bool] = task.c.status_message.is_not(None) | (
    task.c.artifacts.is_not(None) & (task.c.artifacts != "[]")
)


HAS_CONTENT: ColumnElement[bool] = HAS_RESULT | task.c.history.is_not(None)


def holds_more_than_its_ceiling(dialect: str) -> ColumnElement[bool]:
    """Whether a task, or its journal, holds content under a ceiling that keeps none, or that is not known."""
    told = exists(select(event.c.uid).where(event.c.task == task.c.uid, event.c.payload.is_not(None)))
    return ~value_among(dialect, task.c.ceiling, KEEPS) & (HAS_CONTENT | told)


_STATES: Final = tuple(state.value for state in State if state is not State.UNSPECIFIED)


#: What a statement that writes a value has besides it, and more.
STATEMENT_BYTES: Final = 1000


class StorageError(AirflowException):
    """The database did not take a row. The message says no word of what was in it."""


@contextmanager
def without_content() -> Iterator[None]:
    """
    Raise a database's refusal of a row without its text: PostgreSQL's, for one, quotes the row.

    :raises StorageError: in place of such an error
    """
    try:
        yield
    except (IntegrityError, DataError, InternalError) as error:
        refused: DatabaseError = error
        raise StorageError(f"The database did not take a row: {named(refused)}") from None


def written_size(value: str) -> int:
    """Return how many bytes a text has in a statement, where some characters are written as two."""
    return len(value.encode()) + sum(map(value.count, "\0'\"\\\n\r\x1a"))


def present(now: int | None = None) -> int:
    """Return a time in Unix seconds, the present where none is given."""
    return int(time.time()) if now is None else now


def is_task(dialect: str, task_id: object) -> ColumnElement[bool]:
    """
    Whether a row is the task of that id, to the letter: ids come from clients, and collations find others too.

    :raises TaskNotFoundError: for what can be no id, such as a number or a text that no database takes
    """
    if not is_id(task_id):
        raise TaskNotFoundError("no task has such an id")
    return same_id(dialect, task.c.task_id, literal(task_id))


def is_id(value: object) -> bool:
    """Whether a value may be an id: a text that every database takes."""
    if not isinstance(value, str) or "\x00" in value:
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def lock_run_and_task(connection: Connection, task_id: str, *, nowait: bool = False) -> tuple[Any, Any]:
    """
    Lock a task's run (None where it has gone) and then the task, and return both rows.

    :param nowait: whether to fail at once where another holds one of them
    :raises TaskNotFoundError: where there is no such task
    """
    this_task = is_task(connection.dialect.name, task_id)
    run_uid = connection.execute(select(task.c.run).where(this_task)).scalar()
    if run_uid is None:
        raise TaskNotFoundError(task_id)
    run_row = connection.execute(
        select(run.c.uid, run.c.status, run.c.claimed_by).where(run.c.uid == run_uid).with_for_update(nowait=nowait)
    ).first()
    task_row = connection.execute(select(task).where(this_task).with_for_update(nowait=nowait)).first()
    if task_row is None:
        raise TaskNotFoundError(task_id)
    return run_row, task_row


def lock_runs(connection: Connection, uids: Sequence[int]) -> dict[int, str]:
    """Lock the rows of runs in the order of their uids, and return the status of each that has one."""
    rows = connection.execute(
        select(run.c.uid, run.c.status).where(run.c.uid.in_(uids)).order_by(run.c.uid).with_for_update()
    )
    return {row.uid: row.status for row in rows}


def end_run(connection: Connection, uid: int, status: str, now: int, figures: Mapping[str, Any]) -> None:
    """
    End a run, as the extension does: no worker holds it, it is not suspended, and its client's request is gone.

    :param figures: what else of its row is to be set, by column
    """
    ended = {"status": status, "finished_at": now, "tstamp": now, "claimed_by": "", "lease_expires": 0}
    emptied = {"suspended_state": None, "queued_request": None}
    connection.execute(update(run).where(run.c.uid == uid).values({**figures, **ended, **emptied}))


def read_task(row: Any) -> Task:
    """Return the task of a row; without its content where that is not sealed, or the state is not known."""
    try:
        return whole_task(row)
    except UnreadableError:
        return withheld(_bare_task(row))


def whole_task(row: Any) -> Task:
    """
    Return the task of a row.

    :raises UnsealedValueError: where one of its values is not sealed; it is then neither shown nor projected
    :raises UnknownStateError: where this version does not know its state
    """
    _check_state(row, "task")
    try:
        if not (row.status_message is None or is_sealed(row.status_message)):
            raise UnsealedValueError
        artifacts, history = sealed_values(row.artifacts), sealed_values(row.history)
    except UnsealedValueError:
        raise UnsealedValueError(f"a2a task {row.uid} has a value that is not sealed") from None
    return replace(_bare_task(row), status_message=row.status_message, artifacts=artifacts, history=history)


def _bare_task(row: Any) -> Task:
    """Return the task of a row without its content."""
    return Task(
        uid=row.uid,
        task_id=row.task_id,
        context_id=row.context_id,
        state=state_of(row),
        revision=row.revision,
        reason=row.reason,
        status_message=None,
        artifacts=None,
        history=None,
        status_at=row.tstamp,
    )


def read_event(row: Any) -> TaskEvent:
    """Return the event of a row; without its payload where that is not sealed, or the state is not known."""
    try:
        return whole_event(row)
    except UnreadableError:
        return replace(_event_of(row), payload=None, is_withheld=True)


def whole_event(row: Any) -> TaskEvent:
    """
    Return the event of a row.

    :raises UnsealedValueError: where its payload is not sealed
    :raises UnknownStateError: where this version does not know its state
    """
    _check_state(row, "event")
    if not (row.payload is None or is_sealed(row.payload)):
        raise UnsealedValueError(f"a2a event {row.uid} has a value that is not sealed")
    return _event_of(row)


def _event_of(row: Any) -> TaskEvent:
    return TaskEvent(
        revision=row.revision,
        position=row.position,
        kind=row.kind,
        state=state_of(row),
        reason=row.reason,
        payload=row.payload,
        status_at=row.status_at,
    )


def state_of(row: Any) -> State:
    """Return the state of a row of either table."""
    return State(row.state) if row.state in _STATES else State.UNSPECIFIED


def _check_state(row: Any, kind: str) -> None:
    if row.state not in _STATES:
        raise UnknownStateError(
            f"a2a {kind} {row.uid} has a state that this version does not know; expected one of {', '.join(_STATES)}"
        )
