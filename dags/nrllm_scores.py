"""
Hand outcomes on to MLflow as scores whenever a derivation has recorded some.

A run of this DAG hands on what was recorded in the three days before it began: ratings and observed outcomes. What is
there already is left as it is, and a rating that changed is updated. For a longer time, trigger it with the parameter
"days".
"""

from __future__ import annotations

from datetime import timedelta

import pendulum
from airflow.providers.common.compat.sdk import DAG

from airflow_provider_nrllm.assets import observed_outcomes_asset
from airflow_provider_nrllm.operators.scores import NrLlmOutcomeScoresOperator

with DAG(
    dag_id="nrllm_scores",
    description=__doc__.strip().partition("\n")[0],
    doc_md=__doc__,
    schedule=[observed_outcomes_asset("nrllm_default")],
    start_date=pendulum.datetime(2026, 1, 1, tz="UTC"),
    catchup=False,
    max_active_runs=1,
    params={"days": 3},
    default_args={"retries": 3, "retry_delay": timedelta(minutes=5), "retry_exponential_backoff": True},
    tags=["nr_llm"],
):
    NrLlmOutcomeScoresOperator(
        task_id="hand_on_scores",
        target="mlflow",
        scores_conn_id="mlflow_default",
        nrllm_conn_id="nrllm_default",
        experiment_id="0",
        # A run that an asset starts has no data interval.
        interval_start="{{ (dag_run.start_date - macros.timedelta(days=params.days)).isoformat() }}",
        interval_end="{{ dag_run.start_date.isoformat() }}",
    )
