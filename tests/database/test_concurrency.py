"""Two at once, killed half-way, a lost server, a lock in the way: the same rows, each once."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, suppress

import pytest
from sqlalchemy import event, text
from sqlalchemy.exc import DBAPIError

from airflow_provider_nrllm.hooks.nrllm import NrLlmHook
from airflow_provider_nrllm.operators.outcomes import NrLlmDeriveOutcomesOperator
from tests.typo3.loader import load_case
from tests.typo3.tables import outcome_rows
from tests.typo3.worlds import DAY, START, accepted, many_runs

#: A derivation in a process of its own: it says when it is ready, and begins when it is told to.
DERIVE = """
import sys
from airflow_provider_nrllm.operators.outcomes import NrLlmDeriveOutcomesOperator
conn_id, page_size, start, end = sys.argv[1:]
derive = NrLlmDeriveOutcomesOperator(
    task_id="derive", nrllm_conn_id=conn_id, page_size=int(page_size), interval_start=start, interval_end=end
)
derive.hook.test_connection()
print("ready", flush=True)
sys.stdin.readline()
derive.execute({})
"""
EVERYTHING = ("", "2026-06-01")


def start_deriving(site, page_size, bounds=EVERYTHING):
    process = subprocess.Popen(
        [sys.executable, "-c", DERIVE, site.conn_id, str(page_size), *bounds],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    while process.stdout.readline().strip() not in ("ready", ""):
        pass
    return process


def go(*processes):
    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()


def finish(*processes):
    return [(process.communicate(), process.returncode)[1] for process in processes]


def derive(site, **arguments):
    return NrLlmDeriveOutcomesOperator(task_id="derive", nrllm_conn_id=site.conn_id, **arguments).execute({})


def read_page(site, hook=None):
    """Return the first page of everything, and its outcomes."""
    hook = hook or NrLlmHook(site.conn_id)
    page = next(hook.pages(None, START + 100 * DAY, window=7 * DAY, page_size=100))
    return hook, page, page.outcomes(START + 100 * DAY)


@contextmanager
def before_statement(hook, beginning, act):
    """Do something once, just before the first statement that begins like this."""
    done = []

    def listener(_connection, _cursor, statement, *_rest):
        if statement.lstrip().startswith(beginning) and not done:
            done.append(True)
            act()

    event.listen(hook.database.engine, "before_cursor_execute", listener)
    yield
    event.remove(hook.database.engine, "before_cursor_execute", listener)
    assert done, f"no statement began with {beginning}"


def wait_until_one_waits_for_a_lock(site):
    waiting = {
        # Not innodb_trx, which is a copy that is not made anew while it is read all the time.
        "mariadb": "SHOW GLOBAL STATUS LIKE 'Innodb_row_lock_current_waits'",
        "postgres": "SELECT COUNT(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'",
    }[site.name]
    for _ in range(2000):
        with site.engine.connect() as connection:
            # The number is the last column; of a status its name comes first.
            if int(connection.execute(text(waiting)).one()[-1]):
                return
        time.sleep(0.005)
    pytest.fail("nobody waits for a lock")


@pytest.mark.parametrize(
    "bounds",
    [(EVERYTHING, EVERYTHING), (("2026-01-01", "2026-01-09"), ("2026-01-09", "2026-02-01"))],
    ids=["of one partition", "of neighbouring partitions"],
)
def test_two_derivations_at_once_leave_one_row_a_run(server_site, bounds):
    case = many_runs(300, every=600)
    load_case(server_site.engine, case)
    both = [start_deriving(server_site, 7, each) for each in bounds]
    go(*both)
    assert [0, 0] == finish(*both)
    assert outcome_rows(server_site.engine) == accepted(case)


def test_a_derivation_killed_at_any_moment_and_run_again_leaves_one_row_a_run(server_site):
    case = many_runs(300)
    load_case(server_site.engine, case)
    seen = []
    for _ in range(3):
        process = start_deriving(server_site, 5)
        enough = len(seen) + random.randrange(5, 80)
        go(process)
        while len(outcome_rows(server_site.engine)) < enough and process.poll() is None:
            pass
        process.kill()
        finish(process)
        now_there = outcome_rows(server_site.engine)
        assert set(seen) <= set(now_there), "what was committed stays"
        seen = now_there
    derive(server_site)
    assert outcome_rows(server_site.engine) == accepted(case)


def test_a_derivation_that_waited_for_another_records_nothing_twice(server_site):
    case = many_runs(20)
    load_case(server_site.engine, case)
    first, page, outcomes = read_page(server_site)
    second, same_page, same_outcomes = read_page(server_site)
    recorded = []
    late = threading.Thread(target=lambda: recorded.extend(second.record_observed(same_page.runs, same_outcomes)))

    def let_the_other_run_into_our_lock():
        late.start()
        wait_until_one_waits_for_a_lock(server_site)

    with before_statement(first, "INSERT", let_the_other_run_into_our_lock):
        assert 20 == len(first.record_observed(page.runs, outcomes))
    late.join()
    assert [] == recorded
    assert outcome_rows(server_site.engine) == accepted(case)


def test_a_purge_in_the_middle_of_a_derivation_loses_and_doubles_nothing(site):
    case = many_runs(20)
    load_case(site.engine, case)
    first, page, outcomes = read_page(site)
    second, same_page, same_outcomes = read_page(site)
    with site.engine.begin() as connection:
        connection.execute(text("DELETE FROM tx_nrllm_agentrun_event"))
        connection.execute(text("DELETE FROM tx_nrllm_agentrun"))
    first.record_observed(page.runs, outcomes)
    second.record_observed(same_page.runs, same_outcomes)
    assert outcome_rows(site.engine) == accepted(case)


def test_two_derivations_of_runs_that_a_purge_took_leave_one_row_a_run(server_site):
    case = many_runs(20)
    load_case(server_site.engine, case)
    first, page, outcomes = read_page(server_site)
    second, same_page, same_outcomes = read_page(server_site)
    with server_site.engine.begin() as connection:
        connection.execute(text("DELETE FROM tx_nrllm_agentrun"))
    errors = []

    def record_too():
        try:
            second.record_observed(same_page.runs, same_outcomes)
        except DBAPIError as error:
            errors.append(error)

    late = threading.Thread(target=record_too)

    def let_the_other_read_before_we_write():
        late.start()
        if server_site.name == "mariadb":
            wait_until_one_waits_for_a_lock(server_site)
        else:
            late.join()

    with before_statement(first, "INSERT", let_the_other_read_before_we_write):
        try:
            first.record_observed(page.runs, outcomes)
        except DBAPIError as error:
            errors.append(error)
    late.join()
    assert [] == errors
    assert accepted(case) == outcome_rows(server_site.engine)


@pytest.mark.parametrize("beginning", ["SELECT", "INSERT"])
def test_a_server_that_restarts_in_the_middle_is_an_error_to_retry_and_the_retry_finishes(server_site, beginning):
    case = many_runs(60)
    load_case(server_site.engine, case)
    task = NrLlmDeriveOutcomesOperator(task_id="derive", nrllm_conn_id=server_site.conn_id, page_size=20)
    with before_statement(task.hook, beginning, server_site.server.restart), pytest.raises(DBAPIError):
        task.execute({})
    derive(server_site, page_size=20)
    assert outcome_rows(server_site.engine) == accepted(case)


def test_a_server_that_crashes_keeps_what_was_committed(server_site):
    case = many_runs(60)
    load_case(server_site.engine, case)
    hook = NrLlmHook(server_site.conn_id)
    for page in hook.pages(None, START + 100 * DAY, window=7 * DAY, page_size=20):
        hook.record_observed(page.runs, page.outcomes(START + 100 * DAY))
        server_site.server.kill()
        server_site.server.start()
    assert outcome_rows(server_site.engine) == accepted(case)


def test_a_lock_wait_time_out_is_passed_on_and_the_retry_finishes(server_site):
    case = many_runs(20)
    load_case(server_site.engine, case)
    if server_site.name == "mariadb":
        with server_site.engine.begin() as connection:
            connection.execute(text("SET GLOBAL innodb_lock_wait_timeout = 1"))
    else:
        server_site.define_connection(extra={"options": "-c lock_timeout=200"})
    with server_site.engine.begin() as connection:
        connection.execute(text("SELECT uid FROM tx_nrllm_agentrun FOR UPDATE"))
        with pytest.raises(DBAPIError):
            derive(server_site)
        assert [] == outcome_rows(server_site.engine)
    derive(server_site)
    assert outcome_rows(server_site.engine) == accepted(case)


def test_a_page_that_lost_in_a_deadlock_is_recorded_again(server_site):
    case = many_runs(20)
    load_case(server_site.engine, case)
    hook, page, outcomes = read_page(server_site)
    uids = sorted(uid for run in page.runs for uid in run.run_uids)
    recorded = []
    ours = threading.Thread(target=lambda: recorded.extend(hook.record_observed(page.runs, outcomes)))
    lock = text("SELECT uid FROM tx_nrllm_agentrun WHERE uid = :uid FOR UPDATE")
    with server_site.engine.connect() as connection:
        connection.execute(lock, {"uid": uids[-1]})
        ours.start()
        wait_until_one_waits_for_a_lock(server_site)
        # The other way round than the derivation locks; the server may choose either of the two.
        with suppress(DBAPIError):
            connection.execute(lock, {"uid": uids[0]})
    ours.join()
    assert 20 == len(recorded)
    assert accepted(case) == outcome_rows(server_site.engine)


def test_two_ratings_at_once_leave_one(server_site):
    hook = NrLlmHook(server_site.conn_id)
    hook.record_explicit("a", "helpful")
    other = NrLlmHook(server_site.conn_id)
    errors = []

    def rate():
        try:
            other.record_explicit("a", "not_helpful")
        except DBAPIError as error:
            errors.append(error)

    late = threading.Thread(target=rate)

    def let_the_other_rate():
        late.start()
        wait_until_one_waits_for_a_lock(server_site)

    with before_statement(hook, "INSERT", let_the_other_rate):
        hook.record_explicit("a", "helpful")
    late.join()
    assert outcome_rows(server_site.engine) == [("a", "helpful" if errors else "not_helpful")]
