"""Numbers that no site should have, and models may make, are answered: by few statements, none of them too long."""

from __future__ import annotations

import pytest

from airflow_provider_nrllm.hooks.nrllm import NrLlmHook
from airflow_provider_nrllm.outcomes.rules import ObservedOutcome
from benchmarks.plans import recorded
from tests.typo3.many import START, lay_writes
from tests.typo3.runs import DAY
from tests.typo3.sites import Site
from tests.typo3.tables import event, run

END = START + 100 * DAY


def answers(site: Site) -> tuple[dict[str, ObservedOutcome], int]:
    """Return the outcomes of all runs, and how many statements it took to find them."""
    hook = NrLlmHook(site.conn_id)
    found: dict[str, ObservedOutcome] = {}
    with recorded(hook.database.engine) as statements:
        for page in hook.pages(None, END, window=7 * DAY, page_size=1000):
            found |= page.outcomes(END)
    return found, len(statements)


def test_a_page_may_name_tens_of_thousands_of_tables(site: Site) -> None:
    lay_writes(site.engine, [(n // 100 + 1, f"table_{n}", 1) for n in range(40_000)], [f"run-{n}" for n in range(400)])
    found, _ = answers(site)
    # None of them is there, and the answer comes late (ADR-185).
    assert dict.fromkeys((f"run-{n}" for n in range(400)), ObservedOutcome.UNKNOWN) == found


@pytest.mark.parametrize(
    ("writes", "uuids"),
    [
        ([(1, "tt_content", 1)] * 12_000, ["run"]),
        ([(1, "tt_content", n % 3000 + 1) for n in range(12_000)], ["run"]),
        ([(n + 1, "tt_content", 1) for n in range(6000)], ["run"] * 6000),
    ],
    ids=["writes to a record", "writes to many records", "runs of a uuid"],
)
def test_what_spans_pages_is_read_on_its_first_and_on_its_last(
    site: Site, writes: list[tuple[int, str, int]], uuids: list[str]
) -> None:
    lay_writes(site.engine, writes, uuids)
    hook = NrLlmHook(site.conn_id)
    with recorded(hook.database.engine) as statements:
        pages = [page.outcomes(END) for page in hook.pages(None, END, window=7 * DAY, page_size=1000)]
    assert [{"run": ObservedOutcome.ACCEPTED_UNCHANGED}] == pages
    assert 2 == sum("payload" in one.text and "event.run IN" in one.text for one in statements)


def test_runs_that_wait_are_passed_over_by_one_statement(site: Site) -> None:
    count = 5000
    writes = [(n + 1, "tt_content", 1) for n in range(count)]
    lay_writes(site.engine, writes, [f"run-{n}" for n in range(count)], status="waiting_for_approval")
    found, waiting = answers(site)
    assert {} == found
    with site.engine.begin() as connection:
        connection.execute(run.delete())
        connection.execute(event.delete())
    assert ({}, waiting) == answers(site)
