"""What a tightened ceiling takes away again, and what goes with its run."""

from __future__ import annotations

import json
from typing import Any

import pytest
from sqlalchemy import delete, update

from airflow_provider_nrllm.a2a.wire import event_json, task_json
from tests.typo3.a2a_results import result, seal, unseal
from tests.typo3.a2a_sites import hook_of
from tests.typo3.a2a_tables import NOW, add_events, add_task, event, journal, row_of, rows_of, run, task
from tests.typo3.sites import Site


@pytest.mark.parametrize("ceiling", ["redacted", "metadata", "none"])
def test_a_tightened_ceiling_empties_task_and_journal(a2a_site: Site, ceiling: str) -> None:
    hook = hook_of(a2a_site)
    task_id = add_task(a2a_site.engine)
    hook.complete(task_id, result(), seal=seal, now=NOW + 60)
    hook.project()
    hook.scrub_installation(ceiling)
    stored = row_of(a2a_site.engine, task, 1)
    assert ("completed", 3, ceiling, "RESULT_NOT_RETAINABLE", None, None, None, NOW + 60) == tuple(
        stored[name]
        for name in ("state", "revision", "ceiling", "reason", "status_message", "artifacts", "history", "tstamp")
    )
    assert [("RESULT_NOT_RETAINABLE", None)] * 3 == [row[5:7] for row in journal(a2a_site.engine)]
    assert [] == hook.check(lag=0)[0]


def test_no_path_returns_what_was_scrubbed(a2a_site: Site) -> None:
    hook = hook_of(a2a_site)
    task_id = add_task(a2a_site.engine)
    hook.complete(task_id, result(), seal=seal)
    hook.project()
    hook.scrub_installation("none")
    _, events = hook.events(task_id)
    shown = [task_json(hook.task(task_id), unseal=unseal)]
    shown += [event_json(entry, task_id, "context-1", unseal=unseal) or {} for entry in events]
    assert "secret" not in json.dumps(shown)
    assert {"reason": "RESULT_NOT_RETAINABLE"} == shown[0]["metadata"] == shown[-1]["statusUpdate"]["metadata"]
    assert [{}, {}] == shown[1:3]


def test_a_ceiling_that_is_not_tightened_scrubs_nothing(a2a_site: Site) -> None:
    hook = hook_of(a2a_site)
    hook.complete(add_task(a2a_site.engine, ceiling="redacted"), result(), seal=seal, redacted=result("redacted"))
    hook.project()
    before = rows_of(a2a_site.engine, task), rows_of(a2a_site.engine, event)
    assert [0, 0] == [hook.scrub_installation(ceiling).tasks for ceiling in ("full", "redacted")]
    assert before == (rows_of(a2a_site.engine, task), rows_of(a2a_site.engine, event))


def test_a_task_that_made_no_artifacts_stays_one_when_it_is_scrubbed(a2a_site: Site) -> None:
    hook = hook_of(a2a_site)
    add_task(a2a_site.engine, state="completed", artifacts="[]", history="[]")
    hook.scrub_installation("none")
    stored = row_of(a2a_site.engine, task, 1)
    assert ("[]", "", None, "none") == tuple(stored[name] for name in ("artifacts", "reason", "history", "ceiling"))
    assert [] == hook.check(lag=10**10)[0]


def test_a_task_on_its_way_is_scrubbed_and_cannot_keep_its_result(a2a_site: Site) -> None:
    hook = hook_of(a2a_site)
    task_id = add_task(a2a_site.engine, status_message=seal('"working on it"'), artifacts=json.dumps([seal("{}")]))
    hook.scrub_installation("metadata")
    stored = row_of(a2a_site.engine, task, 1)
    assert (None, None, None, "", "working") == tuple(
        stored[name] for name in ("status_message", "artifacts", "history", "reason", "state")
    )
    assert "RESULT_NOT_RETAINABLE" == hook.complete(task_id, result(), seal=seal).reason


def test_scrubbing_goes_page_by_page_and_is_done_once(a2a_site: Site) -> None:
    hook = hook_of(a2a_site)
    for uid in range(1, 8):
        hook.complete(add_task(a2a_site.engine, uid), result(), seal=seal)
    hook.project()
    done = hook.scrub_installation("none", page_size=3)
    assert (7, 21, 0) == (done.tasks, done.events, hook.scrub_installation("none").tasks)
    assert all(row["artifacts"] is None for row in rows_of(a2a_site.engine, task))


def test_a_ceiling_nobody_knows_is_refused(a2a_site: Site) -> None:
    with pytest.raises(ValueError, match="everything"):
        hook_of(a2a_site).scrub_installation("everything")


def test_tasks_and_events_go_with_the_runs_that_are_purged(a2a_site: Site) -> None:
    hook = hook_of(a2a_site)
    for uid in (1, 2, 3):
        hook.complete(add_task(a2a_site.engine, uid), result(), seal=seal)
    hook.project()
    removed = hook.delete([1001, 1003, 4711])
    assert (2, 6) == (removed.tasks, removed.events)
    assert [2] == [row["uid"] for row in rows_of(a2a_site.engine, task)]
    assert {2} == {row["task"] for row in rows_of(a2a_site.engine, event)}
    assert 3 == len(rows_of(a2a_site.engine, run))


def test_a_run_that_goes_on_keeps_its_task(a2a_site: Site) -> None:
    add_task(a2a_site.engine)
    assert 0 == hook_of(a2a_site).delete([1001]).tasks
    assert 1 == len(rows_of(a2a_site.engine, task))


def test_what_has_lost_its_run_is_purged_and_nothing_else(a2a_site: Site) -> None:
    hook = hook_of(a2a_site)
    for uid in range(1, 9):
        hook.complete(add_task(a2a_site.engine, uid), result(), seal=seal)
    hook.project()
    add_events(a2a_site.engine, {"task": 77})
    with a2a_site.engine.begin() as connection:
        connection.execute(delete(run).where(run.c.uid.in_([1002, 1003, 1005, 1008])))
    done = hook.delete_lost(page_size=3)
    assert (4, 13) == (done.tasks, done.events)
    assert [1, 4, 6, 7] == [row["uid"] for row in rows_of(a2a_site.engine, task)]
    assert {1, 4, 6, 7} == {row["task"] for row in rows_of(a2a_site.engine, event)}
    assert (0, 0) == ((again := hook.delete_lost()).tasks, again.events)
    assert [] == hook.check(lag=0)[0]


def test_some_tasks_are_scrubbed_and_no_others(a2a_site: Site) -> None:
    hook = hook_of(a2a_site)
    ids = [add_task(a2a_site.engine, uid) for uid in (1, 2, 3)]
    for task_id in ids:
        hook.complete(task_id, result(), seal=seal, now=NOW)
    hook.project()
    done = hook.scrub("metadata", [ids[0], ids[2].upper(), "not there"])
    assert (1, 3) == (done.tasks, done.events)
    assert [None, True, True] == [row["artifacts"] and True for row in rows_of(a2a_site.engine, task)]
    assert 0 == hook.scrub("metadata", []).tasks
    assert 0 == hook.scrub("metadata", ["\x00", "\ud800"]).tasks
    with pytest.raises(ValueError, match="neither task_ids nor runs; expected one of them, or scrub_installation"):
        hook.scrub("metadata")
    assert 1 == hook.scrub("metadata", runs=[1001, 1002, 4711]).tasks
    assert [None, None, True] == [row["artifacts"] and True for row in rows_of(a2a_site.engine, task)]
    with pytest.raises(ValueError, match="task_ids is a text"):
        hook.scrub("metadata", ids[1])


@pytest.mark.parametrize(
    ("own", "wanted", "expected"),
    [
        ("none", "full", "none"),
        ("metadata", "redacted", "metadata"),
        ("metadata", "none", "none"),
        ("redacted", "full", "redacted"),
        ("", "full", "none"),
        ("FULL", "redacted", "none"),
        ("full", "redacted", "redacted"),
    ],
)
def test_a_scrub_never_loosens_a_ceiling(a2a_site: Site, own: str, wanted: str, expected: str) -> None:
    hook = hook_of(a2a_site)
    task_id = add_task(a2a_site.engine, ceiling=own, status_message=seal('"working on it"'), history=None)
    hook.complete(add_task(a2a_site.engine, 2), result(), seal=seal, now=NOW)
    with a2a_site.engine.begin() as connection:
        connection.execute(update(task).where(task.c.uid == 2).values(ceiling=own))
    hook.project()
    hook.scrub_installation(wanted)
    assert {expected} == {row["ceiling"] for row in rows_of(a2a_site.engine, task)}
    assert [] == hook.check(lag=10**10, now=NOW)[0]
    assert "RESULT_NOT_RETAINABLE" == hook.complete(task_id, result(), seal=seal, now=NOW).reason


@pytest.mark.parametrize("runs", ["1001", ["1001"], ["1001x"], [True], [1.5], 1001])
def test_runs_are_named_by_whole_numbers(a2a_site: Site, runs: Any) -> None:
    add_task(a2a_site.engine)
    hook = hook_of(a2a_site)
    with pytest.raises(ValueError, match="expected a list of whole numbers"):
        hook.delete(runs)
    with pytest.raises(ValueError, match="expected a list of whole numbers"):
        hook.scrub("none", runs=runs)
    assert [1] == [row["revision"] for row in rows_of(a2a_site.engine, task)]


@pytest.mark.parametrize("own", ["", "a newer one", "FULL", "none", "metadata"])
def test_content_under_a_ceiling_that_keeps_none_is_scrubbed_and_found_before(a2a_site: Site, own: str) -> None:
    hook = hook_of(a2a_site)
    hook.complete(add_task(a2a_site.engine), result(), seal=seal, now=NOW)
    hook.project()
    with a2a_site.engine.begin() as connection:
        connection.execute(update(task).values(ceiling=own))
    assert 2 == len(hook.check(lag=10**10, now=NOW)[0])
    assert 1 == hook.scrub_installation("none").tasks
    assert [] == hook.check(lag=10**10, now=NOW)[0]
    assert 0 == hook.scrub_installation("none").tasks
