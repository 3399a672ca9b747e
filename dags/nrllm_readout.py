"""
Read outcomes by model once a week, where the page "AI outcomes" of Airflow's UI shows them.

A run of this DAG reads the outcomes that were recorded in its data interval, and writes them into a folder of its own
below the directory that ``[nrllm] readout_path`` names; run again, it replaces its own files.
"""

from __future__ import annotations

from datetime import timedelta

import pendulum
from airflow.providers.common.compat.sdk import DAG, conf

from airflow_provider_nrllm.operators.readout import NrLlmOutcomeReadoutOperator

try:
    from airflow.sdk import CronDataIntervalTimetable
except ImportError:  # before Airflow 3.2
    from airflow.timetables.interval import CronDataIntervalTimetable  # type: ignore[assignment]

#: The page shows each folder in it as a site.
READOUTS = conf.get("nrllm", "readout_path", fallback="")

with DAG(
    dag_id="nrllm_readout",
    description=__doc__.strip().partition("\n")[0],
    doc_md=__doc__,
    schedule=CronDataIntervalTimetable("0 6 * * 1", timezone="UTC"),
    start_date=pendulum.datetime(2026, 1, 1, tz="UTC"),
    catchup=False,
    default_args={"retries": 3, "retry_delay": timedelta(minutes=5), "retry_exponential_backoff": True},
    tags=["nr_llm"],
):
    NrLlmOutcomeReadoutOperator(
        task_id="readout",
        nrllm_conn_id="nrllm_default",
        group_by="served_model",
        # Without a path the figures are in the log and the XCom alone.
        output_path=f"{READOUTS}/main" if READOUTS else None,
        dated_folders=True,
    )
