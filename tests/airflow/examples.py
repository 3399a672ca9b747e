"""Loading the example DAGs and running them in this process, on both lines of Airflow."""

from __future__ import annotations

import inspect
from datetime import datetime
from pathlib import Path
from typing import Any

DAGS = Path(__file__).parent.parent.parent / "dags"


def load_file(name: str) -> dict[str, Any]:
    """Return the DAGs of an example file by their ids, as Airflow finds them."""
    try:
        from airflow.dag_processing.dagbag import DagBag
    except ImportError:
        from airflow.models.dagbag import DagBag
    bag = DagBag(str(DAGS / name))
    assert bag.import_errors == {}
    return dict(bag.dags)


def run_dag(dag: Any, moment: datetime | None = None, **arguments: Any) -> dict[str, str]:
    """
    Run a DAG by ``dag.test()`` and return the states of its tasks by their ids.

    :param moment: the logical date; the data interval ends then
    :param arguments: of ``dag.test()``
    """
    name = "logical_date" if "logical_date" in inspect.signature(dag.test).parameters else "execution_date"
    if moment is not None:
        arguments[name] = moment
    run = dag.test(**arguments)
    return {_name_of(instance): str(instance.state) for instance in run.get_task_instances()}


def make_known(dag: Any) -> None:
    """Tell Airflow of a DAG that is in no file, as the DAG processor tells it of the others."""
    from airflow.models.serialized_dag import SerializedDagModel

    try:
        from airflow.serialization.serialized_objects import LazyDeserializedDAG
    except ImportError:
        return  # Airflow 2 needs no telling.
    from airflow.dag_processing.bundles.manager import DagBundlesManager
    from airflow.models.dag import DagModel
    from airflow.utils.session import create_session

    with create_session() as session:
        DagBundlesManager().sync_bundles_to_db(session=session)
        session.commit()
        session.merge(DagModel(dag_id=dag.dag_id, bundle_name="dags-folder"))
        session.flush()
        SerializedDagModel.write_dag(LazyDeserializedDAG.from_dag(dag), bundle_name="dags-folder", session=session)


def _name_of(instance: Any) -> str:
    return instance.task_id if instance.map_index < 0 else f"{instance.task_id}[{instance.map_index}]"
