"""A result that no client can read is an error of who hands it in, before anything is locked."""

from __future__ import annotations

from typing import Any

import pytest
from a2a.types import a2a_pb2
from google.protobuf.json_format import ParseDict
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_provider_nrllm.a2a.sealed import Result
from airflow_provider_nrllm.a2a.shapes import MOST_ARTIFACTS, MOST_LEVELS, check_result
from tests.typo3.a2a_results import artifact, message, parsed, result

SECRET = "what the run wrote"


def parts(**part: Any) -> dict[str, Any]:
    return {"artifactId": "a", "parts": [part]}


def nested(levels: int) -> Any:
    return {"in": nested(levels - 1)} if levels else 1


#: Values near to what each field may be.
ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=2), inner, max_size=2),
    max_leaves=4,
)
PART = st.dictionaries(
    st.sampled_from(["text", "raw", "url", "data", "metadata", "filename", "mediaType", "kind"]), ANY
)
ARTIFACT = st.fixed_dictionaries(
    {"artifactId": st.just("a"), "parts": st.lists(PART | st.just({"text": "x"}), min_size=1, max_size=2)},
    optional=dict.fromkeys(("name", "description", "metadata", "extensions", "lastChunk"), ANY),
)


@settings(max_examples=500, deadline=None)
@given(ARTIFACT)
def test_what_passes_is_read_by_the_client_of_the_a2a_project(artifact: dict[str, Any]) -> None:
    try:
        check_result(Result(artifacts=(artifact,)))
    except ValueError:
        return
    read = parsed(artifact, a2a_pb2.Artifact)
    assert read == a2a_pb2.Artifact.FromString(read.SerializeToString())


def test_a_value_as_deep_as_may_be_is_read_by_the_client_of_the_a2a_project():
    deep = parts(data=nested(MOST_LEVELS), metadata=nested(MOST_LEVELS))
    check_result(Result(artifacts=(deep,)))
    page = {"tasks": [{"id": "t", "status": {"state": "TASK_STATE_COMPLETED"}, "artifacts": [deep]}]}
    read = ParseDict(page, a2a_pb2.ListTasksResponse())
    assert read == a2a_pb2.ListTasksResponse.FromString(read.SerializeToString())


def test_a_result_of_a2a_passes():
    check_result(result())
    check_result(Result())
    check_result(
        Result(
            artifacts=(
                parts(data={"n": 1, "x": [1.5, None]}, metadata={"n": None}),
                {**parts(url="https://example.org"), "artifactId": "b", "name": "", "extensions": ["x"]},
                {**parts(raw="YQ==", filename="a", mediaType="text/plain"), "artifactId": "c", "metadata": {}},
            )
        )
    )


@pytest.mark.parametrize(
    ("given", "place"),
    [
        (Result(artifacts={"artifactId": "a", "parts": [{"text": SECRET}]}), "artifacts: a dict"),
        (Result(artifacts=SECRET), "artifacts: a str"),
        (Result(artifacts=(SECRET,)), r"artifacts\[0\]: a str"),
        (Result(artifacts=({"parts": [{"text": SECRET}]},)), r"artifacts\[0\].artifactId"),
        (Result(artifacts=({"artifactId": 7, "parts": [{"text": SECRET}]},)), r"artifacts\[0\].artifactId"),
        (Result(artifacts=({"artifactId": "a"},)), r"artifacts\[0\].parts"),
        (Result(artifacts=({"artifactId": "a", "parts": []},)), r"artifacts\[0\].parts"),
        (Result(artifacts=({"artifactId": "a", "parts": SECRET},)), r"artifacts\[0\].parts"),
        (Result(artifacts=(parts(),)), r"parts\[0\]"),
        (Result(artifacts=(parts(text=SECRET, data={}),)), r"parts\[0\]"),
        (Result(artifacts=(parts(text=7),)), r"parts\[0\].text"),
        (
            Result(artifacts=(artifact(SECRET), artifact(SECRET))),
            r"artifacts\[1\].artifactId: the one of an artifact before",
        ),
        (Result(message=SECRET), "message: a str"),
        (Result(message={**message(SECRET), "role": "agent"}), "message.role"),
        (Result(message={**message(SECRET), "messageId": ""}), "message.messageId"),
        (Result(history=(message(SECRET), {**message(SECRET), "role": None})), r"history\[1\].role"),
        (Result(history=message(SECRET)), "history: a dict"),
        (Result(message=message(f"{SECRET} \ud800")), "lone surrogate"),
        (Result(artifacts=(parts(data={"n": float("nan")}),)), "JSON that a client reads"),
        (Result(artifacts=(parts(data={"n": float("inf")}),)), "JSON that a client reads"),
        (Result(artifacts=(parts(data={"n": 10**400}),)), "JSON that a client reads"),
        (Result(artifacts=(parts(data={"n": object()}),)), "JSON that a client reads"),
        (Result(artifacts=({**parts(text="x"), SECRET: 1},)), r"artifacts\[0\]: 1 fields that A2A 1.0 does not have"),
        (Result(artifacts=(parts(text="x", **{SECRET: 1}),)), r"parts\[0\]: 1 fields"),
        (Result(artifacts=(parts(text="x", media_type="text/plain"),)), r"parts\[0\]: 1 fields"),
        (Result(message={**message("x"), SECRET: 1}), "message: 1 fields"),
        (Result(artifacts=({**parts(text="x"), "metadata": SECRET},)), "metadata: a str; expected a mapping"),
        (Result(artifacts=({**parts(text="x"), "metadata": {7: SECRET}},)), "metadata: a dict; expected names"),
        (Result(artifacts=({**parts(text="x"), "name": 7},)), "name: a int; expected a text"),
        (Result(artifacts=({**parts(text="x"), "description": None},)), "description: a NoneType; expected a text"),
        (Result(artifacts=({**parts(text="x"), "extensions": SECRET},)), "extensions: a str; expected a list of texts"),
        (Result(artifacts=({**parts(text="x"), "extensions": [7]},)), "extensions: a list; expected a list of texts"),
        (Result(artifacts=(parts(text="x", filename=7),)), "filename: a int"),
        (Result(artifacts=(parts(text="x", mediaType=7),)), "mediaType: a int"),
        (Result(artifacts=(parts(raw="no base64!"),)), r"parts\[0\].raw: a str; expected bytes as base64"),
        (Result(artifacts=(parts(raw=b"YQ=="),)), r"parts\[0\].raw: a bytes; expected a text"),
        (Result(message={**message("x"), "taskId": 7}), "message.taskId: a int"),
        (Result(message={**message("x"), "referenceTaskIds": "x"}), "message.referenceTaskIds: a str"),
        (Result(artifacts=(parts(data=nested(31)),)), "data: a dict; expected at most 30 levels"),
    ],
)
def test_anything_else_is_refused_by_its_place_and_without_its_content(given, place):
    with pytest.raises(ValueError, match=place) as refused:
        check_result(given)
    assert SECRET not in str(refused.value)


def test_more_artifacts_than_the_journal_can_number_are_refused():
    one = {"parts": [{"text": "x"}]}
    check_result(Result(artifacts=tuple({**one, "artifactId": str(n)} for n in range(MOST_ARTIFACTS))))
    with pytest.raises(ValueError, match="32768; expected at most 32767"):
        check_result(Result(artifacts=tuple({**one, "artifactId": str(n)} for n in range(MOST_ARTIFACTS + 1))))
