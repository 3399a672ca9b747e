"""
A task and its events as A2A 1.0 clients read them: ProtoJSON, with lowerCamelCase names.

A stored value is sealed, and shown as the artifact or message it is by a function that opens it. Nothing sealed is
ever shown. Pure.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from airflow_provider_nrllm.a2a.rules import Reason, Refusal, State, TaskNotFoundError
from airflow_provider_nrllm.a2a.sealed import Purpose, UnreadableError, Unseal
from airflow_provider_nrllm.a2a.tasks import Task, TaskEvent, withheld

log = logging.getLogger(__name__)

#: The last second that has a year of four digits.
_LATEST: Final = 253_402_300_799

#: What a client is told where there is no result, in place of a status message (ADR-282).
_TEXTS: Final = {
    Reason.NOT_RETAINABLE: "The result could not be kept under this installation's privacy policy.",
    Reason.NOT_STORED: "The result could not be stored.",
}
#: A reason that this version does not know hides nothing, and is handed on as it is.
_REASONS: Final = tuple(reason.value for reason in _TEXTS)
_SCRUBBED: Final = "The result is no longer kept under this installation's privacy policy."
_WITHHELD: Final = "The content of this task cannot be shown."


def task_json(
    task: Task, *, unseal: Unseal, history_length: int | None = None, include_artifacts: bool = True
) -> dict[str, Any]:
    """
    Return a task as GetTask shows it.

    :param unseal: what opens a sealed value; what it raises goes through
    :param history_length: how many messages of the history to show, the latest; None for all
    :param include_artifacts: False leaves the artifacts out, as ListTasks does unless asked
    """
    teller = _Teller(task.task_id, task.context_id, unseal)
    shown: dict[str, Any] = {
        "id": task.task_id,
        "contextId": task.context_id,
        "status": teller.status(task.state, task.status_at, task.status_message, task.reason, task.is_withheld),
    }
    if include_artifacts and task.artifacts and task.reason not in _REASONS:
        shown["artifacts"] = [teller.opened(value, Purpose.ARTIFACT) for value in task.artifacts]
    history = task.history or ()
    start = 0 if history_length is None else max(0, len(history) - history_length)
    if history[start:]:
        shown["history"] = [teller.opened(value, Purpose.HISTORY) for value in history[start:]]
    if task.reason:
        shown["metadata"] = {"reason": task.reason}
    return shown


def event_json(event: TaskEvent, task_id: str, context_id: str, *, unseal: Unseal) -> dict[str, Any] | None:
    """
    Return an event as a stream or a push carries it (``StreamResponse``); None where it has nothing to show.

    An artifact that was scrubbed has nothing to show; its task's status says why.

    :param unseal: what opens a sealed value; what it raises goes through
    """
    teller = _Teller(task_id, context_id, unseal)
    shown: dict[str, Any] = {"taskId": task_id, "contextId": context_id}
    if event.kind == "artifact":
        if event.payload is None:
            return None
        shown["artifact"] = teller.opened(event.payload, Purpose.ARTIFACT)
        shown["lastChunk"] = True
        return {"artifactUpdate": shown}
    shown["status"] = teller.status(event.state, event.status_at, event.payload, event.reason, event.is_withheld)
    if event.reason:
        shown["metadata"] = {"reason": event.reason}
    return {"statusUpdate": shown}


def list_json(
    tasks: Sequence[Task],
    *,
    next_page_token: str,
    page_size: int,
    total_size: int,
    unseal: Unseal,
    history_length: int | None = None,
    include_artifacts: bool = False,
) -> dict[str, Any]:
    """
    Return a page of tasks as ListTasks answers; a task whose values do not open is shown without them.

    :param next_page_token: where the next page begins; empty on the last one, and never left out
    :param page_size: how many tasks a page may have
    :param total_size: how many tasks there are on all pages
    """

    def shown(task: Task) -> dict[str, Any]:
        try:
            return task_json(task, unseal=unseal, history_length=history_length, include_artifacts=include_artifacts)
        except Exception as error:
            # Whatever it is, it must not keep the others from the client; its text may hold content.
            log.warning("A2A task %s is listed without its content: %s", task.uid, type(error).__name__)
            return task_json(withheld(task), unseal=unseal)

    return {
        "tasks": [shown(task) for task in tasks],
        "nextPageToken": next_page_token,
        "pageSize": page_size,
        "totalSize": total_size,
    }


def error_json(error: Refusal | TaskNotFoundError) -> dict[str, Any]:
    """
    Return an error as JSON-RPC carries it, with its reason as ``google.rpc.ErrorInfo``.

    The reason is in its metadata too, which is all that the A2A project's own client hands on.
    """
    if isinstance(error, Refusal):
        code, message, reason = error.code, error.message, error.reason.value
    else:
        code, message, reason = error.code, "Task not found", "TASK_NOT_FOUND"
    info = {
        "@type": "type.googleapis.com/google.rpc.ErrorInfo",
        "reason": reason,
        "domain": "a2a-protocol.org",
        "metadata": {"reason": reason},
    }
    return {"code": code, "message": message, "data": [info]}


def state_name(state: State) -> str:
    """Return a state's name on the wire."""
    return f"TASK_STATE_{state.name}"


def timestamp(seconds: int) -> str:
    """Return a time in UTC with milliseconds and ``Z``; the tables keep whole seconds."""
    return datetime.fromtimestamp(min(seconds, _LATEST), UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")


@dataclass(frozen=True, slots=True)
class _Teller:
    """Tells of one task: opens what is sealed, and words what is not there."""

    task_id: str
    context_id: str
    unseal: Unseal

    def opened(self, sealed: str, purpose: Purpose) -> dict[str, Any]:
        opened: object = json.loads(self.unseal(sealed, purpose, self.task_id))
        if not isinstance(opened, dict):
            raise UnreadableError("a value does not open to a JSON object")
        return opened

    def status(self, state: State, at: int, message: str | None, reason: str, is_withheld: bool) -> dict[str, Any]:
        status: dict[str, Any] = {"state": state_name(state)}
        if reason in _REASONS:
            # Whatever the row holds besides, a task that has lost its result shows no content.
            status["message"] = self._message(_text_for(state, Reason(reason)), reason)
        elif is_withheld:
            status["message"] = self._message(_WITHHELD, "withheld")
        elif message is not None:
            status["message"] = self.opened(message, Purpose.STATUS_MESSAGE)
        return {**status, "timestamp": timestamp(at)}

    def _message(self, text: str, why: str) -> dict[str, Any]:
        message = {
            "messageId": f"{self.task_id}-{why}",
            "contextId": self.context_id,
            "taskId": self.task_id,
            "role": "ROLE_AGENT",
            "parts": [{"text": text}],
        }
        return {**message, "metadata": {"reason": why}} if why in _REASONS else message


def _text_for(state: State, reason: Reason) -> str:
    """Return why there is no result: it was not kept, or was taken away after the task had ended well."""
    return _SCRUBBED if reason is Reason.NOT_RETAINABLE and state is not State.FAILED else _TEXTS[reason]
