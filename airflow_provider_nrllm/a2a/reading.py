"""Tasks and events as they are read: from the committed state, and only as long as their run is there."""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import and_, func, null, or_, select
from sqlalchemy.engine import Connection
from sqlalchemy.sql import ColumnElement

from airflow_provider_nrllm.a2a.rows import (
    HAS_RUN,
    event,
    is_id,
    is_task,
    read_event,
    read_task,
    state_of,
    task,
    whole_event,
    whole_task,
)
from airflow_provider_nrllm.a2a.rules import State, TaskNotFoundError
from airflow_provider_nrllm.a2a.tasks import JournalEntry, JournalPage, Task, TaskEvent, page_of_entries
from airflow_provider_nrllm.database.conditions import value_among

#: The largest number that a database takes.
_LARGEST: Final = 2**63 - 1


@dataclass(frozen=True, slots=True)
class TaskFilter:
    """
    Which tasks a list is of; by default all.

    :param context_id: those of one context
    :param context_ids: those of these contexts, such as the caller's own: the tables know no owner. None for all
    :param states: those in one of these states
    :param status_after: those whose status was reached then or later, in Unix seconds
    :raises ValueError: for an unknown state, or a time that is not a whole number
    """

    context_id: str | None = None
    context_ids: Collection[str] | None = None
    states: Sequence[State] = ()
    status_after: int | None = None

    def conditions(self, dialect: str) -> list[ColumnElement[bool]]:
        """Return what a task of the list fulfils."""
        found = [HAS_RUN]
        if isinstance(self.context_ids, str):
            raise ValueError("context_ids is a text; expected a list of the ids of contexts")
        for contexts in (None if self.context_id is None else [self.context_id], self.context_ids):
            if contexts is not None:
                # To the letter, and none for what can be no id: it comes from a client.
                known = list(filter(is_id, contexts))
                found.append(task.c.context_id.in_(known) & value_among(dialect, task.c.context_id, known))
        if self.states:
            found.append(task.c.state.in_([State(state).value for state in self.states]))
        if self.status_after is not None:
            found.append(task.c.tstamp >= _bounded(self.status_after, "status_after"))
        return found


@dataclass(frozen=True, slots=True)
class TaskPage:
    """
    A page of tasks, by status time, the newest first.

    :param next_page_token: where the next page begins; empty on the last one
    :param total_size: how many tasks there are on all pages
    """

    tasks: tuple[Task, ...]
    next_page_token: str
    total_size: int


def find_task(connection: Connection, task_id: str) -> Task:
    """
    Return a task.

    :raises TaskNotFoundError: where there is none, or its run has gone
    :raises UnreadableError: where one of its values is not sealed, or its state not known
    """
    row = connection.execute(select(task).where(is_task(connection.dialect.name, task_id), HAS_RUN)).first()
    if row is None:
        raise TaskNotFoundError(task_id)
    return whole_task(row)


def find_state(connection: Connection, task_id: str) -> State:
    """
    Return the state of a task, which is all that is read of it.

    :raises TaskNotFoundError: where there is none, or its run has gone
    """
    query = select(task.c.state).where(is_task(connection.dialect.name, task_id), HAS_RUN)
    row = connection.execute(query).first()
    if row is None:
        raise TaskNotFoundError(task_id)
    return state_of(row)


def list_page(
    connection: Connection, wanted: TaskFilter, page_size: int, page_token: str, include_artifacts: bool
) -> TaskPage:
    """
    Return the page of tasks that begins at a token.

    The token names the last task of the page before by its status time and uid, so that a page neither
    repeats nor skips a task whose status has not changed meanwhile.
    """
    conditions = wanted.conditions(connection.dialect.name)
    total = connection.execute(select(func.count()).select_from(task).where(*conditions)).scalar()
    if page_token:
        at, uid = _position(page_token)
        conditions.append(or_(task.c.tstamp < at, and_(task.c.tstamp == at, task.c.uid < uid)))
    columns: list[Any] = [
        column if include_artifacts or column.name != "artifacts" else null().label("artifacts")
        for column in task.columns
    ]
    query = select(*columns).where(*conditions).order_by(task.c.tstamp.desc(), task.c.uid.desc())
    rows = connection.execute(query.limit(page_size + 1)).fetchall()
    token = _token(rows[page_size - 1]) if len(rows) > page_size else ""
    return TaskPage(tuple(map(read_task, rows[:page_size])), token, int(total or 0))


def events_of_task(connection: Connection, task_id: str, after_revision: int) -> tuple[Task, list[TaskEvent]]:
    """
    Return a task and the events of its journal after a revision, in their order.

    :raises TaskNotFoundError: where there is no such task, or its run has gone
    :raises UnreadableError: where a value of either is not sealed, or a state not known
    """
    found = find_task(connection, task_id)
    after = _bounded(after_revision, "after_revision")
    query = select(event).where(event.c.task == found.uid, event.c.revision > after)
    rows = connection.execute(query.order_by(event.c.revision, event.c.position))
    return found, [whole_event(row) for row in rows]


def journal_page(connection: Connection, position: int, page_size: int, final_before: int) -> JournalPage:
    """
    Return the page of the journal of all tasks that begins after a position.

    :param final_before: no transaction that began before this second is still on its way
    """
    after = _bounded(position, "position")
    of_task = event.outerjoin(task, (task.c.uid == event.c.task) & HAS_RUN)
    query = select(event, task.c.task_id, task.c.context_id).select_from(of_task).where(event.c.uid > after)
    rows = connection.execute(query.order_by(event.c.uid).limit(page_size))
    return page_of_entries(map(_entry_of, rows), max(after, 0), final_before)


def _entry_of(row: Any) -> JournalEntry:
    if row.task_id is None:
        return JournalEntry(row.uid, row.crdate)
    return JournalEntry(row.uid, row.crdate, row.task_id, row.context_id, read_event(row))


def _bounded(value: object, name: str) -> int:
    """Return a number as a database takes it: those from a client may be larger, and mean after everything."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"{name} is a {type(value).__name__}; expected a whole number")
    return max(-_LARGEST, min(value, _LARGEST))


def _token(row: Any) -> str:
    return urlsafe_b64encode(json.dumps([row.tstamp, row.uid]).encode()).decode()


def _position(token: str) -> tuple[int, int]:
    try:
        found = json.loads(urlsafe_b64decode(token))
    except (ValueError, TypeError, RecursionError):
        found = None
    # It comes from a client: of just this form, and no number that a database does not take.
    if (
        isinstance(found, list)
        and len(found) == 2
        and all(type(each) is int and 0 <= each <= _LARGEST for each in found)
    ):
        return found[0], found[1]
    raise ValueError("the page token was not issued by this hook; expected the next_page_token of a page")
