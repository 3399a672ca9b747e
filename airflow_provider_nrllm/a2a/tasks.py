"""
A task as it is committed, and the events of its journal: what a client is told, in which order (ADR-282). Pure.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from airflow_provider_nrllm.a2a.rules import State
from airflow_provider_nrllm.a2a.sealed import UnsealedValueError, is_sealed


@dataclass(frozen=True, slots=True)
class Task:
    """
    A task as it is committed.

    :param artifacts: the sealed artifacts; None where none are stored, empty where none were made
    :param status_at: when the status was reached, in Unix seconds
    :param is_withheld: whether it is shown without its content, which is not sealed, or of an unknown state
    """

    uid: int
    task_id: str
    context_id: str
    state: State
    revision: int
    reason: str
    status_message: str | None
    artifacts: tuple[str, ...] | None
    history: tuple[str, ...] | None
    status_at: int
    is_withheld: bool = False


def withheld(task: Task) -> Task:
    """Return a task without its content."""
    return replace(task, status_message=None, artifacts=None, history=None, is_withheld=True)


@dataclass(frozen=True, slots=True)
class TaskEvent:
    """
    One event of a task's journal: an artifact, or the status.

    :param position: its place in its revision: the artifacts from 0, the status last
    :param payload: the sealed artifact or status message; None where there is none, or it was scrubbed
    :param status_at: when the status was reached, in Unix seconds
    :param is_withheld: whether it is shown without its payload, which is not sealed
    """

    revision: int
    position: int
    kind: str
    state: State
    reason: str
    payload: str | None
    status_at: int
    is_withheld: bool = False


def events_of(task: Task) -> list[TaskEvent]:
    """
    Return the events of a task's revision: its artifacts in their order, and then, always, its status.

    :raises UnsealedValueError: where a value is not sealed; such a value never comes into the journal
    """
    payloads = [*(task.artifacts or ()), task.status_message]
    if not all(payload is None or is_sealed(payload) for payload in payloads):
        raise UnsealedValueError(f"a2a task {task.uid} has a value that is not sealed")
    last = len(payloads) - 1
    return [
        TaskEvent(
            revision=task.revision,
            position=position,
            kind="status" if position == last else "artifact",
            state=task.state,
            reason=task.reason,
            payload=payload,
            status_at=task.status_at,
        )
        for position, payload in enumerate(payloads)
    ]


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """
    An event of the journal of all tasks.

    :param uid: its place in that journal
    :param written_at: when it was written, in Unix seconds
    :param event: None where its task's run has gone: nobody is told of it
    """

    uid: int
    written_at: int
    task_id: str = ""
    context_id: str = ""
    event: TaskEvent | None = None


@dataclass(frozen=True, slots=True)
class JournalPage:
    """
    A page of the journal of all tasks, in the order of its writing.

    :param entries: what clients may be told of
    :param position: where the next page begins
    """

    entries: tuple[JournalEntry, ...]
    position: int


def page_of_entries(found: Iterable[JournalEntry], position: int, final_before: int) -> JournalPage:
    """
    Return the entries after a position, up to the first that another may still come before.

    A database hands out uids before it commits: behind a uid that is missing, a transaction may be on its way. Past a
    gap go only entries that were written so long ago that no transaction is as old.

    :param found: the entries after the position, in the order of uids
    :param final_before: no transaction that began before this second is still on its way
    """
    entries: list[JournalEntry] = []
    for entry in found:
        if entry.uid != position + 1 and entry.written_at >= final_before:
            break
        position = entry.uid
        if entry.event is not None:
            entries.append(entry)
    return JournalPage(tuple(entries), position)
