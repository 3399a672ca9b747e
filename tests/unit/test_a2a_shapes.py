"""A result that no client can read is an error of who hands it in, before anything is locked."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_nrllm.a2a.sealed import Result
from airflow_provider_nrllm.a2a.shapes import MOST_ARTIFACTS, check_result
from tests.typo3.a2a_results import artifact, message, result

SECRET = "what the run wrote"


def parts(**part: Any) -> dict[str, Any]:
    return {"artifactId": "a", "parts": [part]}


def test_a_result_of_a2a_passes():
    check_result(result())
    check_result(Result())
    check_result(
        Result(artifacts=(parts(data={"n": 1, "x": 1.5}), {**parts(url="https://example.org"), "artifactId": "b"}))
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
