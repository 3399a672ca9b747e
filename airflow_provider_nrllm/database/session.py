"""
The settings of a session that change what a statement returns: ours, whatever a server or a connection says.

A connection is set up before SQLAlchemy sees it, since SQLAlchemy asks for some of the settings once. What PostgreSQL
may be asked only in a transaction is set at the beginning of each: behind a pooler the next one may go elsewhere.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

from sqlalchemy import event
from sqlalchemy.engine import Connection, Engine

#: Modes change what a quote, an empty text or a missing value is; a uid of 0 is 0, not the next one; a limit cuts rows
#: off; an error has to be English to be explained. MariaDB keeps the answers of a subquery by the columns it depends
#: on, and compares these by their collation: it would give the answer for ``abc`` to ``ABC``. A time for versioned
#: tables would show old rows.
_MYSQL = (
    "SET SESSION sql_mode='STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION,NO_AUTO_VALUE_ON_ZERO', "
    "sql_select_limit=18446744073709551615, sql_auto_is_null=0, sql_safe_updates=0, sql_big_selects=1, "
    "completion_type='NO_CHAIN', time_zone='+00:00', lc_messages='en_US'"
    " /*M!100300 , optimizer_switch='subquery_cache=off', system_versioning_asof=DEFAULT */"
)
#: MariaDB limits each statement, MySQL those that read; each passes over the other's comment.
_MYSQL_LIMIT = " /*M!100300 , max_statement_time={:f} */ /*!50799 , max_execution_time={:d} */"
#: Not standard_conforming_strings: psycopg 2 quotes by what it was when the connection was opened.
_POSTGRESQL = {"TimeZone": "UTC", "transform_null_equals": "off"}

#: How many steps SQLite makes before it looks at the clock.
_SQLITE_STEPS = 10_000


def prepare_connection(connection: Any, package: str, seconds: float | None) -> None:
    """
    Set up a connection that a driver has opened.

    :param connection: the DB-API connection
    :param package: of the driver
    :param seconds: how long a statement may take; None for as long as the server lets it
    """
    if package in ("MySQLdb", "mysql"):
        if package == "mysql":
            connection.set_charset_collation("utf8mb4")
            # Rows of a result that nobody asked for must not stop the next statement.
            connection.can_consume_results = True
        elif connection.character_set_name() != "utf8mb4":
            connection.set_character_set("utf8mb4")
        cursor = connection.cursor()
        cursor.execute(_MYSQL + (_MYSQL_LIMIT.format(seconds, int(seconds * 1000)) if seconds else ""))
        cursor.close()
    elif package == "psycopg2":
        connection.set_client_encoding(_encoding_for(connection.get_parameter_status("server_encoding")))
    elif package == "psycopg":
        # A connection lives for one transaction, and a pooler gives the next one another session.
        connection.prepare_threshold = None
        encoding = _encoding_for(connection.info.parameter_status("server_encoding"))
        connection.execute("SELECT set_config('client_encoding', %s, false)", [encoding])
        connection.commit()
    else:
        connection.isolation_level = None
        # What is no UTF-8 is no readable payload, and no error.
        connection.text_factory = partial(str, encoding="utf-8", errors="replace")


def _encoding_for(server: str | None) -> str:
    # SQL_ASCII is any bytes; as LATIN1 they come and go unchanged, and none of them is an error.
    return "LATIN1" if server == "SQL_ASCII" else "UTF8"


def prepare_transactions(engine: Engine, seconds: float | None) -> None:
    """
    Set up each transaction that the engine begins.

    :param seconds: how long a statement may take; None for as long as the server lets it
    """
    if engine.dialect.name == "sqlite":
        event.listen(engine, "begin", _begin_on_sqlite)
        if seconds:
            event.listen(engine, "before_cursor_execute", partial(_limit_on_sqlite, seconds))
    elif engine.dialect.name == "postgresql":
        settings = dict(_POSTGRESQL)
        if seconds:
            settings["statement_timeout"] = str(int(seconds * 1000))
        parts = ", ".join(f"set_config('{name}', '{value}', true)" for name, value in settings.items())
        event.listen(engine, "begin", lambda connection: connection.exec_driver_sql(f"SELECT {parts}"))


def _begin_on_sqlite(connection: Connection) -> None:
    # The driver itself would begin no transaction before a SELECT.
    connection.exec_driver_sql(connection.get_execution_options().get("sqlite_begin", "BEGIN"))


def _limit_on_sqlite(seconds: float, connection: Connection, *_: Any) -> None:
    ends = time.monotonic() + seconds
    is_over: Callable[[], bool] = lambda: time.monotonic() > ends  # noqa: E731
    raw: Any = connection.connection.dbapi_connection
    raw.set_progress_handler(is_over, _SQLITE_STEPS)
