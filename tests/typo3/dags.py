"""Run a DAG in this process, and read what became of its tasks."""

from __future__ import annotations

import inspect
from datetime import datetime
from pathlib import Path
from typing import Any

DAGS = Path(__file__).parent.parent.parent / "dags"


def run_dag(dag: Any, moment: datetime | None, **arguments: Any) -> Any:
    """
    Run a DAG for a moment in this process, and return the DAG run.

    :param moment: the logical date, when the data interval ends; None for a run without one
    :param arguments: of ``dag.test()``
    """
    name = "logical_date" if "logical_date" in inspect.signature(dag.test).parameters else "execution_date"
    return dag.test(**{name: moment}, **arguments)


def states_of(dag_run: Any) -> dict[str, str]:
    """Return the states of a DAG run's tasks by their ids, mapped ones as ``task[index]``."""
    return {
        instance.task_id + ("" if instance.map_index < 0 else f"[{instance.map_index}]"): str(instance.state)
        for instance in dag_run.get_task_instances()
    }


def make_known(dag: Any) -> None:
    """Tell Airflow of a DAG that is in no file, as the DAG processor tells it of the others."""
    try:
        from airflow.serialization.serialized_objects import LazyDeserializedDAG
    except ImportError:
        return  # Airflow 2 needs no telling.
    from airflow.dag_processing.bundles.manager import DagBundlesManager
    from airflow.models.dag import DagModel
    from airflow.models.serialized_dag import SerializedDagModel
    from airflow.utils.session import create_session

    with create_session() as session:
        DagBundlesManager().sync_bundles_to_db(session=session)
        session.commit()
        session.merge(DagModel(dag_id=dag.dag_id, bundle_name="dags-folder"))
        session.flush()
        SerializedDagModel.write_dag(LazyDeserializedDAG.from_dag(dag), bundle_name="dags-folder", session=session)
