"""A result is stored with its run's completion, or the run is not completed."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest
from sqlalchemy import insert, text, update

from airflow_provider_nrllm.a2a.figures import RunFigures
from airflow_provider_nrllm.a2a.rules import State, TaskNotFoundError
from airflow_provider_nrllm.a2a.sealed import Result
from airflow_provider_nrllm.hooks.a2a import NrLlmA2AHook
from tests.typo3.a2a_results import (
    DECISIONS,
    artifact,
    broken_seal,
    decision_name,
    logged,
    message,
    no_seal,
    offered,
    result,
    seal,
    unseal,
)
from tests.typo3.a2a_sites import hook_of
from tests.typo3.a2a_tables import NOW, add_task, row_of, rows_of, run, task
from tests.typo3.sites import Site

RUNS: dict[str, dict[str, Any]] = {
    "alive": {"status": "running", "claimed_by": "worker-1"},
    "lost": {"status": "running", "claimed_by": "worker-2"},
    "cancelled": {"status": "cancelled", "claimed_by": ""},
    "failed": {"status": "failed", "claimed_by": ""},
}


def texts(stored: str | None) -> list[str] | None:
    """Return the texts of a stored list of artifacts or messages."""
    return None if stored is None else [json.loads(unseal(value))["parts"][0]["text"] for value in json.loads(stored)]


def ended(site: Site, hook: NrLlmA2AHook, uid: int, case: dict[str, Any]) -> list[Any]:
    """Complete a task as a case says, and return what it became of it in the words of the case."""
    task_id = add_task(site.engine, uid, ceiling=case["ceiling"], run_row=RUNS[case["run"]])
    whole, redaction = offered(case)

    def sealer(text: str, *_place: str) -> str:
        fails = case["result"] == "unwritable" or (case.get("redacted") == "unwritable" and "redacted" in text)
        return broken_seal(text) if fails else seal(text)

    done = hook.complete(task_id, whole, seal=sealer, redacted=redaction, claimed_by="worker-1", now=NOW + 60)
    stored, run_row = row_of(site.engine, task, uid), row_of(site.engine, run, uid + 1000)
    assert (done.state, done.reason, 1 + done.changed) == (stored["state"], stored["reason"], stored["revision"])
    said = str([stored, run_row])
    return [
        run_row["status"],
        stored["state"],
        texts(stored["artifacts"]),
        stored["reason"],
        [kind for kind in ("secret", "redacted") if kind.encode().hex() in said],
    ]


def test_run_and_task_end_as_the_decision_table_says(a2a_site: Site) -> None:
    hook = hook_of(a2a_site)
    wrong = []
    for uid, case in enumerate(DECISIONS, start=1):
        then = case["then"]
        artifacts, content = {
            "result": (["secret one", "secret two"], ["secret"]),
            "redacted": (["redacted one", "redacted two"], ["redacted"]),
            "none made": ([], []),
            "nothing": (None, []),
        }[then["stored"]]
        expected = [then["run"], then["task"], artifacts, then["reason"], content]
        if expected != (found := ended(a2a_site, hook, uid, case)):
            wrong.append((decision_name(case), expected, found))
    assert [] == wrong
    assert [] == hook.check(lag=10**10, now=NOW)[0]


def test_an_ended_run_is_held_by_no_worker_and_keeps_neither_its_state_nor_its_request(a2a_site: Site) -> None:
    held = {"status": "running", "claimed_by": "w", "lease_expires": NOW}
    held |= {"suspended_state": "state", "queued_request": "the prompt"}
    task_id = add_task(a2a_site.engine, run_row=held)
    hook_of(a2a_site).complete(task_id, result(), seal=seal, claimed_by="w", now=NOW + 60)
    ended = row_of(a2a_site.engine, run, 1001)
    names = ("status", "finished_at", "tstamp", "claimed_by", "lease_expires", "suspended_state", "queued_request")
    assert ("completed", NOW + 60, NOW + 60, "", 0, None, None) == tuple(ended[name] for name in names)


def test_the_request_of_a_run_whose_result_may_not_be_kept_is_gone(a2a_site: Site) -> None:
    task_id = add_task(a2a_site.engine, run_row={"queued_request": "the prompt"}, ceiling="none")
    assert State.FAILED is hook_of(a2a_site).complete(task_id, result(), seal=seal, now=NOW).state
    assert row_of(a2a_site.engine, run, 1001)["queued_request"] is None


def test_a_run_that_a_worker_holds_is_not_ended_by_one_that_holds_none(a2a_site: Site) -> None:
    task_id = add_task(a2a_site.engine, run_row={"claimed_by": "worker-2"})
    assert not hook_of(a2a_site).complete(task_id, result(), seal=seal, now=NOW).changed
    assert not hook_of(a2a_site).fail(task_id, now=NOW).changed
    assert "running" == row_of(a2a_site.engine, run, 1001)["status"]


def test_a_result_of_another_shape_is_the_callers_error_and_nothing_is_written(a2a_site: Site) -> None:
    task_id = add_task(a2a_site.engine)
    before = rows_of(a2a_site.engine, task), rows_of(a2a_site.engine, run)
    with pytest.raises(ValueError, match="artifacts"):
        hook_of(a2a_site).complete(task_id, Result(artifacts="answer"), seal=seal, now=NOW)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="role"):
        hook_of(a2a_site).fail(task_id, message=message("x", "agent"), seal=seal, now=NOW)
    assert before == (rows_of(a2a_site.engine, task), rows_of(a2a_site.engine, run))


@pytest.mark.parametrize("task_id", ["TASK-1", "task-1 ", "tásk-1", "task-1\x00", "\ud800", 1, None])
def test_a_task_is_found_by_its_id_to_the_letter(a2a_site: Site, task_id: Any) -> None:
    add_task(a2a_site.engine)
    hook = hook_of(a2a_site)
    with pytest.raises(TaskNotFoundError):
        hook.task(task_id)
    with pytest.raises(TaskNotFoundError):
        hook.events(task_id)
    with pytest.raises(TaskNotFoundError):
        hook.complete(task_id, result(), seal=seal, now=NOW)
    assert "task-1" == hook.task("task-1").task_id


def test_a_completion_repeated_leaves_what_is_stored(a2a_site: Site) -> None:
    task_id = add_task(a2a_site.engine)
    hook = hook_of(a2a_site)
    hook.complete(task_id, result("first"), seal=seal, now=NOW + 60)
    before = rows_of(a2a_site.engine, task), rows_of(a2a_site.engine, run)
    again = hook.complete(task_id, result("second"), seal=seal, now=NOW + 90)
    assert ("completed", False) == (again.state, again.changed)
    assert before == (rows_of(a2a_site.engine, task), rows_of(a2a_site.engine, run))


def test_nothing_comes_after_a_terminal_state(a2a_site: Site) -> None:
    hook = hook_of(a2a_site)
    states = ["completed", "failed", "canceled", "rejected"]
    ids = [add_task(a2a_site.engine, uid, state=state, artifacts="[]") for uid, state in enumerate(states, start=1)]
    before = rows_of(a2a_site.engine, task), rows_of(a2a_site.engine, run)
    for task_id, state in zip(ids, states, strict=True):
        for done in (hook.complete(task_id, result(), seal=seal), hook.fail(task_id)):
            assert (state, False) == (done.state, done.changed)
    assert before == (rows_of(a2a_site.engine, task), rows_of(a2a_site.engine, run))


def test_the_ceiling_that_holds_is_the_stricter_of_the_tasks_and_the_installations(a2a_site: Site) -> None:
    task_id = add_task(a2a_site.engine, ceiling="full")
    done = hook_of(a2a_site).complete(task_id, result(), seal=seal, ceiling=lambda: "metadata")
    stored = row_of(a2a_site.engine, task, 1)
    assert ("failed", "RESULT_NOT_RETAINABLE") == (done.state, done.reason)
    assert ("metadata", None, None, None) == tuple(
        stored[name] for name in ("ceiling", "artifacts", "status_message", "history")
    )


def test_a_ceiling_that_was_tightened_since_the_task_was_made_holds(a2a_site: Site) -> None:
    task_id = add_task(a2a_site.engine, ceiling="full")
    with a2a_site.engine.begin() as connection:
        connection.execute(update(task).values(ceiling="none"))
    assert "failed" == hook_of(a2a_site).complete(task_id, result(), seal=seal).state


def test_a_result_is_kept_after_an_approval_too(a2a_site: Site) -> None:
    # An approved run goes on under the lease of the worker that resumed it.
    task_id = add_task(a2a_site.engine, state="input_required", run_row={"status": "waiting_for_approval"})
    hook = hook_of(a2a_site)
    assert not hook.complete(task_id, result(), seal=seal).changed
    with a2a_site.engine.begin() as connection:
        connection.execute(update(run).values(status="running", claimed_by="worker-2", lease_expires=NOW))
        connection.execute(update(task).values(state="working", revision=2))
    assert "completed" == hook.complete(task_id, result(), seal=seal, claimed_by="worker-2").state
    assert ["secret one", "secret two"] == texts(row_of(a2a_site.engine, task, 1)["artifacts"])


@pytest.mark.parametrize(
    ("ceiling", "history"),
    [
        ("full", ["asked", "secret asked", "secret done"]),
        ("redacted", ["asked", "redacted asked", "redacted done"]),
        ("metadata", None),
        ("none", None),
    ],
)
def test_the_history_follows_the_ceiling(a2a_site: Site, ceiling: str, history: list[str] | None) -> None:
    task_id = add_task(a2a_site.engine, ceiling=ceiling)
    hook_of(a2a_site).complete(task_id, result(), seal=seal, redacted=result("redacted"))
    assert history == texts(row_of(a2a_site.engine, task, 1)["history"])


def test_what_was_kept_under_a_looser_ceiling_does_not_outlive_it(a2a_site: Site) -> None:
    task_id = add_task(a2a_site.engine, ceiling="full")
    hook_of(a2a_site).complete(task_id, result(), seal=seal, redacted=result("redacted"), ceiling=lambda: "redacted")
    assert ["redacted asked", "redacted done"] == texts(row_of(a2a_site.engine, task, 1)["history"])


@pytest.mark.parametrize("ceiling", ["redacted", "metadata", "none"])
def test_what_was_told_under_a_looser_ceiling_does_not_outlive_it(a2a_site: Site, ceiling: str) -> None:
    hook = hook_of(a2a_site)
    task_id = add_task(a2a_site.engine, status_message=seal('"working on it"'))
    hook.project()
    hook.complete(task_id, result(), seal=seal, redacted=result("redacted"), ceiling=lambda: ceiling, now=NOW)
    first = hook.events(task_id)[1][0]
    assert (1, None, "RESULT_NOT_RETAINABLE") == (first.revision, first.payload, first.reason)
    assert [] == hook.check(lag=10**10, now=NOW)[0]


@pytest.mark.parametrize(
    "said", ["nrv1:" + "x" * 17_000_000, "nrv1:\ud800"], ids=["larger than its column", "no Unicode"]
)
def test_a_run_fails_also_if_its_message_cannot_be_stored(a2a_site: Site, said: str) -> None:
    task_id = add_task(a2a_site.engine)
    done = hook_of(a2a_site).fail(task_id, message=message("sorry"), seal=lambda *_: said)
    assert (State.FAILED, "") == (done.state, done.reason)
    assert ("failed", None) == (
        row_of(a2a_site.engine, run, 1001)["status"], row_of(a2a_site.engine, task, 1)["status_message"]
    )  # fmt: skip


@pytest.mark.parametrize("given", [None, {}, "answer"])
def test_what_is_not_a_result_or_not_figures_is_refused_and_nothing_is_written(a2a_site: Site, given: Any) -> None:
    task_id = add_task(a2a_site.engine)
    hook = hook_of(a2a_site)
    with pytest.raises(ValueError, match="expected a Result"):
        hook.complete(task_id, given, seal=seal)
    if given is not None:
        with pytest.raises(ValueError, match="expected RunFigures"):
            hook.complete(task_id, result(), seal=seal, figures=given)
        with pytest.raises(ValueError, match="expected RunFigures"):
            hook.fail(task_id, figures=given)
    assert "running" == row_of(a2a_site.engine, run, 1001)["status"]


@pytest.mark.parametrize("error", [ConnectionError, TimeoutError])
def test_a_vault_that_is_away_fails_no_run(a2a_site: Site, error: type[Exception]) -> None:
    def away(*_: str) -> str:
        raise error("vault.example.org")

    task_id = add_task(a2a_site.engine)
    with pytest.raises(error):
        hook_of(a2a_site).complete(task_id, result(), seal=away)
    assert "running" == row_of(a2a_site.engine, run, 1001)["status"]
    assert "completed" == hook_of(a2a_site).complete(task_id, result(), seal=seal).state


@pytest.mark.parametrize(("ceiling", "kept"), [("full", "sorry"), ("redacted", "redacted"), ("none", None)])
def test_a_failed_run_keeps_its_message_as_far_as_the_ceiling_lets_it(
    a2a_site: Site, ceiling: str, kept: str | None
) -> None:
    task_id = add_task(a2a_site.engine, ceiling=ceiling)
    done = hook_of(a2a_site).fail(task_id, message=message("sorry"), redacted=message("redacted"), seal=seal)
    stored = row_of(a2a_site.engine, task, 1)
    said = stored["status_message"]
    assert ("failed", "failed") == (done.state, row_of(a2a_site.engine, run, 1001)["status"])
    assert kept == (said and json.loads(unseal(said))["parts"][0]["text"])


def test_a_run_may_fail_from_wherever_it_is(a2a_site: Site) -> None:
    hook = hook_of(a2a_site)
    statuses = ["queued", "running", "waiting_for_approval", "waiting_for_input", "failed"]
    for uid, status in enumerate(statuses, start=1):
        hook.fail(add_task(a2a_site.engine, uid, run_row={"status": status}))
    assert ["failed"] * 5 == [row["state"] for row in rows_of(a2a_site.engine, task)]
    assert ["failed"] * 5 == [row["status"] for row in rows_of(a2a_site.engine, run)]


def test_a_task_fails_even_if_its_message_cannot_be_sealed(a2a_site: Site) -> None:
    task_id = add_task(a2a_site.engine)
    assert "failed" == hook_of(a2a_site).fail(task_id, message=message("sorry"), seal=broken_seal).state


def test_a_message_needs_what_seals_it(a2a_site: Site) -> None:
    with pytest.raises(ValueError, match="seals"):
        hook_of(a2a_site).fail("task-1", message=message("sorry"))


def test_a_run_another_worker_has_is_not_ended(a2a_site: Site) -> None:
    task_id = add_task(a2a_site.engine, run_row=RUNS["lost"])
    assert not hook_of(a2a_site).fail(task_id, claimed_by="worker-1").changed


@pytest.mark.parametrize("row", [None, "gone"])
def test_a_task_that_is_not_there_is_not_found(a2a_site: Site, row: str | None) -> None:
    hook = hook_of(a2a_site)
    if row:
        add_task(a2a_site.engine, run=77)
        assert not hook.complete("task-1", result(), seal=seal).changed
    with pytest.raises(TaskNotFoundError):
        hook.complete("task-2", result(), seal=seal)


def test_what_the_database_does_not_take_is_unwritable(
    a2a_site: Site, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    # 17 MB are more than MEDIUMTEXT takes, on whichever engine, strict or not.
    task_id = add_task(a2a_site.engine)
    large = Result(artifacts=(artifact("large"),))
    with caplog.at_level(logging.DEBUG):
        done = hook_of(a2a_site).complete(task_id, large, seal=lambda *_: "nrv1:" + "secret" * 3_000_000)
    assert ("failed", "RESULT_NOT_STORED") == (done.state, done.reason)
    assert "failed" == row_of(a2a_site.engine, run, 1001)["status"]
    assert "secret" not in logged(caplog, capsys)


@pytest.mark.parametrize("site", ["mariadb"], indirect=True)
def test_a_result_that_a_narrow_column_would_cut_off_is_not_stored(a2a_site: Site) -> None:
    # The server takes what it can of a value, and says nothing, unless a session asks it to be strict.
    with a2a_site.engine.begin() as connection:
        (mode,) = connection.execute(text("SELECT @@GLOBAL.sql_mode")).one()
        connection.execute(text("SET GLOBAL sql_mode = ''"))
        for table, column in (("task", "artifacts"), ("event", "payload")):
            connection.execute(text(f"ALTER TABLE tx_nrllm_a2a_{table} MODIFY {column} TEXT"))
    try:
        hook = hook_of(a2a_site)
        large = Result(artifacts=(artifact("x" * 70_000),))
        done = hook.complete(add_task(a2a_site.engine), large, seal=seal)
        assert ("failed", "RESULT_NOT_STORED") == (done.state, done.reason)
        said = "nrv1:" + "m" * 70_000
        add_task(a2a_site.engine, 2, state="failed", status_message=said)
        assert [2] == hook.project().refused
    finally:
        with a2a_site.engine.begin() as connection:
            connection.execute(text("SET GLOBAL sql_mode = :mode"), {"mode": mode})
            for table, column in (("task", "artifacts"), ("event", "payload")):
                connection.execute(text(f"ALTER TABLE tx_nrllm_a2a_{table} MODIFY {column} MEDIUMTEXT"))


@pytest.mark.parametrize("site", ["mariadb"], indirect=True)
def test_a_server_that_takes_small_statements_stores_what_it_can_and_refuses_the_rest_for_good(a2a_site: Site) -> None:
    # It hangs up on a larger statement, and would do so again, however often the completion is repeated.
    with a2a_site.engine.begin() as connection:
        (largest,) = connection.execute(text("SELECT @@GLOBAL.max_allowed_packet")).one()
        connection.execute(text("SET GLOBAL max_allowed_packet = 1048576"))

    def sealer(size: int) -> Any:
        return lambda *_: "nrv1:" + "x" * size

    several = Result(artifacts=(artifact("a"), artifact("b")), message=message("m"), history=(message("h"),))
    try:
        hook = hook_of(a2a_site)
        done = [
            hook.complete(add_task(a2a_site.engine, uid), offered, seal=sealer(size))
            for uid, (offered, size) in enumerate(
                [(several, 400_000), (Result(artifacts=(artifact("a"),)), 1_100_000), (several, 10)], start=1
            )
        ]
        assert ["", "RESULT_NOT_STORED", ""] == [each.reason for each in done]
        assert (3, []) == ((projected := hook.project()).tasks, projected.refused)
        assert [] == hook.check(lag=0)[0]
        # A value that was stored while the limit was higher stops no other.
        with a2a_site.engine.begin() as connection:
            connection.execute(text("SET GLOBAL max_allowed_packet = 16777216"))
        add_task(NrLlmA2AHook(a2a_site.conn_id).database.engine, 4, status_message="nrv1:" + "x" * 1_100_000)
        with a2a_site.engine.begin() as connection:
            connection.execute(text("SET GLOBAL max_allowed_packet = 1048576"))
        add_task(a2a_site.engine, 5)
        assert (1, [4]) == ((projected := hook_of(a2a_site).project()).tasks, projected.refused)
    finally:
        with a2a_site.engine.begin() as connection:
            connection.execute(text("SET GLOBAL max_allowed_packet = :largest"), {"largest": largest})


FIGURES = RunFigures(
    iterations=4,
    truncated=True,
    total_prompt_tokens=1200,
    total_completion_tokens=300,
    total_tokens=1500,
    estimated_cost=0.0123456789,
    termination_reason="final_answer",
    error_class="",
)


@pytest.mark.parametrize("end", ["complete", "fail", "not stored"])
def test_the_figures_of_a_run_are_written_with_its_end(a2a_site: Site, end: str) -> None:
    hook = hook_of(a2a_site)
    task_id = add_task(a2a_site.engine, run_row={"iterations": 1, "error_class": "earlier"})
    if end == "fail":
        hook.fail(task_id, figures=FIGURES)
    else:
        hook.complete(task_id, result(), seal=seal if end == "complete" else broken_seal, figures=FIGURES)
    written = row_of(a2a_site.engine, run, 1001)
    expected = {**FIGURES.columns(), "status": "completed" if end == "complete" else "failed"}
    assert expected == {name: written[name] for name in expected}


def test_figures_that_are_not_said_stay_as_they_are(a2a_site: Site) -> None:
    task_id = add_task(a2a_site.engine, run_row={"iterations": 1, "total_tokens": 7})
    hook_of(a2a_site).complete(task_id, result(), seal=seal, figures=RunFigures(total_tokens=9))
    written = row_of(a2a_site.engine, run, 1001)
    assert (1, 9) == (written["iterations"], written["total_tokens"])


def test_the_figures_of_a_run_that_is_anothers_are_not_written(a2a_site: Site) -> None:
    hook = hook_of(a2a_site)
    ids = [add_task(a2a_site.engine, uid, run_row=RUNS[how]) for uid, how in enumerate(("lost", "cancelled"), start=1)]
    before = rows_of(a2a_site.engine, run)
    for task_id in ids:
        hook.complete(task_id, result(), seal=seal, claimed_by="worker-1", figures=FIGURES)
    assert before == rows_of(a2a_site.engine, run)


def test_neither_content_nor_sealed_values_come_into_the_log(
    a2a_site: Site, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    hook = hook_of(a2a_site)
    with caplog.at_level(logging.DEBUG):
        for uid, sealer in enumerate((seal, broken_seal, no_seal), start=1):
            hook.complete(add_task(a2a_site.engine, uid), result(), seal=sealer)
        hook.project()
    told = logged(caplog, capsys)
    assert "task-2 could not be sealed: RuntimeError" in told
    assert "secret" not in told
    assert b"secret".hex() not in told


def test_many_completions_change_only_their_own_task(a2a_site: Site) -> None:
    for uid in (1, 2, 3):
        add_task(a2a_site.engine, uid)
    hook_of(a2a_site).complete("task-2", result(), seal=seal)
    assert ["working", "completed", "working"] == [row["state"] for row in rows_of(a2a_site.engine, task)]
    assert ["running", "completed", "running"] == [row["status"] for row in rows_of(a2a_site.engine, run)]


def test_a_run_without_a_task_is_nobodys_business(a2a_site: Site) -> None:
    with a2a_site.engine.begin() as connection:
        connection.execute(insert(run).values(uid=5, uuid="run-5", status="failed"))
    assert ([], 0) == (hook_of(a2a_site).check(lag=0)[0], hook_of(a2a_site).project().tasks)
