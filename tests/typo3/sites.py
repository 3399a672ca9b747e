"""A TYPO3 site on one engine, with its Airflow connection."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pytest
from sqlalchemy import text
from sqlalchemy.engine import Engine

from tests.typo3.servers import CHOSEN, Server


@dataclass(frozen=True)
class Site:
    """
    The database of a TYPO3 site, all of whose tables are empty when a test begins.

    :ivar name: ``sqlite``, ``mariadb`` (also where the tests are run on MySQL) or ``postgres``
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

    @property
    def product(self) -> str:
        """The name, but ``mysql`` where MySQL stands in MariaDB's place."""
        return "mysql" if self.name == "mariadb" and "mysql" in CHOSEN else self.name

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
