"""A TYPO3 database behind an Airflow connection: how it is read and written, and what its errors mean."""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any, TypeVar

from sqlalchemy import delete, false, text
from sqlalchemy.engine import Connection, Engine
from sqlalchemy.exc import DBAPIError

from airflow_provider_nrllm.database.errors import (
    Denial,
    denial_of,
    is_conflict,
    is_denied,
    lacks_table_or_column,
    named,
)
from airflow_provider_nrllm.database.opening import open_engine
from airflow_provider_nrllm.database.privileges import Privilege
from airflow_provider_nrllm.database.requirements import Requirements, explain_missing, other_schemas
from airflow_provider_nrllm.database.tables import RECORD_COLUMNS
from airflow_provider_nrllm.exceptions import NrLlmPrivilegeError, NrLlmSchemaError

#: The most rows that are read or written at once: engines limit the parameters of a statement.
MAX_PAGE_SIZE = 5000

#: How often work that lost against another transaction is done before Airflow is left to do it again.
_TRIES = 6

_log = logging.getLogger(__name__)

T = TypeVar("T")


class SiteDatabase:
    """
    A TYPO3 database: transactions over any Airflow connection whose hook is a ``DbApiHook``.

    MySQL, MariaDB, PostgreSQL and SQLite. Trouble that may pass (a lost connection, a deadlock, a lock wait
    time-out) goes through as the driver raised it, so that Airflow retries; what a person has to mend
    becomes one of :mod:`airflow_provider_nrllm.exceptions`.

    :param conn_id: the Airflow connection
    :param requirements: what must be there; named in full when something is missing
    :param seconds: how long a statement may take; None for as long as the server lets it
    """

    def __init__(self, conn_id: str, requirements: Requirements | None = None, *, seconds: float | None = None) -> None:
        self.conn_id = conn_id
        self.requirements = requirements or Requirements()
        self.seconds = seconds
        self._keeping = 0
        self._idle: list[Connection] = []

    @cached_property
    def engine(self) -> Engine:
        """
        An SQLAlchemy engine whose connections the Airflow hook opens.

        :raises NrLlmConnectionError: where the connection cannot be one to a TYPO3 database
        """
        return open_engine(self.conn_id, self.seconds)

    def is_cluster(self) -> bool:
        """
        Return whether the server is one of several that are written to and do not share row locks.

        Such are the nodes of a Galera cluster, and the primaries of a MySQL group with several.
        """
        variables = self._server_variables
        return variables.get("wsrep_on") == "ON" or variables.get("group_replication_single_primary_mode") == "OFF"

    def largest_statement(self) -> int | None:
        """Return how many bytes a statement may have: the server hangs up on a larger one. None: no such limit."""
        limit = self._server_variables.get("max_allowed_packet")
        return None if limit is None else int(limit)

    def _logs_statements(self) -> bool:
        """Return whether the server replicates statements, and so refuses to write with READ COMMITTED."""
        variables = self._server_variables
        return variables.get("log_bin") == "ON" and variables.get("binlog_format") == "STATEMENT"

    @cached_property
    def _server_variables(self) -> Mapping[str, str]:
        """The settings of MySQL or MariaDB that count here; none on other engines."""
        return _variables(self.engine) if self.engine.dialect.name == "mysql" else {}

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

    def write(self, work: Callable[[Connection], T], isolation_level: str = "READ COMMITTED") -> T:
        """
        Do some work in one transaction, and again in a new one if another transaction won; return what it returns.

        A few times, with a short wait of random length between them; then the database's error goes through.

        :param work: everything that the transaction does; what it did is rolled back before it is done again
        :param isolation_level: as for :meth:`transaction`
        """
        for tries in range(1, _TRIES + 1):
            try:
                with self.transaction(isolation_level) as connection:
                    return work(connection)
            except DBAPIError as error:
                if tries == _TRIES or not is_conflict(error):
                    raise
                _log.info("%s: another transaction won, once more", named(error))
            time.sleep(random.SystemRandom().uniform(0, 0.05 * 2**tries))
        raise AssertionError("unreachable")

    def require_row_locks(self, connection: Connection) -> None:
        """
        Check that the tables that are written or locked have an engine with transactions and row locks.

        :param connection: of this database
        :raises NrLlmSchemaError: names the table and its engine
        """
        if without := self.requirements.tables_without_row_locks(connection):
            raise NrLlmSchemaError(self._explain_engines(without))

    def _explain_engines(self, without: Sequence[str]) -> str:
        return (
            f"Connection {self.conn_id!r}: tables of an engine without transactions and row locks: "
            f"{', '.join(without)}. A run might get two outcomes. Expected InnoDB: ALTER TABLE ... ENGINE=InnoDB."
        )

    @contextmanager
    def connection(self, isolation_level: str = "READ COMMITTED") -> Iterator[Connection]:
        """
        Open one connection for several short transactions, each of them a ``with connection.begin():``.

        :param isolation_level: as for :meth:`transaction`
        """
        with self._connected(isolation_level, "BEGIN IMMEDIATE") as connection:
            yield connection

    @contextmanager
    def keeping_a_connection(self) -> Iterator[None]:
        """Do all transactions meanwhile, one after the other, over one connection, idle in between and then closed."""
        self._keeping += 1
        try:
            yield
        finally:
            self._keeping -= 1
            if not self._keeping:
                while self._idle:
                    self._idle.pop().close()

    def _opened(self) -> Connection:
        """Return an idle connection that still answers, or a new one."""
        while self._idle:
            connection = self._idle.pop()
            raw: Any = connection.connection.dbapi_connection
            try:
                answers = self.engine.dialect.do_ping(raw)
            except Exception:
                # SQLAlchemy 2 lets the driver's own error through; 1.4 returns False.
                answers = False
            if answers:
                return connection
            _log.info("Connection %r was lost while it was idle: opening another", self.conn_id)
            connection.invalidate()
            connection.close()
        return self.engine.connect()

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
            if isolation_level == "READ COMMITTED" and self._logs_statements():
                options["isolation_level"] = "REPEATABLE READ"
            connection = self._opened()
            try:
                yield connection.execution_options(**options)
            except BaseException:
                connection.close()
                raise
            if self._keeping:
                self._idle.append(connection)
            else:
                connection.close()
        except DBAPIError as error:
            if explanation := self._explanation(error):
                # Its text holds the driver's message: the helpful sentence is the last one in the log.
                raise explanation from None
            raise

    def _explanation(self, error: DBAPIError) -> Exception | None:
        """Return the error of ours where a person has something to mend."""
        if is_denied(error):
            grants = self._grants_for(denial_of(error))
            advice = f" Missing: {'; '.join(grants)}." if grants else ""
            return NrLlmPrivilegeError(
                f"Connection {self.conn_id!r}: the database refused: {str(error.orig).strip()}.{advice} "
                f"All the statements are in {self.requirements.page}."
            )
        if lacks_table_or_column(error) and (missing := self.missing()):
            return NrLlmSchemaError(self.explain_missing(missing))
        return None

    def _grants_for(self, denial: Denial | None) -> list[str]:
        """Return the GRANTs that are missing: all that the hook needs, or the one for what it does not always need."""
        is_required = denial is None or denial.table in {each.name for each in self.requirements.tables}
        if is_required and (lacking := self.lacking_grants()):
            return lacking
        if denial is None:
            return []
        if denial.table.endswith("_seq"):
            return [f"GRANT USAGE ON SEQUENCE {denial.table}"]
        columns: tuple[str, ...] = (denial.column,) if denial.column and denial.privilege != "DELETE" else ()
        if denial.privilege == "SELECT" and not is_required:
            columns = ("uid", *RECORD_COLUMNS)
        return [Privilege(denial.table, denial.privilege, columns).grant()]

    def missing(self) -> list[str]:
        """Return the names of the required tables and columns that are not there, columns as ``table.column``."""
        with self.engine.connect() as connection:
            return self.requirements.missing(connection)

    def lacking_grants(self) -> list[str]:
        """Return the GRANTs that the user of the connection lacks, without the user. Writes nothing."""
        if self.missing():
            return []
        with self.engine.connect() as connection:
            return self.requirements.lacking_grants(connection)

    def explain_missing(self, missing: Iterable[str]) -> str:
        """Return a sentence that names what is missing, who makes it, and what to do."""
        names = list(missing)
        with self.engine.connect() as connection:
            return explain_missing(self.conn_id, names, other_schemas(connection, names))

    def test(self) -> str:
        """
        Return what is wrong with the database, the user or the tables; empty if nothing is. Writes nothing.

        :raises Exception: where the connection cannot be opened
        """
        if missing := self.missing():
            return self.explain_missing(missing)
        with self.engine.connect() as connection:
            without = self.requirements.tables_without_row_locks(connection)
        if without:
            return self._explain_engines(without)
        if self.engine.dialect.name == "sqlite" and self.requirements.inserted:
            # A file that may only be read refuses also what changes no row.
            with self.transaction() as connection:
                connection.execute(delete(self.requirements.inserted[0]).where(false()))
        if grants := self.lacking_grants():
            return (
                f"Connection {self.conn_id!r}: its user lacks privileges. Missing: {'; '.join(grants)}. "
                f"All the statements are in {self.requirements.page}."
            )
        return ""


def _variables(engine: Engine) -> dict[str, str]:
    """Return the settings of MySQL or MariaDB that tell how it replicates, and the largest statement it takes."""
    names = ("log_bin", "binlog_format", "wsrep_on", "group_replication_single_primary_mode", "max_allowed_packet")
    query = text(f"SHOW VARIABLES WHERE Variable_name IN {names}")
    with engine.connect() as connection:
        return {row[0]: row[1] for row in connection.execute(query)}
