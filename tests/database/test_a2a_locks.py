"""Whoever would change a run or a task waits for the one who is about to end, project or scrub it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import event as listener
from sqlalchemy import insert, text, update
from sqlalchemy.exc import DBAPIError

from airflow_provider_nrllm.database.errors import is_locked
from airflow_provider_nrllm.hooks.a2a import NrLlmA2AHook
from tests.typo3.a2a_results import result, seal
from tests.typo3.a2a_sites import hook_of
from tests.typo3.a2a_tables import NOW, add_task, event, journal, row_of, rows_of, run, task
from tests.typo3.sites import Site

CANCEL = update(run).values(status="cancelled", finished_at=NOW)
TIGHTEN = update(task).values(ceiling="none")


def has_to_wait(site: Site, statement: Any) -> bool:
    """Return whether a statement of another connection is kept waiting; nothing of it stays."""
    # A server's own waiting would be as long as the test.
    at_once = {
        "mariadb": "SET SESSION innodb_lock_wait_timeout = 0",
        "postgres": "SET lock_timeout = '50ms'",
        "sqlite": "PRAGMA busy_timeout = 0",
    }[site.name]
    with site.engine.connect() as other:
        transaction = other.begin()
        other.execute(text(at_once))
        try:
            other.execute(statement)
        except DBAPIError as error:
            if is_locked(error):
                return True
            raise
        finally:
            transaction.rollback()
            other.invalidate()
        return False


def just_before(hook: NrLlmA2AHook, beginning: str, act: Callable[[], None]) -> None:
    """Act once, just before the hook's first statement that begins so."""
    done = []

    def look(_connection: Any, _cursor: Any, statement: str, *_more: Any) -> None:
        if statement.startswith(beginning) and not done:
            done.append(statement)
            act()

    listener.listen(hook.database.engine, "before_cursor_execute", look)


@pytest.mark.parametrize("statement", [CANCEL, TIGHTEN], ids=["cancels the run", "tightens the task"])
@pytest.mark.parametrize("end", ["complete", "fail"])
def test_who_changes_a_run_or_its_task_waits_from_the_question_for_the_ceiling_to_the_end(
    a2a_site: Site, statement: Any, end: str
) -> None:
    task_id = add_task(a2a_site.engine)
    waited = []

    def ceiling() -> str:
        waited.append(has_to_wait(a2a_site, statement))
        return "full"

    hook = hook_of(a2a_site)
    if end == "complete":
        hook.complete(task_id, result(), seal=seal, ceiling=ceiling)
    else:
        hook.fail(task_id, ceiling=ceiling)
    assert [True] == waited
    assert not has_to_wait(a2a_site, statement)


def test_who_changes_a_task_waits_for_its_projector(a2a_site: Site) -> None:
    add_task(a2a_site.engine)
    hook, waited = hook_of(a2a_site), []
    just_before(hook, "INSERT", lambda: waited.append(has_to_wait(a2a_site, TIGHTEN)))
    assert 1 == hook.project().tasks
    assert [True] == waited


@pytest.mark.parametrize("statement", [CANCEL, TIGHTEN], ids=["cancels the run", "tightens the task"])
@pytest.mark.parametrize(
    ("act", "writes"),
    [
        (lambda hook: hook.scrub_installation("none"), "UPDATE"),
        (lambda hook: hook.scrub("none", ["task-1"]), "UPDATE"),
        (lambda hook: hook.settle(now=NOW + 5000), "UPDATE"),
        (lambda hook: hook.delete([1001]), "DELETE"),
    ],
    ids=["scrub_installation", "scrub", "settle", "delete"],
)
def test_who_changes_a_run_or_its_task_waits_for_who_scrubs_settles_or_deletes_it(
    a2a_site: Site, statement: Any, act: Callable[[NrLlmA2AHook], Any], writes: str
) -> None:
    add_task(a2a_site.engine, run_row={"status": "cancelled", "finished_at": NOW})
    hook, waited = hook_of(a2a_site), []
    just_before(hook, writes, lambda: waited.append(has_to_wait(a2a_site, statement)))
    act(hook)
    assert [True] == waited


def test_a_task_that_another_scrubbed_meanwhile_is_not_scrubbed_again(a2a_server: Site) -> None:
    add_task(a2a_server.engine)
    hook = hook_of(a2a_server)
    # Between the look for tasks and the locks on them.
    locking = "SELECT tx_nrllm_agentrun.uid, tx_nrllm_agentrun.status"
    just_before(hook, locking, lambda: hook_of(a2a_server).scrub_installation("none") and None)
    assert 0 == hook.scrub_installation("none").tasks
    assert 2 == row_of(a2a_server.engine, task, 1)["revision"]


def test_a_task_that_ended_meanwhile_is_not_settled(a2a_server: Site) -> None:
    add_task(a2a_server.engine, run_row={"status": "failed", "finished_at": NOW})
    hook = hook_of(a2a_server)
    just_before(hook, "SELECT tx_nrllm_a2a_task.run", lambda: hook_of(a2a_server).fail("task-1") and None)
    assert 0 == hook.settle(now=NOW + 5000).failed
    assert 2 == row_of(a2a_server.engine, task, 1)["revision"]


def test_the_time_of_a_status_is_that_at_which_the_locks_were_had(
    a2a_site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A worker that waited an hour for its locks must not write of an hour ago.
    clock = [NOW]
    monkeypatch.setattr("airflow_provider_nrllm.a2a.rows.time.time", lambda: clock[0])
    task_id = add_task(a2a_site.engine)
    hook = hook_of(a2a_site)

    def ceiling() -> str:
        clock[0] = NOW + 3600
        return "full"

    hook.complete(task_id, result(), seal=seal, ceiling=ceiling)
    ended = row_of(a2a_site.engine, task, 1)["tstamp"], row_of(a2a_site.engine, run, 1001)["finished_at"]
    assert (NOW + 3600, NOW + 3600) == ended
    just_before(hook, "SELECT tx_nrllm_a2a_task.uid \nFROM tx_nrllm_a2a_task \nWHERE tx_nrllm_a2a_task.uid =", ceiling)
    assert 0 == hook.project().lag_seconds
    assert {NOW + 3600} == {row["crdate"] for row in rows_of(a2a_site.engine, event)}


def add_event(connection: Any, uid: int, position: int, at: int) -> None:
    """Write an event of task 1 under a uid."""
    row = {"uid": uid, "task": 1, "revision": 1, "position": position, "kind": "artifact", "state": "working"}
    connection.execute(insert(event).values({**row, "status_at": at, "crdate": at}))


def test_who_hands_events_on_misses_none_of_a_writer_that_commits_late(a2a_server: Site) -> None:
    add_task(a2a_server.engine)
    hook = hook_of(a2a_server)
    with a2a_server.engine.begin() as connection:
        add_event(connection, 1, 0, NOW)
    with a2a_server.engine.begin() as slow:
        add_event(slow, 2, 1, NOW)
        with a2a_server.engine.begin() as connection:
            add_event(connection, 3, 2, NOW)
        before = hook.events_after(0, now=NOW)
    after = hook.events_after(before.position, now=NOW)
    assert ([1], [2, 3]) == ([entry.uid for entry in before.entries], [entry.uid for entry in after.entries])
    assert len(journal(a2a_server.engine)) == len(before.entries) + len(after.entries)
