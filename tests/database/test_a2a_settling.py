"""A task whose run ended without it ends too, once, and as its run did."""

from __future__ import annotations

import pytest
from sqlalchemy import select

from airflow_provider_nrllm.a2a.rules import State
from airflow_provider_nrllm.a2a.settling import Settling
from tests.typo3.a2a_results import result, seal
from tests.typo3.a2a_sites import hook_of
from tests.typo3.a2a_tables import NOW, add_task, row_of, rows_of, run, task
from tests.typo3.sites import Site

LONG_AGO = NOW - 3600


@pytest.mark.parametrize("state", ["submitted", "working", "input_required", "auth_required"])
@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ("cancelled", ("canceled", "", Settling(canceled=1))),
        ("failed", ("failed", "", Settling(failed=1))),
        ("completed", ("failed", "RESULT_NOT_STORED", Settling(failed=1))),
    ],
)
def test_a_task_ends_as_its_run_did(
    a2a_site: Site, state: str, status: str, expected: tuple[str, str, Settling]
) -> None:
    add_task(a2a_site.engine, state=state, run_row={"status": status, "finished_at": LONG_AGO})
    hook = hook_of(a2a_site)
    before = rows_of(a2a_site.engine, run)
    done = hook.settle(now=NOW)
    stored = row_of(a2a_site.engine, task, 1)
    assert expected == (stored["state"], stored["reason"], done)
    assert (2, NOW) == (stored["revision"], stored["tstamp"])
    assert before == rows_of(a2a_site.engine, run)
    assert [] == hook.check(lag=10**10, now=NOW)[0]
    assert Settling() == hook.settle(now=NOW)
    assert 1 == hook.project().tasks


@pytest.mark.parametrize("status", ["queued", "running", "waiting_for_approval", "waiting_for_input", "a newer one"])
def test_a_task_whose_run_goes_on_is_left(a2a_site: Site, status: str) -> None:
    add_task(a2a_site.engine, run_row={"status": status, "finished_at": 0})
    assert Settling() == hook_of(a2a_site).settle(now=NOW)
    assert "working" == row_of(a2a_site.engine, task, 1)["state"]


def test_a_task_in_a_state_of_a_newer_version_is_left_for_it_may_be_an_end(a2a_site: Site) -> None:
    add_task(a2a_site.engine, 1, state="a newer end", run_row={"status": "failed", "finished_at": LONG_AGO})
    add_task(a2a_site.engine, 2, state="a newer end", run_row={"status": "running"})
    hook = hook_of(a2a_site)
    before = rows_of(a2a_site.engine, task), rows_of(a2a_site.engine, run)
    assert Settling() == hook.settle(now=NOW)
    for task_id in ("task-1", "task-2"):
        for done in (hook.complete(task_id, result(), seal=seal), hook.fail(task_id)):
            assert (State.UNSPECIFIED, False) == (done.state, done.changed)
    assert before == (rows_of(a2a_site.engine, task), rows_of(a2a_site.engine, run))


def test_a_run_that_has_just_ended_is_the_extensions_to_settle(a2a_site: Site) -> None:
    add_task(a2a_site.engine, run_row={"status": "cancelled", "finished_at": NOW - 900})
    hook = hook_of(a2a_site)
    assert Settling() == hook.settle(lag=900, now=NOW)
    assert Settling(canceled=1) == hook.settle(lag=900, now=NOW + 1)


def test_a_task_that_has_ended_and_one_that_lost_its_run_are_left(a2a_site: Site) -> None:
    hook = hook_of(a2a_site)
    hook.complete(add_task(a2a_site.engine), result(), seal=seal, now=LONG_AGO)
    add_task(a2a_site.engine, 2, run=999)
    before = rows_of(a2a_site.engine, task)
    assert Settling() == hook.settle(now=NOW)
    assert before == rows_of(a2a_site.engine, task)


def test_a_task_that_another_holds_is_left_to_the_next_settling(a2a_server: Site) -> None:
    for uid in (1, 2, 3):
        add_task(a2a_server.engine, uid, run_row={"status": "failed", "finished_at": LONG_AGO})
    hook = hook_of(a2a_server)
    with a2a_server.engine.begin() as other:
        other.execute(select(task.c.uid).where(task.c.uid == 1).with_for_update())
        other.execute(select(run.c.uid).where(run.c.uid == 1002).with_for_update())
        assert Settling(failed=1, locked=2) == hook.settle(now=NOW)
    assert Settling(failed=2) == hook.settle(now=NOW)


def test_more_tasks_than_a_page_are_settled_each_once(a2a_site: Site) -> None:
    for uid in range(1, 8):
        add_task(a2a_site.engine, uid, run_row={"status": "failed", "finished_at": LONG_AGO})
    assert Settling(failed=7) == hook_of(a2a_site).settle(page_size=3, now=NOW)
