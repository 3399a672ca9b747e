"""
Derive observed outcomes once a day, and then purge what is answered: no evidence is lost before it was read.

The guard holds the purges back as long as they would take runs that are not answered yet, and so does a
derivation that failed. The command line of TYPO3 is a parameter of the DAG; ``ssh``, ``docker exec`` or
``kubectl exec`` may stand in front of it. Whoever may trigger this DAG may so run any command on the worker.
"""

from __future__ import annotations

from datetime import timedelta

import pendulum
from airflow.providers.common.compat.sdk import DAG, Param

from airflow_provider_nrllm.operators.a2a import NrLlmPurgeA2AOperator
from airflow_provider_nrllm.operators.outcomes import NrLlmDeriveOutcomesOperator
from airflow_provider_nrllm.operators.purge import NrLlmPurgeGuardOperator, NrLlmPurgeOperator

try:
    from airflow.sdk import CronDataIntervalTimetable
except ImportError:  # before Airflow 3.2
    from airflow.timetables.interval import CronDataIntervalTimetable  # type: ignore[assignment]

CONNECTION = "nrllm_default"
WINDOW = timedelta(days=7)
RETRIES = 3
RETRY_DELAY = timedelta(minutes=5)
PURGE_TIMEOUT = timedelta(hours=1)

with DAG(
    dag_id="nrllm_outcomes_and_purges",
    description=__doc__.strip().partition("\n")[0],
    doc_md=__doc__,
    schedule=CronDataIntervalTimetable("0 0 * * *", timezone="UTC"),
    start_date=pendulum.datetime(2026, 1, 1, tz="UTC"),
    catchup=True,
    # A day that failed is not overtaken by the purges of the next one: the guard finds its runs.
    max_active_runs=1,
    default_args={"retries": RETRIES, "retry_delay": RETRY_DELAY},
    params={
        "typo3_command": Param(
            "vendor/bin/typo3",
            type="string",
            minLength=1,
            title="TYPO3 command line",
            description="Split into words as a shell would, and never given to one on the worker. For example "
            "ssh typo3@web.example.org /var/www/site/vendor/bin/typo3",
        ),
        "retention_days": Param(
            30,
            type="integer",
            minimum=1,
            title="Retention in days",
            description="What the purges get as --days; longer than the window and a day.",
        ),
    },
    tags=["nr_llm"],
):
    derive = NrLlmDeriveOutcomesOperator(task_id="derive_outcomes", nrllm_conn_id=CONNECTION, window=WINDOW)
    guard = NrLlmPurgeGuardOperator(
        task_id="guard_purges",
        nrllm_conn_id=CONNECTION,
        window=WINDOW,
        retention="{{ params.retention_days }}",
        on_unanswered="skip",
        # The last retry of a purge still takes no run that the guard has not looked at.
        margin=(RETRIES + 1) * PURGE_TIMEOUT + RETRIES * RETRY_DELAY,
    )
    purges = [
        NrLlmPurgeOperator(
            task_id=f"purge_{category}",
            category=category,
            days="{{ params.retention_days }}",
            command="{{ params.typo3_command }}",
            execution_timeout=PURGE_TIMEOUT,
        )
        for category in ("privacy", "session", "governance", "telemetry")
    ]
    # What belongs to the runs that were purged goes with them, where nr_llm serves A2A clients.
    purge_a2a = NrLlmPurgeA2AOperator(task_id="purge_a2a", nrllm_conn_id=CONNECTION, on_missing_tables="skip")
    derive >> guard >> purges >> purge_a2a
