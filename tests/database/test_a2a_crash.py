"""A crash or a fault at any moment leaves no promise broken; several at once do what one would have done."""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import delete, func, insert, select, text, update
from sqlalchemy import event as listener
from sqlalchemy.exc import DBAPIError

from airflow_provider_nrllm.database.errors import may_pass
from airflow_provider_nrllm.hooks.a2a import NrLlmA2AHook
from tests.typo3.a2a_results import logged, result, seal
from tests.typo3.a2a_sites import hook_of
from tests.typo3.a2a_tables import NOW, add_task, event, journal, row_of, rows_of, run, task
from tests.typo3.sites import Site

#: Processes of their own, with all that is imported already.
fork = multiprocessing.get_context("fork")

#: The statements of a completion: find the run, lock it, lock the task, write the task, end the run, commit.
MOMENTS = range(1, 8)


class Fault(Exception):
    """What a statement is made to fail with; its text stands for content."""


def stop_at(hook: NrLlmA2AHook, moment: int, stop: Callable[[Any], None]) -> None:
    """Stop before a statement of the hook, counted from 1; a commit counts as one, and so does what follows it."""
    passed = [0]

    def count(*arguments: Any) -> None:
        first = ("BEGIN IMMEDIATE", "SELECT set_config", "SHOW VARIABLES")
        if any(str(argument).startswith(first) for argument in arguments):
            # How a transaction begins is no step of the completion, and not the same on each engine.
            return
        passed[0] += 1
        if passed[0] == moment:
            stop(arguments[0])

    engine = hook.database.engine
    listener.listen(engine, "before_cursor_execute", count)
    listener.listen(engine, "commit", count)


def die(_connection: Any) -> None:
    """End this process as an out-of-memory killer would."""
    os.kill(os.getpid(), signal.SIGKILL)


def fail(_connection: Any) -> None:
    """Fail with content in the error."""
    raise Fault("secret")


def drop_of(site: Site) -> Callable[[Any], None]:
    """Return what makes the server drop a connection."""

    def drop(connection: Any) -> None:
        raw = connection.connection.dbapi_connection
        kill = (
            select(func.pg_terminate_backend(raw.info.backend_pid))
            if site.name == "postgres"
            else text(f"KILL {raw.thread_id()}")
        )
        with site.engine.connect() as admin:
            admin.execute(kill)

    return drop


def in_processes(*targets: Callable[[], None]) -> list[int | None]:
    """Run each function in a process of its own, all at once, and return how each ended."""

    def body(target: Callable[[], None]) -> None:
        target()
        # Nothing of the test session that was forked may be torn down here.
        os._exit(0)

    processes = [fork.Process(target=body, args=(target,)) for target in targets]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    return [process.exitcode for process in processes]


def assert_kept(site: Site, hook: NrLlmA2AHook) -> None:
    """Fail where a promise is broken, or a run is completed without its result."""
    assert [] == hook.check(lag=10**10, now=NOW)[0]
    states = [(row["state"], row["artifacts"] is None) for row in rows_of(site.engine, task)]
    assert all(state in ("working", "failed") or not empty for state, empty in states)


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_process_killed_between_any_two_statements_breaks_no_promise(a2a_server: Site, moment: int) -> None:
    task_id = add_task(a2a_server.engine)

    def killed() -> None:
        hook = hook_of(a2a_server)
        stop_at(hook, moment, die)
        hook.complete(task_id, result(), seal=seal)

    (exit_code,) = in_processes(killed)
    hook = hook_of(a2a_server)
    assert_kept(a2a_server, hook)
    assert (exit_code, row_of(a2a_server.engine, task, 1)["state"]) in (
        (-signal.SIGKILL, "working"),
        # There were fewer statements than that: it had come to its end.
        (0, "completed"),
    )
    assert (moment > 6) == (0 == exit_code)
    # Repeated, it comes to its end: the killed one holds nothing.
    hook.complete(task_id, result(), seal=seal)
    assert_kept(a2a_server, hook)
    assert "completed" == row_of(a2a_server.engine, run, 1001)["status"]


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_statement_that_fails_between_any_two_breaks_no_promise(
    a2a_site: Site, moment: int, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    task_id = add_task(a2a_site.engine)
    hook = hook_of(a2a_site)
    stop_at(hook, moment, fail)
    try:
        state = str(hook.complete(task_id, result(), seal=seal).state)
    except Fault:
        state = "working"
    # Before there is anything to write, the run goes on; after that, the result was not stored.
    assert ("working" if moment < 4 else "failed" if moment < 7 else "completed") == state
    assert state == row_of(a2a_site.engine, task, 1)["state"]
    assert_kept(a2a_site, hook_of(a2a_site))
    assert "secret" not in logged(caplog, capsys)


@pytest.mark.parametrize("moment", range(1, 7))
def test_a_connection_dropped_between_any_two_statements_writes_nothing_and_the_same_again_completes(
    a2a_server: Site, moment: int
) -> None:
    task_id = add_task(a2a_server.engine)
    hook = hook_of(a2a_server)
    stop_at(hook, moment, drop_of(a2a_server))
    with pytest.raises(DBAPIError) as raised:
        hook.complete(task_id, result(), seal=seal)
    assert may_pass(raised.value)
    assert "working" == row_of(a2a_server.engine, task, 1)["state"]
    assert_kept(a2a_server, hook_of(a2a_server))
    assert "completed" == hook_of(a2a_server).complete(task_id, result(), seal=seal).state


def test_a_lock_that_is_not_had_in_time_is_passed_on_with_nothing_written(a2a_server: Site) -> None:
    task_id = add_task(a2a_server.engine)
    if a2a_server.name == "postgres":
        a2a_server.define_connection(extra={"options": "-c lock_timeout=200"})
    else:
        with a2a_server.engine.begin() as connection:
            connection.execute(text("SET GLOBAL innodb_lock_wait_timeout = 1"))
    hook = hook_of(a2a_server)
    with a2a_server.engine.begin() as other:
        other.execute(update(task).values(context_id="held"))
        with pytest.raises(DBAPIError) as raised:
            hook.complete(task_id, result(), seal=seal)
    assert may_pass(raised.value)
    assert "running" == row_of(a2a_server.engine, run, 1001)["status"]
    assert "completed" == hook.complete(task_id, result(), seal=seal).state


def test_a_run_that_became_anothers_meanwhile_is_not_failed(a2a_site: Site) -> None:
    # A reaper takes it between the transaction that could not store the result and the one that fails the run.
    task_id = add_task(a2a_site.engine)
    hook = hook_of(a2a_site)
    stop_at(hook, 4, fail)

    class Reaper(logging.Handler):
        def emit(self, _record: logging.LogRecord) -> None:
            with a2a_site.engine.begin() as connection:
                connection.execute(update(run).values(status="queued", claimed_by=""))

    logger, reaper = logging.getLogger("airflow_provider_nrllm.a2a.completion"), Reaper()
    logger.addHandler(reaper)
    try:
        assert not hook.complete(task_id, result(), seal=seal).changed
    finally:
        logger.removeHandler(reaper)
    assert ("working", "queued") == (
        row_of(a2a_site.engine, task, 1)["state"], row_of(a2a_site.engine, run, 1001)["status"]
    )  # fmt: skip


@pytest.mark.parametrize("moment", range(5, 12))
def test_a_fault_in_the_second_transaction_too_leaves_the_run_as_it_was(a2a_site: Site, moment: int) -> None:
    task_id = add_task(a2a_site.engine)
    hook = hook_of(a2a_site)
    stop_at(hook, 4, fail)
    stop_at(hook, moment, fail)
    try:
        hook.complete(task_id, result(), seal=seal)
    except Fault:
        assert ("working", "running") == (
            row_of(a2a_site.engine, task, 1)["state"], row_of(a2a_site.engine, run, 1001)["status"]
        )  # fmt: skip
    assert_kept(a2a_site, hook_of(a2a_site))


@pytest.mark.parametrize("moment", range(1, 8))
def test_a_projector_killed_at_any_moment_is_finished_by_the_next(a2a_server: Site, moment: int) -> None:
    hook = hook_of(a2a_server)
    for uid in (1, 2):
        hook.complete(add_task(a2a_server.engine, uid), result(), seal=seal)

    def killed() -> None:
        projector = hook_of(a2a_server)
        stop_at(projector, moment, die)
        projector.project()

    assert [-signal.SIGKILL] == in_processes(killed)
    assert_kept(a2a_server, hook)
    hook.project()
    assert [(n, position) for n in (1, 2) for position in (0, 1, 2)] == [
        (row[0], row[2]) for row in journal(a2a_server.engine)
    ]


def fill(site: Site, count: int) -> None:
    """Add completed tasks with two artifacts each, in two statements."""
    uids = range(1, count + 1)
    stored = {"state": "completed", "revision": 4, "ceiling": "full", "artifacts": '["nrv1:a","nrv1:b"]'}
    with site.engine.begin() as connection:
        connection.execute(insert(run), [{"uid": n, "uuid": f"run-{n}", "status": "completed"} for n in uids])
        connection.execute(insert(task), [{"run": n, "uid": n, "task_id": f"task-{n}", **stored} for n in uids])


def test_eight_projectors_at_once_write_each_event_of_200_tasks_once(a2a_server: Site) -> None:
    fill(a2a_server, 200)

    def project() -> None:
        hook_of(a2a_server).project(page_size=50)

    assert [0] * 8 == in_processes(*[project] * 8)
    assert [(n, 4, position) for n in range(1, 201) for position in (0, 1, 2)] == [
        row[:3] for row in journal(a2a_server.engine)
    ]
    assert [] == hook_of(a2a_server).check(lag=0)[0]


def test_a_purge_and_projectors_at_once_leave_no_event_without_its_task(a2a_server: Site) -> None:
    fill(a2a_server, 60)
    gone = [uid for uid in range(1, 61) if uid % 2]

    def project() -> None:
        hook_of(a2a_server).project(page_size=7)

    def purge_with_runs() -> None:
        hook = hook_of(a2a_server)
        for uid in gone[:15]:
            hook.delete([uid])
            with a2a_server.engine.begin() as connection:
                connection.execute(delete(run).where(run.c.uid == uid))

    def purge_what_lost_its_run() -> None:
        hook = hook_of(a2a_server)
        with a2a_server.engine.begin() as connection:
            connection.execute(delete(run).where(run.c.uid.in_(gone[15:])))
        hook.delete_lost(page_size=4)

    ended = in_processes(project, purge_with_runs, project, purge_what_lost_its_run)
    assert [0] * 4 == ended
    hook = hook_of(a2a_server)
    hook.project()
    assert [] == hook.check(lag=0)[0]
    kept = [uid for uid in range(1, 61) if not uid % 2]
    assert kept == [row["uid"] for row in rows_of(a2a_server.engine, task)]
    assert [(n, position) for n in kept for position in (0, 1, 2)] == [
        (row[0], row[2]) for row in journal(a2a_server.engine)
    ]


def test_completions_scrubs_and_projectors_at_once_keep_every_promise(a2a_server: Site) -> None:
    for uid in range(1, 25):
        add_task(a2a_server.engine, uid)

    def complete(uids: range) -> Callable[[], None]:
        def body() -> None:
            hook = hook_of(a2a_server)
            for uid in uids:
                hook.complete(f"task-{uid}", result(), seal=seal)

        return body

    def scrub() -> None:
        hook = hook_of(a2a_server)
        for _ in range(3):
            hook.scrub_installation("metadata", page_size=5)

    def project() -> None:
        hook = hook_of(a2a_server)
        for _ in range(3):
            hook.project()

    ended = in_processes(complete(range(1, 25)), complete(range(24, 0, -1)), scrub, project, project)
    assert [0] * 5 == ended
    hook = hook_of(a2a_server)
    hook.scrub_installation("metadata")
    hook.project()
    violations, late = hook.check(lag=-1)
    assert ([], 0) == (violations, late.count)
    assert all(row["payload"] is None for row in rows_of(a2a_server.engine, event))
