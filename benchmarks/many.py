"""
How long a derivation takes on sites of numbers that no site should have, and models may make.

Each site has a server of its own, or a file, that goes with it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sqlalchemy import create_engine
from sqlalchemy.engine import Engine
from sqlalchemy.pool import NullPool

from tests.typo3.many import lay_writes
from tests.typo3.servers import MariaDB, Postgres, Server
from tests.typo3.tables import create_tables, empty_tables
from tests.typo3.year import analyze

_SERVERS: dict[str, type[Server]] = {"mariadb": MariaDB, "postgres": Postgres}


def _uuids(count: int) -> list[str]:
    return [f"run-{n}" for n in range(count)]


#: What lays each site, by what it is of.
CASES: dict[str, Callable[[Engine], None]] = {
    "10,000 writes of a run to one record": lambda engine: lay_writes(engine, [(1, "tt_content", 1)] * 10_000, ["run"]),
    "10,000 writes of a run to as many records": lambda engine: lay_writes(
        engine, [(1, "tt_content", n) for n in range(1, 10_001)], ["run"]
    ),
    "70,000 table names that a model made up, of 700 runs": lambda engine: lay_writes(
        engine, [(n // 100 + 1, f"table_{n}", 1) for n in range(70_000)], _uuids(700)
    ),
    "100 runs on one record with 100,000 history rows": lambda engine: lay_writes(
        engine, [(n, "tt_content", 1) for n in range(1, 101)], _uuids(100), edits=100_000
    ),
    "20,000 runs of one uuid": lambda engine: lay_writes(
        engine, [(n, "tt_content", 1) for n in range(1, 20_001)], ["run"] * 20_000
    ),
    "200,000 runs that wait for a person": lambda engine: lay_writes(
        engine, [(n, "tt_content", n) for n in range(1, 200_001)], _uuids(200_000), status="waiting_for_approval"
    ),
}


class ManySite:
    """
    A site that is laid anew for each case.

    :ivar engine: opens connections of a user who may do anything
    :ivar connection: the fields of an Airflow connection to it
    """

    def __init__(self, name: str, directory: Path) -> None:
        self.name = name
        self.server = _SERVERS[name]() if name in _SERVERS else None
        path = directory / "typo3.sqlite"
        self.connection: dict[str, Any] = (
            self.server.connection if self.server else {"conn_type": "sqlite", "host": str(path)}
        )
        self.engine = self.server.engine() if self.server else create_engine(f"sqlite:///{path}", poolclass=NullPool)
        create_tables(self.engine)

    def close(self) -> None:
        """Remove the server."""
        if self.server:
            self.server.remove()


def measure_many(name: str, derive: Callable[[ManySite], dict[str, Any]]) -> None:
    """
    Print how long each case takes on an engine.

    :param derive: derives all of a site, and returns what it took
    """
    with tempfile.TemporaryDirectory() as directory:
        site = ManySite(name, Path(directory))
        try:
            for what, lay in CASES.items():
                empty_tables(site.engine)
                lay(site.engine)
                analyze(site.engine)
                taken = derive(site)
                print({"what": what, "runs": taken["runs"], "derivation": round(taken["seconds"], 3)}, flush=True)
        finally:
            site.close()
