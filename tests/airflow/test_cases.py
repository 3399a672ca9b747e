"""Every case of tests/cases, through the operator: the rows it adds, and that it changes nothing else."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
import time_machine

from airflow_provider_nrllm.operators.outcomes import NrLlmDeriveOutcomesOperator
from tests.typo3.loader import load_case, load_typo3
from tests.typo3.tables import outcome_rows

CASES = Path(__file__).parent.parent / "cases"
OBSERVED_OUTCOMES = json.loads((CASES / "observed_outcomes.json").read_text())
TYPO3 = json.loads((CASES / "typo3_13.4.18.json").read_text())


def derive(site, *, now, window, start=None, end):
    """Run the operator at a moment, ends in Unix seconds."""
    with time_machine.travel(datetime.fromtimestamp(now, UTC), tick=False):
        return NrLlmDeriveOutcomesOperator(
            task_id="derive",
            nrllm_conn_id=site.conn_id,
            window=window,
            interval_start=None if start is None else datetime.fromtimestamp(start, UTC),
            interval_end=datetime.fromtimestamp(end, UTC),
        ).execute({})


@pytest.mark.parametrize("case", OBSERVED_OUTCOMES, ids=lambda case: case["name"])
def test_a_case_gets_its_outcomes_and_nothing_else(site, case):
    load_case(site.engine, case)
    before = outcome_rows(site.engine)
    start, end = case["interval"]
    result = derive(site, now=case["now"], window=case["window_days"], start=start, end=end)
    assert outcome_rows(site.engine) == sorted([*before, *case["expect"].items()])
    assert result["runs_answered"] == len(case["expect"])


def test_what_typo3_itself_wrote_gets_its_outcomes(site):
    load_typo3(site.engine, TYPO3)
    derive(site, now=TYPO3["now"], window=TYPO3["window_days"], end=TYPO3["now"])
    assert outcome_rows(site.engine) == sorted(TYPO3["expect"].items())


def test_a_second_derivation_adds_nothing(site):
    load_typo3(site.engine, TYPO3)
    derive(site, now=TYPO3["now"], window=TYPO3["window_days"], end=TYPO3["now"])
    again = derive(site, now=TYPO3["now"] + 1, window=TYPO3["window_days"], end=TYPO3["now"])
    assert 0 == again["runs_answered"]
    assert outcome_rows(site.engine) == sorted(TYPO3["expect"].items())


@pytest.mark.parametrize("page_size", [1, 2, 7])
def test_the_page_size_changes_no_answer(site, page_size):
    load_typo3(site.engine, TYPO3)
    with time_machine.travel(TYPO3["now"], tick=False):
        NrLlmDeriveOutcomesOperator(task_id="derive", nrllm_conn_id=site.conn_id, page_size=page_size).execute({})
    assert outcome_rows(site.engine) == sorted(TYPO3["expect"].items())


def test_days_derived_in_any_order_answer_the_same_as_everything_at_once(site):
    # Asked at the same moment: each day of the year once, the last first.
    load_typo3(site.engine, TYPO3)
    day = 86400
    last = TYPO3["now"] // day * day
    for start in range(last, last - 150 * day, -day):
        derive(site, now=TYPO3["now"], window=TYPO3["window_days"], start=start, end=min(start + day, TYPO3["now"]))
    assert outcome_rows(site.engine) == sorted(TYPO3["expect"].items())
