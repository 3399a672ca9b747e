"""The rules of ADR-282, as values."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_nrllm.a2a import rules as a2a
from airflow_provider_nrllm.a2a.figures import RunFigures
from airflow_provider_nrllm.a2a.rules import Ceiling, Reason, RunState, State
from airflow_provider_nrllm.a2a.sealed import (
    Result,
    Sealed,
    UnsealedValueError,
    Unwritable,
    is_sealed,
    seal_result,
    sealed_values,
    stored_list,
)
from airflow_provider_nrllm.a2a.tasks import JournalEntry, TaskEvent, events_of, page_of_entries
from tests.typo3.a2a_results import DECISIONS, broken_seal, decision_name, no_seal, offered, result, seal, task


@pytest.mark.parametrize("case", DECISIONS, ids=decision_name)
def test_a_completion_ends_as_the_decision_table_says(case: dict[str, Any]) -> None:
    whole, redaction = offered(case)
    unwritable = Unwritable("RuntimeError")
    redacted_fails = case["result"] == "unwritable" or case.get("redacted") == "unwritable"
    decision = a2a.completion(
        RunState(case["run"]),
        a2a.strictest(case["ceiling"]),
        unwritable if case["result"] == "unwritable" else seal_result(whole, seal, "task-1"),
        None if redaction is None else unwritable if redacted_fails else seal_result(redaction, seal, "task-1"),
    )
    then = case["then"]
    stored = {
        "result": seal_result(whole, seal, "task-1"),
        "redacted": seal_result(redaction or whole, seal, "task-1"),
        "none made": Sealed(),
        "nothing": None,
    }[then["stored"]]
    state = None if then["task"] == "working" else State(then["task"])
    assert a2a.Decision(state, stored, Reason(then["reason"])) == decision


def test_the_decision_table_has_every_combination() -> None:
    combinations = {
        (ceiling, made, run)
        for ceiling in ("full", "redacted", "metadata", "none")
        for made in ("artifacts", "no artifacts", "unwritable")
        for run in ("alive", "lost", "cancelled")
    }
    assert combinations <= {(case["ceiling"], case["result"], case["run"]) for case in DECISIONS}


def test_only_an_unredacted_ceiling_keeps_what_was_said_before_it_was_redacted() -> None:
    whole, redacted = Sealed(("nrv1:whole",)), Sealed(("nrv1:less",))
    assert [whole, redacted, None, None] == [a2a.kept(ceiling, whole, redacted) for ceiling in Ceiling]


def test_a_result_of_nothing_but_a_message_is_a_result() -> None:
    assert a2a.kept(Ceiling.METADATA, Sealed(message="nrv1:m"), None) is None


def test_the_history_of_an_empty_result_is_not_kept_under_a_ceiling_that_keeps_nothing() -> None:
    assert Sealed() == a2a.kept(Ceiling.NONE, Sealed(history=("nrv1:h",)), None)


@pytest.mark.parametrize(
    ("names", "strictest"),
    [
        (("full",), "full"),
        (("full", "redacted"), "redacted"),
        (("none", "metadata"), "none"),
        (("full", "metadata"), "metadata"),
        (("full", "unheard of"), "none"),
        (("FULL",), "none"),
        (("",), "none"),
    ],
)
def test_the_strictest_of_several_ceilings_holds(names: tuple[str, ...], strictest: str) -> None:
    assert strictest == a2a.strictest(*names)


@pytest.mark.parametrize(
    ("status", "claim", "claimed_by", "expected"),
    [
        ("running", "", None, "alive"),
        ("running", "worker-1", "worker-1", "alive"),
        ("running", "worker-2", "worker-1", "lost"),
        ("running", "", "worker-1", "lost"),
        ("running", "worker-2", None, "lost"),
        ("queued", "", None, "lost"),
        ("waiting_for_approval", "", None, "lost"),
        ("waiting_for_input", "", None, "lost"),
        ("completed", "", None, "lost"),
        ("failed", "", None, "failed"),
        ("cancelled", "", None, "cancelled"),
        ("unheard of", "", None, "lost"),
        (None, "", None, "lost"),
    ],
)
def test_a_run_is_alive_while_it_runs_under_the_claim_that_asks(
    status: str | None, claim: str, claimed_by: str | None, expected: str
) -> None:
    assert expected == a2a.run_state(status, claim, claimed_by)


@pytest.mark.parametrize(
    ("ceiling", "redacts", "refused"),
    [
        ("full", True, False),
        ("full", False, False),
        ("redacted", True, False),
        ("redacted", False, True),
        ("metadata", True, True),
        ("none", True, True),
    ],
)
def test_a_profile_that_cannot_keep_a_result_is_refused(ceiling: str, redacts: bool, refused: bool) -> None:
    refusal = a2a.refusal(Ceiling(ceiling), redacts=redacts)
    assert ((-32004, "RESULT_NOT_RETAINABLE") if refused else None) == (
        refusal and (refusal.code, refusal.reason.value)
    )


def test_the_events_of_a_revision_are_its_artifacts_in_order_and_then_its_status() -> None:
    assert [(0, "artifact", "nrv1:a"), (1, "artifact", "nrv1:b"), (2, "status", "nrv1:m")] == [
        (event.position, event.kind, event.payload) for event in events_of(task())
    ]


@given(artifacts=st.none() | st.lists(st.text().map(seal).filter(is_sealed), max_size=5).map(tuple))
def test_a_revision_always_has_one_status_and_it_is_last(artifacts: tuple[str, ...] | None) -> None:
    events = events_of(task(artifacts=artifacts, status_message=None))
    assert [*["artifact"] * len(artifacts or ()), "status"] == [event.kind for event in events]
    assert list(range(len(events))) == [event.position for event in events]


@pytest.mark.parametrize("change", [{"artifacts": ("open text",)}, {"status_message": "open text"}])
def test_an_unsealed_value_never_becomes_an_event_or_a_message(change: dict[str, Any]) -> None:
    with pytest.raises(UnsealedValueError) as raised:
        events_of(task(**change))
    assert "open text" not in str(raised.value)


@pytest.mark.parametrize("stored", ["open text", '["open text"]', '{"a": "nrv1:x"}', '["nrv1:x", 1]', "", "null"])
def test_a_list_that_holds_anything_unsealed_is_not_read(stored: str) -> None:
    with pytest.raises(UnsealedValueError) as raised:
        sealed_values(stored)
    assert "open" not in str(raised.value)


@given(st.none() | st.lists(st.text(min_size=1).map(lambda text: f"nrv1:{text}")).map(tuple))
def test_a_stored_list_is_read_as_it_was_written(values: tuple[str, ...] | None) -> None:
    assert values == sealed_values(stored_list(values))


@pytest.mark.parametrize(
    ("value", "sealed"),
    [("nrv1:x", True), ("v2:x", True), ("nrv1:", False), ("V2:x", False), ("x nrv1:", False), (None, False)],
)
def test_a_sealed_value_is_known_by_its_beginning(value: object, sealed: bool) -> None:
    assert sealed is is_sealed(value)


@pytest.mark.parametrize(
    ("made", "sealer"),
    [
        (result(), broken_seal),
        (result(), no_seal),
        (result(), lambda *_: "nrv1:"),
        (Result(artifacts=({"parts": float("nan")},)), seal),
        (Result(message={"parts": object()}), seal),
    ],
)
def test_a_result_that_cannot_be_sealed_says_no_more_than_the_kind_of_error(made: Result, sealer: Any) -> None:
    unwritable = seal_result(made, sealer, "task-1")
    assert isinstance(unwritable, Unwritable)
    assert unwritable.error in {"RuntimeError", "UnsealedValueError", "ValueError", "TypeError"}


def test_a_sealed_result_holds_each_value_as_json() -> None:
    sealed = seal_result(Result(artifacts=({"artifactId": "ä", "parts": []},)), lambda text, *_: f"v2:{text}", "task-1")
    assert isinstance(sealed, Sealed)
    assert {"artifactId": "ä", "parts": []} == json.loads(sealed.artifacts[0].removeprefix("v2:"))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("iterations", -1),
        ("iterations", True),
        ("total_tokens", 2**32),
        ("total_prompt_tokens", 1.5),
        ("total_completion_tokens", "7"),
        ("truncated", 1),
        ("estimated_cost", -0.01),
        ("estimated_cost", 10_000),
        ("estimated_cost", float("nan")),
        ("estimated_cost", "1"),
        ("termination_reason", "x" * 33),
        ("termination_reason", "a\x00"),
        ("error_class", "x" * 256),
        ("error_class", 7),
    ],
)
def test_what_is_no_figure_of_a_run_is_refused_by_its_name(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=rf"figures.{name}.*; expected|figures.{name}: expected"):
        RunFigures(**{name: value}).columns()


def test_a_cost_is_rounded_to_what_its_column_takes() -> None:
    assert {"estimated_cost": Decimal("0.012346")} == RunFigures(estimated_cost=0.0123456789).columns()
    assert {"estimated_cost": Decimal("3.000000")} == RunFigures(estimated_cost=3).columns()


def written(*uids: int, at: int = 0) -> list[JournalEntry]:
    event = TaskEvent(1, 0, "status", State.WORKING, "", None, 0)
    return [JournalEntry(uid, at, "task-1", "context-1", event) for uid in uids]


@pytest.mark.parametrize(
    ("found", "position", "expected"),
    [
        (written(1, 2, 3, at=100), 0, ([1, 2, 3], 3)),
        (written(1, 3, at=100), 0, ([1], 1)),
        (written(2, 3, at=100), 0, ([], 0)),
        (written(2, 5, at=99), 0, ([2, 5], 5)),
        (written(2, at=99) + written(3, at=100) + written(5, at=100), 0, ([2, 3], 3)),
        (written(8, 9, at=100), 7, ([8, 9], 9)),
        ([JournalEntry(8, 100), *written(9, at=100)], 7, ([9], 9)),
        ([], 7, ([], 7)),
    ],
)
def test_behind_a_missing_event_go_only_those_written_so_long_ago_that_it_does_not_come(
    found: list[JournalEntry], position: int, expected: tuple[list[int], int]
) -> None:
    page = page_of_entries(found, position, final_before=100)
    assert expected == ([entry.uid for entry in page.entries], page.position)


@pytest.mark.parametrize(
    ("setting", "tightened", "expected"),
    [
        ("metadata", (), "full"),
        ("full", (), "full"),
        ("redacted", (), "redacted"),
        ("none", (), "none"),
        ("metadata", ("redacted",), "redacted"),
        ("metadata", ("full", "metadata"), "metadata"),
        ("a newer one", (), "none"),
    ],
)
def test_the_default_setting_lets_answers_be_kept_until_provider_or_task_tighten_it(setting, tightened, expected):
    assert expected == a2a.answer_ceiling(setting, *tightened)
