"""A purge in the middle of a derivation loses nothing that the derivation has seen, and doubles nothing."""

import threading

import pytest
from sqlalchemy import select

from airflow_provider_nrllm.hooks.nrllm import NrLlmHook
from tests.typo3.runs import DAY, add_run, purge_runs
from tests.typo3.tables import event, outcome_rows, run

NOW = 1_800_000_000
RUNS = [f"run-{number}" for number in range(12)]


@pytest.fixture
def busy(site):
    """A site with twelve settled runs, each made an hour after the one before."""
    for number, uuid in enumerate(RUNS):
        made = NOW - 20 * DAY + number * 3600
        add_run(site.engine, uuid, made=made, writes=[made])
    return site


def pages(site):
    """Yield the hook and each page of a derivation of everything, three runs a page."""
    hook = NrLlmHook(site.conn_id)
    for page in hook.pages(None, NOW, window=7 * DAY, page_size=3):
        yield hook, page


def test_runs_purged_after_their_page_was_read_are_recorded_once(busy):
    for hook, page in pages(busy):
        purge_runs(busy.engine, made_before=NOW)
        recorded = hook.record_observed(page.runs, page.outcomes(NOW))
        again = hook.record_observed(page.runs, page.outcomes(NOW))
        assert (3, []) == (len(recorded), again)
        break
    assert outcome_rows(busy.engine) == [(uuid, "accepted_unchanged") for uuid in RUNS[:3]]


def test_runs_purged_between_pages_do_not_stop_the_others(busy):
    # What is answered and old goes after each page, as a purge beside the derivation does.
    for number, (hook, page) in enumerate(pages(busy), start=1):
        hook.record_observed(page.runs, page.outcomes(NOW))
        purge_runs(busy.engine, made_before=NOW - 20 * DAY + 3 * number * 3600)
    assert outcome_rows(busy.engine) == sorted((uuid, "accepted_unchanged") for uuid in RUNS)
    with busy.engine.connect() as connection:
        assert [] == list(connection.execute(select(run.c.uuid)))


def test_events_purged_before_their_runs_leave_runs_without_writes_that_get_no_answer(busy):
    with busy.engine.begin() as connection:
        connection.execute(event.delete())
    assert [] == [page.runs for _, page in pages(busy) if page.runs]
    assert [] == outcome_rows(busy.engine)


def test_a_purge_at_the_same_time_as_a_derivation_loses_and_doubles_nothing(busy):
    begun, purged = threading.Event(), threading.Event()

    def purge():
        begun.wait(30)
        for number in range(1, len(RUNS) + 1):
            purge_runs(busy.engine, made_before=NOW - 20 * DAY + number * 3600)
        purged.set()

    purger = threading.Thread(target=purge)
    purger.start()
    seen = []
    for hook, page in pages(busy):
        seen.extend(settled.uuid for settled in page.runs)
        # The purge runs through while this page and the next are recorded.
        begun.set()
        hook.record_observed(page.runs, page.outcomes(NOW))
    purger.join(60)
    assert purged.is_set()
    assert outcome_rows(busy.engine) == sorted((uuid, "accepted_unchanged") for uuid in seen)
    assert len(seen) >= 3
