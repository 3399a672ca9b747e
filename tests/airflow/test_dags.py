"""The example DAG as it stands, run by Airflow."""

from __future__ import annotations

import pendulum
import pytest

from tests.typo3.dags import run_dag
from tests.typo3.loader import load_case
from tests.typo3.tables import outcome_rows
from tests.typo3.worlds import DAY, START, accepted, many_runs, run, world


@pytest.fixture
def observed_outcomes(site, load_dag):
    site.define_connection("nrllm_default")
    return load_dag("nrllm_observed_outcomes")


def test_a_run_of_the_example_dag_answers_the_day_it_stands_for(site, observed_outcomes):
    days = [run(number, at=START + number * DAY) for number in range(1, 4)]
    load_case(site.engine, world(days))
    # The interval that ends on the 10th is the one in which the first run settled.
    done = run_dag(observed_outcomes, pendulum.datetime(2026, 1, 10, tz="UTC"))
    assert "success" == done.state
    assert outcome_rows(site.engine) == accepted(world(days[:1]))


def test_the_example_dag_run_again_adds_nothing(site, observed_outcomes):
    case = many_runs(3)
    load_case(site.engine, case)
    for _ in range(2):
        done = run_dag(observed_outcomes, pendulum.datetime(2026, 1, 9, tz="UTC"))
        assert "success" == done.state
    assert outcome_rows(site.engine) == accepted(case)


def test_the_readout_dag_writes_a_folder_of_its_interval_where_the_page_reads(site, load_dag, tmp_path, monkeypatch):
    site.define_connection("nrllm_default")
    monkeypatch.setenv("AIRFLOW__NRLLM__READOUT_PATH", str(tmp_path))
    # A Monday, on which the interval of the week before ends.
    done = run_dag(load_dag("nrllm_readout"), pendulum.datetime(2026, 1, 12, 6, tz="UTC"))
    assert "success" == done.state
    assert ["2026-01-12T060000Z", "latest"] == sorted(folder.name for folder in (tmp_path / "main").iterdir())
