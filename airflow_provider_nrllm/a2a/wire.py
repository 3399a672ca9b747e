"""
A task and its events as A2A 1.0 clients read them: ProtoJSON, with lowerCamelCase names.

A stored value is sealed. With a function that opens it, it becomes the artifact or message it is; without one
it travels unopened, as the one part of an artifact or message, marked by its media type. Pure.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from airflow_provider_nrllm.a2a.rules import Reason, Refusal, State, Task, TaskEvent, TaskNotFoundError

Unseal = Callable[[str], str]

#: The media type of a part that holds a sealed value.
SEALED_MEDIA_TYPE: Final = "application/vnd.nr-vault.envelope"

#: What a client is told where there is no result, in place of a status message (ADR-282).
_TEXTS: Final = {
    Reason.NOT_RETAINABLE: "The result could not be kept under this installation's privacy policy.",
    Reason.NOT_STORED: "The result could not be stored.",
}
_SCRUBBED: Final = "The result is no longer kept under this installation's privacy policy."


def task_json(
    task: Task,
    *,
    unseal: Unseal | None = None,
    history_length: int | None = None,
    include_artifacts: bool = True,
) -> dict[str, Any]:
    """
    Return a task as GetTask shows it.

    :param unseal: what opens a sealed value; without it, values travel unopened
    :param history_length: how many messages of the history to show, the latest; None for all
    :param include_artifacts: False leaves the artifacts out, as ListTasks does unless asked
    """
    shown: dict[str, Any] = {
        "id": task.task_id,
        "contextId": task.context_id,
        "status": _status(task.state, task.status_at, task.status_message, task.reason, task.task_id, unseal),
    }
    if include_artifacts and task.artifacts:
        shown["artifacts"] = [
            _artifact(value, f"{task.task_id}-{position}", unseal) for position, value in enumerate(task.artifacts)
        ]
    history = task.history or ()
    start = 0 if history_length is None else max(0, len(history) - history_length)
    if history[start:]:
        shown["history"] = [
            _message(value, f"{task.task_id}-history-{place}", unseal)
            for place, value in enumerate(history[start:], start)
        ]
    if task.reason:
        shown["metadata"] = {"reason": task.reason}
    return shown


def event_json(
    event: TaskEvent, task_id: str, context_id: str, *, unseal: Unseal | None = None
) -> dict[str, Any] | None:
    """
    Return an event as a stream or a push carries it (``StreamResponse``); None where it has nothing to show.

    An artifact that was scrubbed has nothing to show; its task's status says why.

    :param unseal: what opens a sealed value; without it, values travel unopened
    """
    shown: dict[str, Any] = {"taskId": task_id, "contextId": context_id}
    if event.kind == "artifact":
        if event.payload is None:
            return None
        shown["artifact"] = _artifact(event.payload, f"{task_id}-{event.position}", unseal)
        shown["lastChunk"] = True
        return {"artifactUpdate": shown}
    shown["status"] = _status(event.state, event.status_at, event.payload, event.reason, task_id, unseal)
    if event.reason:
        shown["metadata"] = {"reason": event.reason}
    return {"statusUpdate": shown}


def list_json(
    tasks: Sequence[Task],
    *,
    next_page_token: str,
    page_size: int,
    total_size: int,
    unseal: Unseal | None = None,
    history_length: int | None = None,
    include_artifacts: bool = False,
) -> dict[str, Any]:
    """
    Return a page of tasks as ListTasks answers.

    :param next_page_token: where the next page begins; empty on the last one, and never left out
    :param page_size: how many tasks a page may have
    :param total_size: how many tasks there are on all pages
    """
    return {
        "tasks": [
            task_json(task, unseal=unseal, history_length=history_length, include_artifacts=include_artifacts)
            for task in tasks
        ],
        "nextPageToken": next_page_token,
        "pageSize": page_size,
        "totalSize": total_size,
    }


def error_json(error: Refusal | TaskNotFoundError) -> dict[str, Any]:
    """Return an error as JSON-RPC carries it, with its reason as ``google.rpc.ErrorInfo``."""
    if isinstance(error, Refusal):
        code, message, reason = error.code, error.message, error.reason.value
    else:
        code, message, reason = error.code, "Task not found", "TASK_NOT_FOUND"
    info = {
        "@type": "type.googleapis.com/google.rpc.ErrorInfo",
        "reason": reason,
        "domain": "a2a-protocol.org",
    }
    return {"code": code, "message": message, "data": [info]}


def state_name(state: State) -> str:
    """Return a state's name on the wire."""
    return f"TASK_STATE_{state.name}"


def timestamp(seconds: int) -> str:
    """Return a time in UTC with milliseconds and ``Z``; the tables keep whole seconds."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")


def _status(
    state: State, at: int, message: str | None, reason: str, task_id: str, unseal: Unseal | None
) -> dict[str, Any]:
    status: dict[str, Any] = {"state": state_name(state)}
    if reason:
        # Whatever the row holds besides, a task with a reason shows no content.
        status["message"] = _reason_message(state, reason, task_id)
    elif message is not None:
        status["message"] = _message(message, f"{task_id}-status", unseal)
    return {**status, "timestamp": timestamp(at)}


def _reason_message(state: State, reason: str, task_id: str) -> dict[str, Any]:
    text = _TEXTS[Reason.NOT_STORED if reason == Reason.NOT_STORED else Reason.NOT_RETAINABLE]
    return {
        "messageId": f"{task_id}-{reason}",
        "taskId": task_id,
        "role": "ROLE_AGENT",
        "parts": [{"text": text if state is State.FAILED else _SCRUBBED}],
        "metadata": {"reason": reason},
    }


def _artifact(sealed: str, identifier: str, unseal: Unseal | None) -> dict[str, Any]:
    return _opened(sealed, unseal) if unseal else {"artifactId": identifier, "parts": [_sealed_part(sealed)]}


def _message(sealed: str, identifier: str, unseal: Unseal | None) -> dict[str, Any]:
    if unseal:
        return _opened(sealed, unseal)
    # Who wrote a sealed message is sealed with it.
    return {"messageId": identifier, "role": "ROLE_AGENT", "parts": [_sealed_part(sealed)]}


def _sealed_part(sealed: str) -> dict[str, Any]:
    return {"text": sealed, "mediaType": SEALED_MEDIA_TYPE}


def _opened(sealed: str, unseal: Unseal) -> dict[str, Any]:
    opened: dict[str, Any] = json.loads(unseal(sealed))
    return opened
