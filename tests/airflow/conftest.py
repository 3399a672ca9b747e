"""The example DAGs as Airflow loads them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

DAGS = Path(__file__).parent.parent.parent / "dags"


@pytest.fixture
def load_dag(airflow_db: None) -> Callable[..., Any]:
    """Return a function that loads ``dags/<name>.py``, or another file, and returns the DAG of that name."""
    try:
        from airflow.dag_processing.dagbag import DagBag
    except ImportError:  # before Airflow 3.1
        from airflow.models.dagbag import DagBag

    def load(name: str, path: Path | None = None) -> Any:
        bag = DagBag(str(path or DAGS / f"{name}.py"))
        assert bag.import_errors == {}
        return bag.dags.get(name)

    return load


def run_dag(dag: Any, moment: datetime) -> Any:
    """Run a DAG for a moment in this process, and return the DAG run."""
    name = "logical_date" if "logical_date" in inspect.signature(dag.test).parameters else "execution_date"
    return dag.test(**{name: moment})
