"""
Derive observed outcomes of many TYPO3 sites once a day: one mapped task for each connection, named after it.

A site that cannot be reached fails its own task and no other. To add a site, add its connection to ``SITES``.
"""

from __future__ import annotations

from datetime import timedelta

import pendulum
from airflow.providers.common.compat.sdk import DAG

from airflow_provider_nrllm.operators.outcomes import NrLlmDeriveOutcomesOperator

try:
    from airflow.sdk import CronDataIntervalTimetable
except ImportError:  # before Airflow 3.2
    from airflow.timetables.interval import CronDataIntervalTimetable  # type: ignore[assignment]

#: The Airflow connections of the sites' databases.
SITES = ["nrllm_site_a", "nrllm_site_b"]

with DAG(
    dag_id="nrllm_many_sites",
    description=__doc__.strip().partition("\n")[0],
    doc_md=__doc__,
    schedule=CronDataIntervalTimetable("0 0 * * *", timezone="UTC"),
    start_date=pendulum.datetime(2026, 1, 1, tz="UTC"),
    catchup=True,
    max_active_runs=2,
    default_args={"retries": 3, "retry_delay": timedelta(minutes=5), "retry_exponential_backoff": True},
    tags=["nr_llm"],
):
    NrLlmDeriveOutcomesOperator.partial(
        task_id="derive_outcomes",
        window=7,
        map_index_template="{{ task.nrllm_conn_id }}",
        # No more than this many of the sites at once.
        max_active_tis_per_dagrun=8,
    ).expand(nrllm_conn_id=SITES)
