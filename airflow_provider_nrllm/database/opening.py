"""Opening a TYPO3 database: from an Airflow connection to an SQLAlchemy engine."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any, NamedTuple

from airflow.providers.common.compat.sdk import AirflowException, AirflowNotFoundException, BaseHook
from airflow.providers.common.sql.hooks.sql import DbApiHook
from sqlalchemy import create_engine
from sqlalchemy.engine import Engine
from sqlalchemy.pool import NullPool

from airflow_provider_nrllm.database.errors import code_of
from airflow_provider_nrllm.database.session import prepare_connection, prepare_transactions
from airflow_provider_nrllm.exceptions import NrLlmConnectionError

_log = logging.getLogger(__name__)


class Driver(NamedTuple):
    """The SQLAlchemy driver of a connection that an Airflow hook has opened."""

    url: str
    row_type: tuple[str, Any] | None = None


def _driver(connection: Any) -> Driver | None:
    """Return the driver of a DB-API connection by the module its class comes from; None for one not supported."""
    package = _package(connection)
    if package == "MySQLdb":
        from MySQLdb.cursors import Cursor

        return Driver("mysql+mysqldb://", ("cursorclass", Cursor))
    if package == "psycopg":
        from psycopg.rows import tuple_row

        return Driver("postgresql+psycopg://", ("row_factory", tuple_row))
    return {
        "mysql": Driver("mysql+mysqlconnector://"),
        "psycopg2": Driver("postgresql+psycopg2://", ("cursor_factory", None)),
        "sqlite3": Driver("sqlite://"),
    }.get(package)


def _package(connection: Any) -> str:
    return type(connection).__module__.partition(".")[0]


def open_connection(conn_id: str) -> Any:
    """
    Return a DB-API connection as the Airflow hook of the connection opens it.

    :param conn_id: the Airflow connection
    :raises NrLlmConnectionError: where the connection cannot be one to a TYPO3 database
    """
    return _connect(conn_id, _db_hook(conn_id))


def open_engine(conn_id: str, seconds: float | None = None) -> Engine:
    """
    Return an SQLAlchemy engine whose connections the Airflow hook of the connection opens.

    :param conn_id: the Airflow connection
    :param seconds: how long a statement may take; None for as long as the server lets it
    :raises NrLlmConnectionError: where the connection cannot be one to a TYPO3 database
    """
    db_hook = _db_hook(conn_id)
    first = _connect(conn_id, db_hook)
    driver = _driver(first)
    if driver is None:
        first.close()
        raise _unsupported(conn_id, f"opens a {type(first).__module__} connection")
    spare = [first]

    def creator() -> Any:
        connection = spare.pop() if spare else _connect(conn_id, db_hook)
        if driver.row_type:
            # The extra "cursor" of an Airflow connection changes what a row is.
            setattr(connection, *driver.row_type)
        prepare_connection(connection, _package(connection), seconds)
        return connection

    # hide_parameters: an error's text goes into the task's log, and parameters are data. A site may have many tables,
    # and each page another choice of them: of the statements that SQLAlchemy compiles, few are kept.
    engine = create_engine(driver.url, creator=creator, poolclass=NullPool, hide_parameters=True, query_cache_size=100)
    prepare_transactions(engine, seconds)
    return engine


def _db_hook(conn_id: str) -> DbApiHook:
    try:
        connection = BaseHook.get_connection(conn_id)
    except AirflowNotFoundException as error:
        raise NrLlmConnectionError(
            f"Connection {conn_id!r} is not defined. Expected an Airflow connection of type mysql, "
            "postgres or sqlite to the TYPO3 database; add it, or name another one in nrllm_conn_id. Outside of "
            "a task, Airflow 3 finds only those of the environment (AIRFLOW_CONN_...) and of secrets backends."
        ) from error
    try:
        db_hook: object = connection.get_hook()  # type: ignore[no-untyped-call]
    except (AirflowException, ImportError) as error:
        raise _unsupported(conn_id, f"has the type {connection.conn_type!r}, of which no hook is installed") from error
    if not isinstance(db_hook, DbApiHook):
        raise _unsupported(conn_id, f"has the type {connection.conn_type!r}, which is no SQL database")
    # SQLite would make an empty database of a path that is mistyped.
    if connection.conn_type == "sqlite" and connection.host and not Path(connection.host).exists():
        raise NrLlmConnectionError(
            f"Connection {conn_id!r} names the file {connection.host!r}, which is not there. Expected the "
            "SQLite database of TYPO3, as the worker sees it; mend the host of the connection."
        )
    return db_hook


def _connect(conn_id: str, db_hook: DbApiHook) -> Any:
    try:
        return db_hook.get_conn()
    except (ImportError, RuntimeError, AirflowException) as error:
        # The hooks say so when the driver itself is not installed.
        raise NrLlmConnectionError(
            f"Connection {conn_id!r} cannot be opened: {str(error).strip()} "
            "Install this provider with the extra of your engine, 'airflow-provider-nrllm[mysql]', "
            "[postgres] or [sqlite]."
        ) from None
    except Exception as error:
        if _is_of_the_extra(error):
            found = f"{type(error).__name__}: {str(error).strip()}"
            raise NrLlmConnectionError(
                f"Connection {conn_id!r} cannot be opened as it is defined: {found}. "
                "Check its extra (the names and values of its options, a client, a cursor, JSON of ssl) and its port."
            ) from None
        # It may be temporary, so the driver's error is kept and Airflow retries. The log view of Airflow 3 leaves
        # out notes, so it is logged as well.
        advice = (
            f"Connection {conn_id!r} cannot be opened. Check its host, port, login, password and schema "
            "(the database), and that the server is up and can be reached from here."
        )
        error.add_note(advice)
        _log.error("%s The database said: %s", advice, str(error).strip())
        raise


def _is_of_the_extra(error: Exception) -> bool:
    """Whether a driver or an Airflow hook did not understand what it was given, so that nobody was asked."""
    if isinstance(error, ValueError | TypeError | LookupError | AttributeError):
        return True
    # A server's refusal has a code: mysql-connector-python has the same class for it.
    return type(error).__name__ == "ProgrammingError" and code_of(error) is None


def _unsupported(conn_id: str, found: str) -> NrLlmConnectionError:
    return NrLlmConnectionError(
        f"Connection {conn_id!r} {found}. Expected one of type mysql (also for MariaDB), postgres or "
        "sqlite, with its provider: pip install 'airflow-provider-nrllm[mysql]', [postgres] or [sqlite]."
    )
