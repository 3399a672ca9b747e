"""What settled before a partition and was never answered is counted, so that a gap is not silent."""

from __future__ import annotations

import pytest

from airflow_provider_nrllm.hooks.nrllm import NrLlmHook
from airflow_provider_nrllm.outcomes.pages import Gap
from benchmarks.plans import recorded
from tests.typo3.runs import DAY, add_run
from tests.typo3.sites import Site

#: The first second of the partition.
START = 1_770_000_000
WINDOW = 7 * DAY


def gap(site: Site) -> Gap:
    return NrLlmHook(site.conn_id).gap_before(START, window=WINDOW)


def test_runs_that_settled_before_the_partition_without_an_outcome_are_counted_since_the_first(site: Site) -> None:
    for number in range(3):
        at = START - WINDOW - (number + 1) * DAY
        add_run(site.engine, f"run-{number}", made=at - 60, writes=[at])
    assert Gap(3, START - 3 * DAY) == gap(site)


def test_a_run_that_ended_late_settled_when_it_ended(site: Site) -> None:
    at = START - WINDOW - 5 * DAY
    add_run(site.engine, "late", made=at, writes=[at], finished=START - DAY)
    assert Gap(1, START - DAY) == gap(site)


@pytest.mark.parametrize(
    ("why", "changes"),
    [
        ("answered", {"answered": "edited"}),
        ("answered as unknown", {"answered": "unknown"}),
        ("without a write", {"writes": []}),
        ("it goes on", {"status": "running"}),
        ("it settles in the partition", {"writes": [START - WINDOW]}),
        ("it ended in the partition", {"finished": START}),
        ("without a uuid", {"uuid": ""}),
    ],
)
def test_nothing_else_is_a_gap(site: Site, why: str, changes: dict[str, object]) -> None:
    at = START - WINDOW - DAY
    run = {"uuid": "run", "made": at - 60, "writes": [at], **changes}
    add_run(site.engine, **run)  # type: ignore[arg-type]
    assert Gap() == gap(site)


def test_a_rating_is_no_answer_of_the_derivation(site: Site) -> None:
    at = START - WINDOW - DAY
    add_run(site.engine, "run", made=at - 60, writes=[at], answered="helpful")
    assert 1 == gap(site).runs


def test_older_gaps_count_where_one_lies_within_the_window_before(site: Site) -> None:
    for number, days in enumerate((1, 100)):
        at = START - WINDOW - days * DAY
        add_run(site.engine, f"run-{number}", made=at - 60, writes=[at])
    assert Gap(2, START - 100 * DAY) == gap(site)


def test_without_a_gap_one_statement_looks_at_the_window_before_alone(site: Site) -> None:
    at = START - WINDOW - 100 * DAY
    add_run(site.engine, "old", made=at - 60, writes=[at])
    hook = NrLlmHook(site.conn_id)
    with recorded(hook.database.engine) as statements:
        assert Gap() == hook.gap_before(START, window=WINDOW)
    assert 1 == len([statement for statement in statements if "FROM tx_nrllm_agentrun" in statement.text])
