"""
What every test may use: an Airflow of its own, and an empty TYPO3 site on SQLite, MariaDB and PostgreSQL.

The servers start when the first test asks for them. One that is not installed is an error, never a skip.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, sync_playwright

# Airflow reads these when it is first imported, which the modules under test do.
_AIRFLOW_HOME = Path(tempfile.mkdtemp(prefix="nrllm-airflow-"))
os.environ.update(
    AIRFLOW_HOME=str(_AIRFLOW_HOME),
    AIRFLOW__CORE__UNIT_TEST_MODE="True",
    AIRFLOW__CORE__LOAD_EXAMPLES="False",
    AIRFLOW__CORE__DAGS_FOLDER=str(Path(__file__).parent.parent / "dags"),
    AIRFLOW__DATABASE__SQL_ALCHEMY_CONN=f"sqlite:///{_AIRFLOW_HOME}/airflow.db",
    AIRFLOW__DATABASE__LOAD_DEFAULT_CONNECTIONS="False",
)

from sqlalchemy import create_engine, text  # noqa: E402
from sqlalchemy.engine import Engine  # noqa: E402
from sqlalchemy.pool import NullPool  # noqa: E402

from tests.typo3.servers import MariaDB, Postgres, Server, ServerError  # noqa: E402
from tests.typo3.tables import create_tables, empty_tables  # noqa: E402


def pytest_unconfigure() -> None:
    """Delete what Airflow wrote."""
    shutil.rmtree(_AIRFLOW_HOME, ignore_errors=True)


@pytest.fixture(scope="session")
def airflow_db() -> None:
    """Create Airflow's own tables, for the tests that run a DAG."""
    from airflow.utils.db import initdb

    initdb()


@dataclass(frozen=True)
class Site:
    """
    The database of a TYPO3 site, all of whose tables are empty when a test begins.

    :ivar name: ``sqlite``, ``mariadb`` or ``postgres``
    :ivar engine: an engine of a user who may do anything
    :ivar connection: the fields of the Airflow connection
    :ivar conn_id: its id, defined as long as the test runs
    """

    name: str
    engine: Engine
    connection: dict[str, Any]
    server: Server | None
    monkeypatch: pytest.MonkeyPatch

    @property
    def conn_id(self) -> str:
        return f"site_{self.name}"

    def define_connection(self, conn_id: str | None = None, **changes: Any) -> str:
        """
        Define an Airflow connection to the site until the test ends, and return its id.

        :param conn_id: another id than the site's usual one
        :param changes: fields that are to differ from :attr:`connection`, such as ``login`` or ``extra``
        """
        conn_id = conn_id or self.conn_id
        self.monkeypatch.setenv(f"AIRFLOW_CONN_{conn_id.upper()}", json.dumps({**self.connection, **changes}))
        return conn_id

    def make_nullable(self, table: str, column: str, type_: str) -> None:
        """Let a column hold NULL, which TYPO3's own schema does not."""
        statements = {
            # SQLite changes no column; another one takes its place.
            "sqlite": [
                f"ALTER TABLE {table} RENAME COLUMN {column} TO old_{column}",
                f"ALTER TABLE {table} ADD COLUMN {column} {type_}",
                f"UPDATE {table} SET {column} = old_{column}",
            ],
            "mariadb": [f"ALTER TABLE {table} MODIFY {column} {type_} NULL"],
            "postgres": [f"ALTER TABLE {table} ALTER COLUMN {column} DROP NOT NULL"],
        }
        with self.engine.begin() as connection:
            for statement in statements[self.name]:
                connection.execute(text(statement))


def _running(server: type[Server]) -> Iterator[Server]:
    try:
        running = server()
    except ServerError as error:
        raise pytest.fail.Exception(str(error), pytrace=False) from None
    yield running
    running.remove()


@pytest.fixture(scope="session")
def mariadb_server() -> Iterator[Server]:
    """A MariaDB server of the session, with the tables of a site."""
    for server in _running(MariaDB):
        create_tables(server.engine())
        yield server


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Server]:
    """A PostgreSQL server of the session, with the tables of a site."""
    for server in _running(Postgres):
        create_tables(server.engine())
        yield server


@pytest.fixture(scope="session")
def sqlite_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A SQLite database of the session, with the tables of a site."""
    path = tmp_path_factory.mktemp("sqlite") / "typo3.sqlite"
    create_tables(create_engine(f"sqlite:///{path}", poolclass=NullPool))
    return path


def _site(name: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Site:
    if name == "sqlite":
        path = request.getfixturevalue("sqlite_file")
        engine = create_engine(f"sqlite:///{path}", poolclass=NullPool)
        found = Site(name, engine, {"conn_type": "sqlite", "host": str(path)}, None, monkeypatch)
    else:
        server = request.getfixturevalue(f"{name}_server")
        found = Site(name, server.engine(), server.connection, server, monkeypatch)
    found.define_connection()
    empty_tables(found.engine)
    return found


@pytest.fixture
def make_site(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Site]:
    """Make an empty site on the engine of that name."""
    return lambda name: _site(name, request, monkeypatch)


@pytest.fixture(params=["sqlite", "mariadb", "postgres"])
def site(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Site:
    """An empty site; the test runs once on each engine."""
    return _site(request.param, request, monkeypatch)


@pytest.fixture(params=["mariadb", "postgres"])
def server_site(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """An empty site on a server, which the test may stop, kill and restart; once on each server."""
    found = _site(request.param, request, monkeypatch)
    yield found
    if found.server and not found.server.is_running():
        found.server.start()


@pytest.fixture
def make_site_to_change(make_site: Callable[[str], Site]) -> Iterator[Callable[[str], Site]]:
    """Make an empty site on the engine of that name, whose tables the test may alter and drop."""
    made: list[Site] = []

    def make(name: str) -> Site:
        made.append(make_site(name))
        return made[-1]

    yield make
    for site in made:
        _make_tables_anew(site)


@pytest.fixture
def site_to_change(site: Site) -> Iterator[Site]:
    """An empty site whose tables the test may alter and drop; they are made anew after it."""
    yield site
    _make_tables_anew(site)


def _make_tables_anew(site: Site) -> None:
    if site.server:
        site.server.empty_database()
    else:
        Path(site.connection["host"]).unlink()
    create_tables(site.engine)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium, which has to be there."""
    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if path is None:
        pytest.fail("Chromium is not installed; on Debian: apt-get install chromium", pytrace=False)
    with sync_playwright() as playwright:
        # Chromium's own sandbox needs privileges that a container does not have.
        chromium = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"], timeout=120_000)
        yield chromium
        chromium.close()
