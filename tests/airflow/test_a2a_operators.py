"""The operators of the A2A server role, as Airflow runs them."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pendulum
import pytest
from airflow.providers.common.compat.sdk import AirflowFailException, AirflowSkipException
from sqlalchemy import delete, update

from airflow_provider_nrllm.exceptions import NrLlmA2AViolationError, NrLlmSchemaError
from airflow_provider_nrllm.operators.a2a import (
    NrLlmCheckA2AOperator,
    NrLlmProjectA2AEventsOperator,
    NrLlmPurgeA2AOperator,
    NrLlmSettleA2AOperator,
)
from tests.typo3.a2a_results import logged, result, seal
from tests.typo3.a2a_sites import hook_of
from tests.typo3.a2a_tables import add_task, event, metadata, rows_of, run, task
from tests.typo3.dags import run_dag
from tests.typo3.sites import Site

OPERATORS = (NrLlmProjectA2AEventsOperator, NrLlmCheckA2AOperator, NrLlmPurgeA2AOperator)
DAGS = Path(__file__).parent.parent.parent / "dags"


def execute(operator: Any, site: Site, **arguments: Any) -> Any:
    """Execute an operator on a site."""
    return operator(task_id="task", nrllm_conn_id=site.conn_id, **arguments).execute({})


def test_the_projector_reports_what_it_did_and_how_far_the_journal_lagged(a2a_site: Site) -> None:
    hook_of(a2a_site).complete(add_task(a2a_site.engine), result(), seal=seal, now=int(time.time()) - 100)
    add_task(a2a_site.engine, 2, status_message="open text", tstamp=int(time.time()))
    done = execute(NrLlmProjectA2AEventsOperator, a2a_site)
    assert 100 <= done.pop("lag_seconds") < 160
    assert {"tasks": 1, "events": 3, "present": 0, "locked": 0, "refused": 0, "unreadable": 1} == done
    assert 3 == len(rows_of(a2a_site.engine, event))


def test_the_check_tells_all_violations_in_one_error_that_is_not_retried(a2a_site: Site) -> None:
    add_task(a2a_site.engine, 1, state="completed")
    add_task(a2a_site.engine, 2, status_message="open text")
    with pytest.raises(NrLlmA2AViolationError) as raised:
        execute(NrLlmCheckA2AOperator, a2a_site)
    told = str(raised.value)
    assert "completed without a stored result: 1 of tx_nrllm_a2a_task, uid 1" in told
    assert "an unsealed value: 1 of tx_nrllm_a2a_task, uid 2" in told
    assert "open text" not in told
    assert isinstance(raised.value, AirflowFailException)


def test_a_journal_that_is_behind_is_a_warning(
    a2a_site: Site, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    hook_of(a2a_site).complete(add_task(a2a_site.engine), result(), seal=seal, now=int(time.time()) - 100)
    with caplog.at_level(logging.WARNING):
        done = execute(NrLlmCheckA2AOperator, a2a_site, lag=timedelta(seconds=60))
    assert "behind: a terminal revision without events: 1 of tx_nrllm_a2a_task, uid 1" in logged(caplog, capsys)
    assert {"violations": 0, "late": 1} == done
    assert {"violations": 0, "late": 0} == execute(NrLlmCheckA2AOperator, a2a_site, lag=timedelta(seconds=300))


def test_the_purge_deletes_what_has_lost_its_run(a2a_site: Site) -> None:
    hook = hook_of(a2a_site)
    for uid in (1, 2):
        hook.complete(add_task(a2a_site.engine, uid), result(), seal=seal)
    hook.project()
    with a2a_site.engine.begin() as connection:
        connection.execute(delete(run).where(run.c.uid == 1001))
    assert {"tasks": 1, "events": 3} == execute(NrLlmPurgeA2AOperator, a2a_site)
    assert [2] == [row["uid"] for row in rows_of(a2a_site.engine, task)]


@pytest.mark.parametrize("operator", OPERATORS)
def test_an_installation_without_the_tables_is_told_which_are_missing(site: Site, operator: Any) -> None:
    metadata.drop_all(site.engine)
    with pytest.raises(NrLlmSchemaError, match=r"tx_nrllm_a2a_task.*tx_nrllm_a2a_event.*the TYPO3 extension nr_llm"):
        execute(operator, site)


def test_a_purge_may_pass_over_an_installation_without_the_tables_but_not_over_one_that_lost_some(
    a2a_site: Site,
) -> None:
    execute(NrLlmPurgeA2AOperator, a2a_site, on_missing_tables="skip")
    event.drop(a2a_site.engine)
    with pytest.raises(NrLlmSchemaError, match="tx_nrllm_a2a_event"):
        execute(NrLlmPurgeA2AOperator, a2a_site, on_missing_tables="skip")
    task.drop(a2a_site.engine)
    with pytest.raises(AirflowSkipException, match="no A2A tables"):
        execute(NrLlmPurgeA2AOperator, a2a_site, on_missing_tables="skip")


@pytest.mark.parametrize(
    ("operator", "arguments"),
    [
        (NrLlmProjectA2AEventsOperator, {"page_size": 0}),
        (NrLlmProjectA2AEventsOperator, {"page_size": 5001}),
        (NrLlmProjectA2AEventsOperator, {"page_size": True}),
        (NrLlmPurgeA2AOperator, {"page_size": "many"}),
        (NrLlmPurgeA2AOperator, {"on_missing_tables": "warn"}),
        (NrLlmCheckA2AOperator, {"lag": timedelta(seconds=-1)}),
        (NrLlmCheckA2AOperator, {"lag": 900}),
        (NrLlmSettleA2AOperator, {"lag": timedelta(seconds=-1)}),
    ],
)
def test_a_bad_argument_is_refused_when_the_dag_is_parsed(operator: Any, arguments: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="expected"):
        operator(task_id="task", **arguments)


# What Airflow does is the same on each engine; what the operators do is tested on each above.
@pytest.mark.parametrize("site", ["sqlite"], indirect=True)
def test_the_example_dags_project_purge_and_check(a2a_site: Site, load_dag: Callable[..., Any]) -> None:
    a2a_site.define_connection("nrllm_default")
    project, daily = (load_dag(f"nrllm_a2a_{name}", DAGS / "nrllm_a2a.py") for name in ("project", "daily"))
    hook = hook_of(a2a_site)
    for uid in (1, 2):
        hook.complete(add_task(a2a_site.engine, uid), result(), seal=seal)
    assert "success" == run_dag(project, pendulum.datetime(2026, 1, 2, tz="UTC")).state
    assert 6 == len(rows_of(a2a_site.engine, event))
    add_task(a2a_site.engine, 3, run_row={"status": "cancelled", "finished_at": 1})
    with a2a_site.engine.begin() as connection:
        connection.execute(delete(run).where(run.c.uid == 1001))
    assert "success" == run_dag(daily, pendulum.datetime(2026, 1, 2, tz="UTC")).state
    assert 3 == len(rows_of(a2a_site.engine, event))
    assert ["completed", "canceled"] == [row["state"] for row in rows_of(a2a_site.engine, task)]
    with a2a_site.engine.begin() as connection:
        connection.execute(update(task).values(artifacts=None))
    assert "failed" == run_dag(daily, pendulum.datetime(2026, 1, 3, tz="UTC")).state
