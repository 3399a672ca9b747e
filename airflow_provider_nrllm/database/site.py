"""A TYPO3 database behind an Airflow connection: how it is read and written, and what its errors mean."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any

from sqlalchemy import Integer, String, Table, literal_column, select
from sqlalchemy.engine import Connection, Engine
from sqlalchemy.exc import DBAPIError

from airflow_provider_nrllm.database.catalog import columns_of
from airflow_provider_nrllm.database.errors import is_denied, lacks_table_or_column, missing_grant
from airflow_provider_nrllm.database.opening import open_engine
from airflow_provider_nrllm.exceptions import NrLlmPrivilegeError, NrLlmSchemaError

#: The most rows that are read or written at once: engines limit the parameters of a statement.
MAX_PAGE_SIZE = 5000


#: Where what is missing comes from, by table name prefix.
_MADE_BY = {"tx_nrllm_": "the TYPO3 extension nr_llm", "sys_": "the TYPO3 core"}


class SiteDatabase:
    """
    A TYPO3 database: transactions over any Airflow connection whose hook is a ``DbApiHook``.

    MySQL, MariaDB, PostgreSQL and SQLite. Trouble that may pass (a lost connection, a deadlock, a lock wait
    time-out) goes through as the driver raised it, so that Airflow retries; what a person has to mend
    becomes one of :mod:`airflow_provider_nrllm.exceptions`.

    :param conn_id: the Airflow connection
    :param required: the tables that must be there; named in full when one of them is missing
    """

    def __init__(self, conn_id: str, required: Sequence[Table] = ()) -> None:
        self.conn_id = conn_id
        self.required = tuple(required)
        self._logs_statements = False

    @cached_property
    def engine(self) -> Engine:
        """
        An SQLAlchemy engine whose connections the Airflow hook opens.

        :raises NrLlmConnectionError: where the connection cannot be one to a TYPO3 database
        """
        engine = open_engine(self.conn_id)
        self._logs_statements = engine.dialect.name == "mysql" and _logs_statements(engine)
        return engine

    @contextmanager
    def snapshot(self) -> Iterator[Connection]:
        """
        Read in one transaction, all of whose statements see the same moment of the database.

        It takes no lock that a writer would wait for (on SQLite, as long as it is open, in journal modes
        other than WAL, a writer does wait).
        """
        with self._transaction("REPEATABLE READ", "BEGIN") as connection:
            yield connection

    @contextmanager
    def transaction(self, isolation_level: str = "READ COMMITTED") -> Iterator[Connection]:
        """
        Write in one transaction: committed at the end, rolled back on any error.

        With READ COMMITTED a statement sees what was committed before it, also while this transaction waited
        for a lock, and on MySQL and MariaDB it locks rows, never the gaps between them. Where they log statements,
        REPEATABLE READ takes its place; it sees the same if the transaction begins with its locks.

        :param isolation_level: ``READ COMMITTED`` or ``SERIALIZABLE``; SQLite has one writer at a time anyway
        """
        with self._transaction(isolation_level, "BEGIN IMMEDIATE") as connection:
            yield connection

    @contextmanager
    def connection(self, isolation_level: str = "READ COMMITTED") -> Iterator[Connection]:
        """
        Open one connection for several short transactions, each of them a ``with connection.begin():``.

        :param isolation_level: as for :meth:`transaction`
        """
        with self._connected(isolation_level, "BEGIN IMMEDIATE") as connection:
            yield connection

    @contextmanager
    def _transaction(self, isolation_level: str, sqlite_begin: str) -> Iterator[Connection]:
        with self._connected(isolation_level, sqlite_begin) as connection, connection.begin():
            yield connection

    @contextmanager
    def _connected(self, isolation_level: str, sqlite_begin: str) -> Iterator[Connection]:
        engine = self.engine
        options: dict[str, Any] = {"isolation_level": isolation_level}
        if engine.dialect.name == "sqlite":
            options = {"sqlite_begin": sqlite_begin}
        # The rows of a page are inserted by one statement.
        options["insertmanyvalues_page_size"] = MAX_PAGE_SIZE
        try:
            if isolation_level == "READ COMMITTED" and self._logs_statements:
                options["isolation_level"] = "REPEATABLE READ"
            with engine.execution_options(**options).connect() as connection:
                yield connection
        except DBAPIError as error:
            raise self._explained(error) from error

    def _explained(self, error: DBAPIError) -> Exception:
        """Return the error of ours where a person has something to mend, else the error itself."""
        if is_denied(error):
            return NrLlmPrivilegeError(
                f"Connection {self.conn_id!r}: the database refused: {str(error.orig).strip()}. "
                f"{missing_grant(error, self.required)}All the statements are in docs/how-to/database-user.md."
            )
        if lacks_table_or_column(error) and (missing := self.missing()):
            return NrLlmSchemaError(self.explain_missing(missing))
        return error

    def missing(self) -> list[str]:
        """Return the names of the required tables and columns that are not there, columns as ``table.column``."""
        with self.engine.connect() as connection:
            found = columns_of(connection, [required.name for required in self.required])
        missing = []
        for required in self.required:
            if required.name not in found:
                missing.append(required.name)
            else:
                absent = [c.name for c in required.columns if c.name not in found[required.name]]
                missing.extend(f"{required.name}.{name}" for name in absent)
        return missing

    def explain_missing(self, missing: Iterable[str]) -> str:
        """Return a sentence that names what is missing, who makes it, and what to do."""
        names = list(missing)
        makers = sorted({maker for prefix, maker in _MADE_BY.items() if any(n.startswith(prefix) for n in names)})
        return (
            f"Connection {self.conn_id!r}: not in the database, or not visible to its user: {', '.join(names)}. "
            f"Made by {' and '.join(makers)}: install or update it, run TYPO3's database analyzer, and check that "
            "the connection names the TYPO3 database."
        )


def _logs_statements(engine: Engine) -> bool:
    """Whether MySQL or MariaDB replicates statements, and so refuses to write with READ COMMITTED."""
    with engine.connect() as connection:
        logs = connection.execute(select(literal_column("@@log_bin", Integer))).scalar()
        unit = connection.execute(select(literal_column("@@binlog_format", String))).scalar()
    return bool(logs) and unit == "STATEMENT"
