"""
Keep the journal of A2A tasks: project every few minutes, check and purge once a day.

Only for an installation of nr_llm with the A2A server role. Each DAG may be paused, run late or run again.
"""

from __future__ import annotations

from datetime import timedelta

import pendulum
from airflow.providers.common.compat.sdk import DAG

from airflow_provider_nrllm.operators.a2a import (
    NrLlmCheckA2AOperator,
    NrLlmProjectA2AEventsOperator,
    NrLlmPurgeA2AOperator,
    NrLlmSettleA2AOperator,
)

START = pendulum.datetime(2026, 1, 1, tz="UTC")
RETRIES = {"retries": 3, "retry_delay": timedelta(minutes=1)}

with DAG(
    dag_id="nrllm_a2a_project",
    description="Write the events of A2A tasks, from which clients are told",
    doc_md=__doc__,
    schedule=timedelta(minutes=3),
    start_date=START,
    catchup=False,
    max_active_runs=1,
    default_args={**RETRIES, "execution_timeout": timedelta(minutes=15)},
    tags=["nr_llm"],
) as project:
    NrLlmProjectA2AEventsOperator(task_id="project_events", nrllm_conn_id="nrllm_default")

with DAG(
    dag_id="nrllm_a2a_daily",
    description="Purge the A2A tasks that have lost their run, end those whose run has ended, check the rest",
    doc_md=__doc__,
    schedule="30 3 * * *",
    start_date=START,
    catchup=False,
    max_active_runs=1,
    default_args={**RETRIES, "execution_timeout": timedelta(hours=1)},
    tags=["nr_llm"],
) as daily:
    # Purged first: a task that has lost its run since yesterday is in good order.
    purge = NrLlmPurgeA2AOperator(task_id="purge_lost", nrllm_conn_id="nrllm_default")
    settle = NrLlmSettleA2AOperator(task_id="settle_left", nrllm_conn_id="nrllm_default")
    check = NrLlmCheckA2AOperator(task_id="check", nrllm_conn_id="nrllm_default", lag=timedelta(minutes=15))
    purge >> settle >> check
