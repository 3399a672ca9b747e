"""Opening a TYPO3 database: from an Airflow connection to an SQLAlchemy engine."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from airflow.providers.common.compat.sdk import AirflowException, AirflowNotFoundException, BaseHook
from airflow.providers.common.sql.hooks.sql import DbApiHook
from sqlalchemy import create_engine, event
from sqlalchemy.engine import Connection, Engine
from sqlalchemy.pool import NullPool

from airflow_provider_nrllm.database.session import set_session
from airflow_provider_nrllm.exceptions import NrLlmConnectionError


class Driver(NamedTuple):
    """How SQLAlchemy is told of a connection that an Airflow hook has opened."""

    url: str
    row_type: tuple[str, Any] | None = None


def _driver(connection: Any) -> Driver | None:
    """Return the driver of a DB-API connection by the module its class comes from; None for one not supported."""
    package = type(connection).__module__.partition(".")[0]
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


def open_connection(conn_id: str) -> Any:
    """
    Return a DB-API connection as the Airflow hook of the connection opens it.

    :param conn_id: the Airflow connection
    :raises NrLlmConnectionError: where the connection cannot be one to a TYPO3 database
    """
    return _connect(conn_id, _db_hook(conn_id))


def open_engine(conn_id: str) -> Engine:
    """
    Return an SQLAlchemy engine whose connections the Airflow hook of the connection opens.

    :param conn_id: the Airflow connection
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
        return connection

    # hide_parameters: an error's text goes into the task's log, and parameters are data.
    engine = create_engine(driver.url, creator=creator, poolclass=NullPool, hide_parameters=True)
    if engine.dialect.name == "sqlite":
        _use_explicit_transactions(engine)
    set_session(engine)
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
            f"Connection {conn_id!r} cannot be opened: {error} "
            "Install this provider with the extra of your engine, 'airflow-provider-nrllm[mysql]', "
            "[postgres] or [sqlite]."
        ) from error
    except Exception as error:
        # It may be temporary, so the driver's error is kept and Airflow retries; a note names the connection.
        error.add_note(
            f"Connection {conn_id!r} cannot be opened. Check its host, port, login, password and schema "
            "(the database), and that the server is up and can be reached from here."
        )
        raise


def _unsupported(conn_id: str, found: str) -> NrLlmConnectionError:
    return NrLlmConnectionError(
        f"Connection {conn_id!r} {found}. Expected one of type mysql (also for MariaDB), postgres or "
        "sqlite, with its provider: pip install 'airflow-provider-nrllm[mysql]', [postgres] or [sqlite]."
    )


def _use_explicit_transactions(engine: Engine) -> None:
    """Let SQLAlchemy begin SQLite's transactions: the driver would begin none before a SELECT; and read any text."""

    @event.listens_for(engine, "connect")
    def _on_connect(dbapi_connection: Any, _record: Any) -> None:
        dbapi_connection.isolation_level = None
        # What is no UTF-8 is no readable payload, and no error.
        dbapi_connection.text_factory = partial(str, encoding="utf-8", errors="replace")

    @event.listens_for(engine, "begin")
    def _on_begin(connection: Connection) -> None:
        connection.exec_driver_sql(connection.get_execution_options().get("sqlite_begin", "BEGIN"))
