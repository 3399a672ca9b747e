"""
Derive observed outcomes by partitions: each run stands for one day, which it hands on to what builds on it.

For Airflow 3.2 and later; on an older one this file defines no DAG. Partitions are backfilled on 3.3 and later.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pendulum
from airflow.providers.common.compat.sdk import DAG, task

from airflow_provider_nrllm.assets import observed_outcomes_asset
from airflow_provider_nrllm.operators.outcomes import NrLlmDeriveOutcomesOperator

try:
    from airflow.sdk import CronPartitionTimetable, PartitionedAssetTimetable
except ImportError:  # before Airflow 3.2
    PARTITIONS = False
else:
    PARTITIONS = True

CONNECTION = "nrllm_default"

if PARTITIONS:
    outcomes = observed_outcomes_asset(CONNECTION)

    with DAG(
        dag_id="nrllm_partitioned",
        description=__doc__.strip().partition("\n")[0],
        doc_md=__doc__,
        # A run at midnight answers the day that ends then: the partition is the one before it.
        schedule=CronPartitionTimetable("0 0 * * *", timezone="UTC", run_offset=-1),
        start_date=pendulum.datetime(2026, 1, 1, tz="UTC"),
        catchup=True,
        max_active_runs=4,
        default_args={"retries": 3, "retry_delay": timedelta(minutes=5), "retry_exponential_backoff": True},
        tags=["nr_llm"],
    ):
        NrLlmDeriveOutcomesOperator(
            task_id="derive_outcomes",
            nrllm_conn_id=CONNECTION,
            window=7,
            partition_width=timedelta(days=1),
            outlets=[outcomes],
        )

    with DAG(
        dag_id="nrllm_after_each_partition",
        description="Run once for each partition of observed outcomes, with its counts.",
        schedule=PartitionedAssetTimetable(assets=outcomes),
        start_date=pendulum.datetime(2026, 1, 1, tz="UTC"),
        catchup=False,
        tags=["nr_llm"],
    ):

        @task
        def report(partition_key: str | None = None, triggering_asset_events: Any = None) -> dict[str, Any]:
            """Return the partition and how many of its runs became what."""
            counts = [event.extra for events in triggering_asset_events.values() for event in events]
            return {"partition": partition_key, "counts": counts}

        report()
