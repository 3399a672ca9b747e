"""The page of readouts, which there is from Airflow 3.1 on."""

from __future__ import annotations

from collections.abc import Iterator

import airflow
import pytest
from packaging.version import Version

from tests.typo3.api_server import ApiServer

if Version(airflow.__version__) < Version("3.1"):
    collect_ignore_glob = ["test_*.py"]


@pytest.fixture(scope="session")
def api_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """An api-server whose users the SimpleAuthManager knows."""
    server = ApiServer(tmp_path_factory.mktemp("airflow"), "simple")
    yield server
    server.stop()
