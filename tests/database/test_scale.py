"""What a derivation asks of a database does not grow with the site: how many statements, and what they read."""

from __future__ import annotations

import itertools

import pytest

from airflow_provider_nrllm.hooks.nrllm import NrLlmHook
from benchmarks.measure import DAY_PARTITION, LARGE, WINDOW
from benchmarks.plans import recorded, scanned, sorts
from tests.typo3 import year as generated
from tests.typo3.loader import load_case
from tests.typo3.sites import Site
from tests.typo3.worlds import DAY, START, many_runs, run, world


def statements_of_first_page(site: Site, page_size: int) -> list[str]:
    hook = NrLlmHook(site.conn_id)
    with recorded(hook.database.engine) as statements:
        page = next(hook.pages(None, START + 100 * DAY, window=7 * DAY, page_size=page_size))
        assert page_size == len(hook.record_observed(page.runs, page.outcomes(START + 100 * DAY)))
    return [statement.text.split()[0] for statement in statements]


def test_a_page_of_1000_runs_costs_as_many_statements_as_one_of_10(site: Site) -> None:
    load_case(site.engine, many_runs(1010))

    small, large = statements_of_first_page(site, 10), statements_of_first_page(site, 1000)

    assert small == large


def test_no_more_statements_are_kept_after_many_pages_than_after_a_few(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    # SQLAlchemy keeps what it compiled, with the uids of the page it was compiled for.
    clock = itertools.count(START)
    monkeypatch.setattr("airflow_provider_nrllm.hooks.nrllm.time.time", lambda: next(clock))
    load_case(site.engine, many_runs(300))
    hook = NrLlmHook(site.conn_id)
    kept = []
    for page in hook.pages(None, START + 100 * DAY, window=7 * DAY, page_size=10):
        hook.record_observed(page.runs, page.outcomes(START + 100 * DAY))
        kept.append(len(hook.database.engine._compiled_cache))
    assert 30 == len(kept)
    assert kept[4] == kept[-1]


def test_a_run_is_on_the_page_of_its_last_write(site: Site) -> None:
    again = {"target": "tt_content:1", "at": START + 2 * DAY}
    first, between = run(1), run(2, at=START + DAY)
    load_case(site.engine, world([{**first, "writes": [*first["writes"], again]}, between]))

    pages = NrLlmHook(site.conn_id).pages(None, START + 100 * DAY, window=7 * DAY, page_size=1)

    assert [["run-00002"], ["run-00001"]] == [[run.uuid for run in page.runs] for page in pages]


@pytest.fixture
def year(site: Site) -> Site:
    """
    A year of 3,000 runs, which the engine has counted, except SQLite, which never does.

    ``make bench`` asserts the same of 100,000 runs; to load those would take minutes here.
    """
    generated.load(site.engine, generated.Site(3000, generated.Texts(event=50, history=20)))
    return site


def test_a_day_out_of_a_year_scans_neither_events_nor_history(year: Site) -> None:
    hook = NrLlmHook(year.conn_id)
    with recorded(hook.database.engine) as statements:
        for page in hook.pages(*DAY_PARTITION, window=WINDOW, page_size=500):
            hook.record_observed(page.runs, page.outcomes(generated.END))

    with year.engine.connect() as connection:
        assert set() == LARGE & set().union(*(scanned(connection, statement) for statement in statements))


@pytest.mark.parametrize("site", ["sqlite"], indirect=True)
def test_a_page_of_everything_is_found_without_sorting_all_that_comes_after_it(year: Site) -> None:
    hook = NrLlmHook(year.conn_id)
    with recorded(hook.database.engine) as statements:
        next(hook.pages(None, generated.END, window=WINDOW, page_size=10))
    with year.engine.connect() as connection:
        of_writes = [one for one in statements if "JOIN tx_nrllm_agentrun" in one.text and "LIMIT" in one.text]
        assert [False] == [sorts(connection, one) for one in of_writes]
