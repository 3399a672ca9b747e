"""
What every test may use: an Airflow of its own, and an empty TYPO3 site on SQLite, MariaDB and PostgreSQL.

The servers start when the first test asks for them. One that is not installed is an error, never a skip.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

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

from sqlalchemy import create_engine  # noqa: E402
from sqlalchemy.pool import NullPool  # noqa: E402

from tests.typo3.a2a_tables import create_a2a_tables, empty_a2a_tables  # noqa: E402
from tests.typo3.servers import CHOSEN, MariaDB, Postgres, Server, ServerError  # noqa: E402
from tests.typo3.sites import Site  # noqa: E402
from tests.typo3.tables import create_tables, empty_tables  # noqa: E402


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let other servers than the system's be tested."""
    parser.addoption(
        "--engine-server",
        action="append",
        default=[],
        metavar="ENGINE=FOLDER",
        help="test only this engine (mariadb, mysql or postgres), with the server whose programs are in the folder",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Note which servers were asked for."""
    for choice in config.getoption("--engine-server"):
        engine, equals, folder = choice.partition("=")
        if engine not in ("mariadb", "mysql", "postgres") or not equals or not Path(folder).is_dir():
            raise pytest.UsageError(
                f"--engine-server is {choice!r}; expected mariadb, mysql or postgres, '=', and a folder of programs"
            )
        CHOSEN[engine] = Path(folder).resolve()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what runs on an engine by its name, where servers of others were asked for."""
    if not CHOSEN:
        return
    others = {"sqlite", "mariadb", "postgres"} - {"mariadb" if engine == "mysql" else engine for engine in CHOSEN}
    config.hook.pytest_deselected(items=[item for item in items if others.intersection(_parameters(item))])
    items[:] = [item for item in items if not others.intersection(_parameters(item))]


def _parameters(item: pytest.Item) -> list[object]:
    found = getattr(item, "callspec", None)
    return [value for value in found.params.values() if isinstance(value, str)] if found else []


def pytest_unconfigure() -> None:
    """Delete what Airflow wrote."""
    shutil.rmtree(_AIRFLOW_HOME, ignore_errors=True)


@pytest.fixture(scope="session")
def airflow_db() -> None:
    """Create Airflow's own tables, for the tests that run a DAG."""
    from airflow.utils.db import initdb

    initdb()


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


@pytest.fixture
def sqlite_site(make_site: Callable[[str], Site]) -> Site:
    """An empty site on SQLite alone, for what does not depend on the engine."""
    return make_site("sqlite")


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


@pytest.fixture
def a2a_site(site: Site) -> Site:
    """An empty site with A2A tables; the test runs once on each engine."""
    create_a2a_tables(site.engine)
    empty_a2a_tables(site.engine)
    return site


@pytest.fixture
def a2a_server(server_site: Site) -> Site:
    """The same on the servers only, where several may write at once."""
    create_a2a_tables(server_site.engine)
    empty_a2a_tables(server_site.engine)
    return server_site


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
