"""The JSON of a task and of its events, read by the A2A project's own library."""

from __future__ import annotations

import json
from typing import Any

import pytest
from a2a.types import a2a_pb2
from a2a.utils.errors import JSON_RPC_ERROR_CODE_MAP, TaskNotFoundError, UnsupportedOperationError
from google.protobuf.json_format import MessageToDict, ParseDict

from airflow_provider_nrllm.a2a import rules as a2a
from airflow_provider_nrllm.a2a.rules import Reason, State
from airflow_provider_nrllm.a2a.wire import (
    SEALED_MEDIA_TYPE,
    error_json,
    event_json,
    list_json,
    state_name,
    task_json,
    timestamp,
)
from tests.typo3.a2a_results import artifact, message, parsed, seal, task, unseal


def sealed_task(**changes: Any) -> a2a.Task:
    """Return a completed task whose values can be opened."""
    values: dict[str, Any] = {
        "artifacts": tuple(seal(json.dumps(artifact(text))) for text in ("one", "two")),
        "status_message": seal(json.dumps(message("done"))),
        "history": tuple(seal(json.dumps(message(text, "ROLE_USER"))) for text in ("first", "second", "third")),
    }
    return task(**{**values, **changes})


@pytest.mark.parametrize("state", State)
@pytest.mark.parametrize("opener", [unseal, None])
@pytest.mark.parametrize("reason", Reason)
def test_a_task_is_an_a2a_task(state: State, opener: Any, reason: Reason) -> None:
    read = parsed(task_json(sealed_task(state=state, reason=reason.value), unseal=opener), a2a_pb2.Task)
    assert state_name(state) == a2a_pb2.TaskState.Name(read.status.state)


def test_an_opened_task_shows_what_was_sealed() -> None:
    shown = task_json(sealed_task(), unseal=unseal)
    read = parsed(shown, a2a_pb2.Task)
    assert [artifact("one"), artifact("two")] == shown["artifacts"]
    assert message("done") == shown["status"]["message"]
    assert ["first", "second", "third"] == [entry.parts[0].text for entry in read.history]


def test_an_unopened_task_carries_its_envelopes_and_says_so() -> None:
    stored = sealed_task()
    shown = task_json(stored)
    parts = [entry["parts"][0] for entry in [*shown["artifacts"], shown["status"]["message"], *shown["history"]]]
    assert [*(stored.artifacts or ()), stored.status_message, *(stored.history or ())] == [
        part["text"] for part in parts
    ]
    assert {SEALED_MEDIA_TYPE} == {part["mediaType"] for part in parts}


@pytest.mark.parametrize(("length", "shown"), [(None, 3), (0, 0), (1, 1), (2, 2), (3, 3), (9, 3)])
def test_no_more_of_the_history_is_shown_than_is_asked_for(length: int | None, shown: int) -> None:
    history = task_json(sealed_task(), unseal=unseal, history_length=length).get("history", [])
    assert [message(text, "ROLE_USER") for text in ("first", "second", "third")][3 - shown :] == history


def test_the_artifacts_are_left_out_altogether_unless_they_are_asked_for() -> None:
    assert "artifacts" not in task_json(sealed_task(), include_artifacts=False)


@pytest.mark.parametrize("reason", [Reason.NOT_RETAINABLE, Reason.NOT_STORED])
@pytest.mark.parametrize("opener", [unseal, None])
def test_a_task_without_its_result_says_why_and_shows_no_message_of_its_own(reason: Reason, opener: Any) -> None:
    failed = sealed_task(state=State.FAILED, reason=reason.value, artifacts=None, history=None)
    shown = task_json(failed, unseal=opener)
    assert {"reason": reason.value} == shown["metadata"] == shown["status"]["message"]["metadata"]
    assert failed.status_message not in json.dumps(shown)
    assert "done" not in json.dumps(shown)


def test_a_result_under_a_tightened_ceiling_could_not_be_kept_under_the_privacy_policy() -> None:
    shown = task_json(task(state=State.FAILED, reason="RESULT_NOT_RETAINABLE", status_message=None, artifacts=None))
    assert ["The result could not be kept under this installation's privacy policy."] == [
        part["text"] for part in shown["status"]["message"]["parts"]
    ]


def test_a_task_that_made_no_artifacts_says_nothing_of_a_reason() -> None:
    shown = task_json(task(artifacts=(), status_message=None, history=None))
    assert {"id", "contextId", "status"} == shown.keys()
    assert {"state", "timestamp"} == shown["status"].keys()


@pytest.mark.parametrize("opener", [unseal, None])
@pytest.mark.parametrize("reason", Reason)
def test_every_event_is_an_a2a_stream_response(opener: Any, reason: Reason) -> None:
    shown = [
        event_json(event, "task-1", "context-1", unseal=opener)
        for event in a2a.events_of(sealed_task(reason=reason.value))
    ]
    assert ["artifact_update", "artifact_update", "status_update"] == [
        parsed(event or {}, a2a_pb2.StreamResponse).WhichOneof("payload") for event in shown
    ]


def test_a_task_and_the_events_of_its_revision_tell_the_same() -> None:
    stored = sealed_task()
    shown = task_json(stored, unseal=unseal)
    events = [event_json(event, "task-1", "context-1", unseal=unseal) or {} for event in a2a.events_of(stored)]
    assert shown["artifacts"] == [event["artifactUpdate"]["artifact"] for event in events[:-1]]
    assert shown["status"] == events[-1]["statusUpdate"]["status"]


def test_a_scrubbed_artifact_has_nothing_to_show() -> None:
    scrubbed = a2a.TaskEvent(1, 0, "artifact", State.COMPLETED, "RESULT_NOT_RETAINABLE", None, 0)
    assert event_json(scrubbed, "task-1", "context-1") is None


@pytest.mark.parametrize("token", ["", "more"])
def test_a_page_of_tasks_is_an_a2a_answer_that_always_has_its_next_token(token: str) -> None:
    shown = list_json([sealed_task()], next_page_token=token, page_size=50, total_size=1)
    parsed(shown["tasks"][0], a2a_pb2.Task)
    ParseDict(shown, a2a_pb2.ListTasksResponse())
    assert token == shown["nextPageToken"]


@pytest.mark.parametrize(
    ("error", "expected", "reason"),
    [
        (a2a.Refusal(), UnsupportedOperationError, "RESULT_NOT_RETAINABLE"),
        (a2a.TaskNotFoundError("task-1"), TaskNotFoundError, "TASK_NOT_FOUND"),
    ],
)
def test_an_error_has_the_code_and_the_reason_of_a2a(error: Any, expected: Any, reason: str) -> None:
    shown = error_json(error)
    assert (JSON_RPC_ERROR_CODE_MAP[expected], reason) == (shown["code"], shown["data"][0]["reason"])


def test_a_time_is_utc_with_milliseconds_and_a_z() -> None:
    assert "2023-11-14T22:13:20.000Z" == timestamp(1_700_000_000)
    status = ParseDict({"state": 1, "timestamp": timestamp(0)}, a2a_pb2.TaskStatus())
    assert MessageToDict(status)["timestamp"].startswith("1970-01-01T00:00:00")


def test_every_state_has_its_name_on_the_wire() -> None:
    assert {state_name(state) for state in State} == set(a2a_pb2.TaskState.keys()) - {"TASK_STATE_UNSPECIFIED"}
