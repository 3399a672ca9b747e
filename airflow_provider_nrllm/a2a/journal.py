"""The projector: the journal of events, written from the committed state only (ADR-282)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import insert, select
from sqlalchemy.engine import Connection
from sqlalchemy.exc import DataError, DBAPIError, IntegrityError, InternalError, OperationalError

from airflow_provider_nrllm.a2a.rows import (
    HAS_EVENTS_OF_ITS_REVISION,
    HAS_RUN,
    HAS_TERMINAL_EVENT,
    STATEMENT_BYTES,
    event,
    present,
    task,
    whole_task,
    written_size,
)
from airflow_provider_nrllm.a2a.sealed import UnreadableError
from airflow_provider_nrllm.a2a.tasks import Task, events_of
from airflow_provider_nrllm.database.errors import is_locked, may_pass

#: A server takes 65,535 parameters in a statement, and an event has ten. The smallest statement that a server is
#: commonly set to take has 1 MB; a larger event goes alone.
_EVENTS_AT_ONCE = 1000
_BYTES_AT_ONCE = 500_000

# What is not in the journal yet is found by an anti-join, never by a cursor: the row of a slow writer appears
# behind any cursor. A task whose journal has ended is done: nothing comes after a terminal state.
_DUE = (~HAS_EVENTS_OF_ITS_REVISION, ~HAS_TERMINAL_EVENT, HAS_RUN)


@dataclass(slots=True)
class Projection:
    """
    What a projector did.

    :param tasks: how many tasks' revisions it wrote into the journal
    :param events: how many events it wrote
    :param present: how many it found there already, written by another at the same time
    :param locked: the uids of tasks that another held locked; the next projector writes them
    :param refused: the uids of tasks whose events the database refused
    :param unreadable: the uids of tasks that cannot be projected: a value is not sealed, a state unknown
    :param lag_seconds: the longest time from a status to its events
    """

    tasks: int = 0
    events: int = 0
    present: int = 0
    locked: list[int] = field(default_factory=list)
    refused: list[int] = field(default_factory=list)
    unreadable: list[int] = field(default_factory=list)
    lag_seconds: int = 0


def due_tasks(connection: Connection, after: int, page_size: int) -> list[int]:
    """Return the uids of the next tasks whose newest revision has no events, in the order of uids."""
    query = select(task.c.uid).where(task.c.uid > after, *_DUE).order_by(task.c.uid).limit(page_size)
    return [row.uid for row in connection.execute(query)]


def project_task(
    connection: Connection, uid: int, now: int | None, projection: Projection, largest: int | None = None
) -> None:
    """
    Write the events of a task's newest revision in a transaction of its own.

    Repeated, or done by several at once, it writes them once: the task's row is locked, and looked at again. A task
    that cannot be written now is counted, and the others do not wait for it.

    :param now: the time of writing, in Unix seconds; None for the present, once the lock is had
    :param largest: how many bytes a statement may have: the server hangs up on a larger one; None for no limit
    """
    try:
        with connection.begin():
            stored = _lock_due(connection, uid)
            if stored is None:
                projection.present += 1
                return
            written_at = present(now)
            rows = [
                {
                    "pid": 0,
                    "task": uid,
                    "revision": entry.revision,
                    "position": entry.position,
                    "kind": entry.kind,
                    "state": entry.state.value,
                    "reason": entry.reason,
                    "payload": entry.payload,
                    "status_at": entry.status_at,
                    "crdate": written_at,
                }
                for entry in events_of(stored)
            ]
            most = None if largest is None else largest - STATEMENT_BYTES
            if most is not None and any(written_size(str(row["payload"] or "")) > most for row in rows):
                projection.refused.append(uid)
                return
            for some in _slices(rows):
                connection.execute(insert(event).values(some))
    except IntegrityError:
        # The unique key holds against writers that take no lock. Any other refusal is not hidden.
        with connection.begin():
            due = _lock_due(connection, uid) is not None
        if due:
            projection.refused.append(uid)
        else:
            projection.present += 1
        return
    except DBAPIError as error:
        if is_locked(error):
            projection.locked.append(uid)
        elif may_pass(error) or not isinstance(error, DataError | InternalError | OperationalError):
            raise
        else:
            projection.refused.append(uid)
        return
    except UnreadableError:
        # Not sealed, or of an unknown state: the check reports it, and the others must not wait for it.
        projection.unreadable.append(uid)
        return
    projection.tasks += 1
    projection.events += len(rows)
    projection.lag_seconds = max(projection.lag_seconds, written_at - stored.status_at)


def _slices(rows: list[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """Yield rows in lists that a statement takes."""
    some: list[dict[str, Any]] = []
    size = 0
    for row in rows:
        added = len(row["payload"] or "")
        if some and (len(some) == _EVENTS_AT_ONCE or size + added > _BYTES_AT_ONCE):
            yield some
            some, size = [], 0
        some.append(row)
        size += added
    yield some


def _lock_due(connection: Connection, uid: int) -> Task | None:
    """Lock a task and return it; None where its newest revision has its events by now, or it has gone."""
    row = connection.execute(select(task).where(task.c.uid == uid).with_for_update(nowait=True)).first()
    if row is None:
        return None
    # After the wait for the lock: what the one before committed is visible to a new statement.
    due = connection.execute(select(task.c.uid).where(task.c.uid == uid, *_DUE)).first()
    return None if due is None else whole_task(row)
