"""The example DAGs as Airflow loads them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.typo3.dags import DAGS


@pytest.fixture
def load_dag(airflow_db: None) -> Callable[..., Any]:
    """Return a function that loads ``dags/<name>.py``, or another file, and returns the DAG of that name."""
    try:
        from airflow.dag_processing.dagbag import DagBag
    except ImportError:  # before Airflow 3.1
        from airflow.models.dagbag import DagBag

    def load(name: str, path: Path | None = None) -> Any:
        bag = DagBag(str(path or DAGS / f"{name}.py"))
        assert {} == bag.import_errors
        return bag.dags.get(name)

    return load
