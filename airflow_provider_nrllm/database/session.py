"""The settings of a session that change what a statement returns: ours, whatever a server or a connection says."""

from __future__ import annotations

from typing import Any

from sqlalchemy import event
from sqlalchemy.engine import Engine

#: MariaDB keeps the answers of a subquery by the columns it depends on, and compares these by their collation: it
#: would give the answer for ``abc`` to ``ABC``.
_MARIADB = "SET SESSION optimizer_switch = 'subquery_cache=off'"


def set_session(engine: Engine) -> None:
    """Set up each session that the engine opens, with one statement."""

    @event.listens_for(engine, "connect")
    def _on_connect(dbapi_connection: Any, _record: Any) -> None:
        if getattr(engine.dialect, "is_mariadb", False):
            cursor = dbapi_connection.cursor()
            cursor.execute(_MARIADB)
            cursor.close()
