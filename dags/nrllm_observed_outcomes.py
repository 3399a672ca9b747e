"""
Derive observed outcomes once a day: what became of what AI runs wrote, a week after they wrote it.

A run of this DAG answers the nr_llm runs that settled in its data interval, each once. Late runs, runs at the
same time and runs again give the same rows. To backfill, use ``airflow backfill create``.
"""

from __future__ import annotations

from datetime import timedelta

import pendulum
from airflow.providers.common.compat.sdk import DAG

from airflow_provider_nrllm.assets import observed_outcomes_asset
from airflow_provider_nrllm.operators.outcomes import NrLlmDeriveOutcomesOperator

try:
    from airflow.sdk import CronDataIntervalTimetable
except ImportError:  # before Airflow 3.2
    from airflow.timetables.interval import CronDataIntervalTimetable  # type: ignore[assignment]

with DAG(
    dag_id="nrllm_observed_outcomes",
    description=__doc__.strip().partition("\n")[0],
    doc_md=__doc__,
    # Not "@daily": since Airflow 3 that has no data interval.
    schedule=CronDataIntervalTimetable("0 0 * * *", timezone="UTC"),
    start_date=pendulum.datetime(2026, 1, 1, tz="UTC"),
    catchup=True,
    max_active_runs=4,
    default_args={"retries": 3, "retry_delay": timedelta(minutes=5), "retry_exponential_backoff": True},
    tags=["nr_llm"],
):
    NrLlmDeriveOutcomesOperator(
        task_id="derive_outcomes",
        nrllm_conn_id="nrllm_default",
        window=7,
        outlets=[observed_outcomes_asset("nrllm_default")],
    )
