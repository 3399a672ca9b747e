"""The JSON of a task and of its events, read by the A2A project's own library."""

from __future__ import annotations

import json
from typing import Any

import pytest
from a2a.client.transports.jsonrpc import JsonRpcTransport
from a2a.types import a2a_pb2
from a2a.utils.errors import JSON_RPC_ERROR_CODE_MAP, TaskNotFoundError, UnsupportedOperationError
from google.protobuf.json_format import MessageToDict, ParseDict

from airflow_provider_nrllm.a2a import rules as a2a
from airflow_provider_nrllm.a2a.rules import Reason, State
from airflow_provider_nrllm.a2a.sealed import UnreadableError
from airflow_provider_nrllm.a2a.tasks import Task, TaskEvent, events_of, withheld
from airflow_provider_nrllm.a2a.wire import (
    error_json,
    event_json,
    list_json,
    state_name,
    task_json,
    timestamp,
)
from tests.typo3.a2a_results import artifact, message, parsed, seal, task, unseal


def sealed_task(**changes: Any) -> Task:
    """Return a completed task whose values can be opened."""
    values: dict[str, Any] = {
        "artifacts": tuple(seal(json.dumps(artifact(text))) for text in ("one", "two")),
        "status_message": seal(json.dumps(message("done"))),
        "history": tuple(seal(json.dumps(message(text, "ROLE_USER"))) for text in ("first", "second", "third")),
    }
    return task(**{**values, **changes})


@pytest.mark.parametrize("state", [state for state in State if state is not State.UNSPECIFIED])
@pytest.mark.parametrize("change", [lambda stored: stored, withheld], ids=["whole", "withheld"])
@pytest.mark.parametrize("reason", [*Reason, "A_NEWER_ONE"])
def test_a_task_is_an_a2a_task(state: State, change: Any, reason: str) -> None:
    read = parsed(task_json(change(sealed_task(state=state, reason=str(reason))), unseal=unseal), a2a_pb2.Task)
    assert state_name(state) == a2a_pb2.TaskState.Name(read.status.state)


def test_an_opened_task_shows_what_was_sealed() -> None:
    shown = task_json(sealed_task(), unseal=unseal)
    read = parsed(shown, a2a_pb2.Task)
    assert [artifact("one"), artifact("two")] == shown["artifacts"]
    assert message("done") == shown["status"]["message"]
    assert ["first", "second", "third"] == [entry.parts[0].text for entry in read.history]


def test_what_opens_a_value_learns_what_it_is_for_and_of_which_task() -> None:
    asked = []

    def opener(value: str, purpose: str, task_id: str) -> str:
        asked.append((purpose, task_id))
        return unseal(value)

    stored = sealed_task()
    task_json(stored, unseal=opener)
    places = ["status_message", "artifact", "artifact", "history", "history", "history"]
    assert [(place, "task-1") for place in places] == asked
    asked.clear()
    for event in events_of(stored):
        event_json(event, "task-1", "context-1", unseal=opener)
    assert [(place, "task-1") for place in ("artifact", "artifact", "status_message")] == asked


def test_a_task_that_cannot_be_read_is_shown_without_its_content_and_says_so() -> None:
    shown = task_json(withheld(sealed_task()), unseal=unseal)
    assert {"id", "contextId", "status"} == shown.keys()
    message = {
        "messageId": "task-1-withheld",
        "contextId": "context-1",
        "taskId": "task-1",
        "role": "ROLE_AGENT",
        "parts": [{"text": "The content of this task cannot be shown."}],
    }
    assert message == shown["status"]["message"]


def test_a_state_that_is_not_known_is_none_that_a_client_could_take_for_another() -> None:
    shown = task_json(withheld(sealed_task(state=State.UNSPECIFIED)), unseal=unseal)
    assert "TASK_STATE_UNSPECIFIED" == shown["status"]["state"]


def test_one_task_whose_values_do_not_open_does_not_keep_the_others_from_a_page(
    caplog: pytest.LogCaptureFixture,
) -> None:
    broken = sealed_task(task_id="task-2", uid=2, artifacts=("nrv1:no hex",))
    shown = list_json(
        [sealed_task(), broken, sealed_task(task_id="task-3")],
        next_page_token="",
        page_size=50,
        total_size=3,
        unseal=unseal,
        include_artifacts=True,
    )["tasks"]
    assert [True, False, True] == ["artifacts" in each for each in shown]
    assert "The content of this task cannot be shown." == shown[1]["status"]["message"]["parts"][0]["text"]
    assert ["A2A task 2 is listed without its content: ValueError"] == caplog.messages


@pytest.mark.parametrize("opened", ['"text"', "[1]", "5", "null"])
def test_a_value_that_opens_to_no_object_is_withheld(opened: str) -> None:
    odd = sealed_task(status_message=seal(opened))
    with pytest.raises(UnreadableError):
        task_json(odd, unseal=unseal)
    shown = list_json([odd], next_page_token="", page_size=1, total_size=1, unseal=unseal)
    ParseDict(shown, a2a_pb2.ListTasksResponse())


@pytest.mark.parametrize(("length", "shown"), [(None, 3), (0, 0), (1, 1), (2, 2), (3, 3), (9, 3)])
def test_no_more_of_the_history_is_shown_than_is_asked_for(length: int | None, shown: int) -> None:
    history = task_json(sealed_task(), unseal=unseal, history_length=length).get("history", [])
    assert [message(text, "ROLE_USER") for text in ("first", "second", "third")][3 - shown :] == history


def test_the_artifacts_are_left_out_altogether_unless_they_are_asked_for() -> None:
    assert "artifacts" not in task_json(sealed_task(), unseal=unseal, include_artifacts=False)


@pytest.mark.parametrize("reason", [Reason.NOT_RETAINABLE, Reason.NOT_STORED])
def test_a_task_without_its_result_says_why_and_shows_nothing_of_its_own(reason: Reason) -> None:
    # Whatever its row holds against the rule.
    shown = task_json(sealed_task(state=State.FAILED, reason=reason.value, history=None), unseal=unseal)
    said = shown["status"]["message"]
    assert {"reason": reason.value} == shown["metadata"] == said["metadata"]
    assert ("task-1", "context-1") == (said["taskId"], said["contextId"])
    assert not {"done", "one", "two"} & set(json.dumps(shown).replace('"', " ").split())


def test_a_reason_that_is_not_known_hides_nothing_and_is_handed_on() -> None:
    shown = task_json(sealed_task(reason="A_NEWER_ONE"), unseal=unseal)
    assert {"reason": "A_NEWER_ONE"} == shown["metadata"]
    assert message("done") == shown["status"]["message"]
    assert [artifact("one"), artifact("two")] == shown["artifacts"]
    (*_, status) = [event_json(event, "task-1", "c", unseal=unseal) for event in events_of(sealed_task(reason="NEW"))]
    assert ({"reason": "NEW"}, message("done")) == (
        (status or {})["statusUpdate"]["metadata"], (status or {})["statusUpdate"]["status"]["message"]
    )  # fmt: skip


def test_a_result_under_a_tightened_ceiling_could_not_be_kept_under_the_privacy_policy() -> None:
    lost = task(state=State.FAILED, reason="RESULT_NOT_RETAINABLE", status_message=None, artifacts=None, history=None)
    shown = task_json(lost, unseal=unseal)
    assert ["The result could not be kept under this installation's privacy policy."] == [
        part["text"] for part in shown["status"]["message"]["parts"]
    ]


def test_a_task_that_made_no_artifacts_says_nothing_of_a_reason() -> None:
    shown = task_json(task(artifacts=(), status_message=None, history=None), unseal=unseal)
    assert {"id", "contextId", "status"} == shown.keys()
    assert {"state", "timestamp"} == shown["status"].keys()


@pytest.mark.parametrize("reason", Reason)
def test_every_event_is_an_a2a_stream_response(reason: Reason) -> None:
    shown = [
        event_json(event, "task-1", "context-1", unseal=unseal) for event in events_of(sealed_task(reason=reason.value))
    ]
    assert ["artifact_update", "artifact_update", "status_update"] == [
        parsed(event or {}, a2a_pb2.StreamResponse).WhichOneof("payload") for event in shown
    ]


def test_a_task_and_the_events_of_its_revision_tell_the_same() -> None:
    stored = sealed_task()
    shown = task_json(stored, unseal=unseal)
    events = [event_json(event, "task-1", "context-1", unseal=unseal) or {} for event in events_of(stored)]
    assert shown["artifacts"] == [event["artifactUpdate"]["artifact"] for event in events[:-1]]
    assert shown["status"] == events[-1]["statusUpdate"]["status"]


def test_a_scrubbed_artifact_has_nothing_to_show() -> None:
    scrubbed = TaskEvent(1, 0, "artifact", State.COMPLETED, "RESULT_NOT_RETAINABLE", None, 0)
    assert event_json(scrubbed, "task-1", "context-1", unseal=unseal) is None


@pytest.mark.parametrize("token", ["", "more"])
def test_a_page_of_tasks_is_an_a2a_answer_that_always_has_its_next_token(token: str) -> None:
    shown = list_json([sealed_task()], next_page_token=token, page_size=50, total_size=1, unseal=unseal)
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
    # What the client of the A2A project makes of it: it hands on the metadata alone.
    read = JsonRpcTransport._create_jsonrpc_error(None, shown)  # type: ignore[arg-type]
    assert (expected, {"reason": reason}) == (type(read), read.data)


def test_a_time_is_utc_with_milliseconds_and_a_z() -> None:
    assert "2023-11-14T22:13:20.000Z" == timestamp(1_700_000_000)
    assert "9999-12-31T23:59:59.000Z" == timestamp(10**14)
    status = ParseDict({"state": 1, "timestamp": timestamp(0)}, a2a_pb2.TaskStatus())
    assert MessageToDict(status)["timestamp"].startswith("1970-01-01T00:00:00")


def test_every_state_has_its_name_on_the_wire() -> None:
    assert set(a2a_pb2.TaskState.keys()) == {state_name(state) for state in State}
