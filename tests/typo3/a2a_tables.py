"""The tables of the A2A server role as the extension makes them, and rows to put into them."""

from __future__ import annotations

import json
from typing import Any

from sqlalchemy import (
    Column,
    Integer,
    MetaData,
    SmallInteger,
    String,
    Table,
    Text,
    UniqueConstraint,
    insert,
    select,
    text,
)
from sqlalchemy.dialects import mysql
from sqlalchemy.engine import Engine

from tests.typo3 import tables as site
from tests.typo3.a2a_results import message, seal

NOW = 1_700_000_000

_UNSIGNED = Integer().with_variant(mysql.INTEGER(unsigned=True), "mysql")
_MEDIUM_TEXT = Text().with_variant(mysql.MEDIUMTEXT(), "mysql")

metadata = MetaData()


def _unsigned(name: str) -> Column[Any]:
    return Column(name, _UNSIGNED, nullable=False, server_default=text("0"))


def _string(name: str, length: int) -> Column[Any]:
    return Column(name, String(length), nullable=False, server_default="")


def _table(name: str, *columns: Any) -> Table:
    uid = Column("uid", _UNSIGNED, primary_key=True, autoincrement=True)
    return Table(
        name,
        metadata,
        uid,
        _unsigned("pid"),
        *columns,
        mysql_engine="InnoDB",
        mysql_charset="utf8mb4",
        mysql_collate="utf8mb4_unicode_ci",
        sqlite_autoincrement=True,
    )


run = site.run

task = _table(
    "tx_nrllm_a2a_task",
    _unsigned("run"),
    _string("task_id", 36),
    _string("context_id", 36),
    _string("state", 32),
    _unsigned("revision"),
    _string("ceiling", 16),
    _string("reason", 64),
    Column("status_message", _MEDIUM_TEXT, nullable=True),
    Column("artifacts", _MEDIUM_TEXT, nullable=True),
    Column("history", _MEDIUM_TEXT, nullable=True),
    _unsigned("tstamp"),
    _unsigned("crdate"),
    UniqueConstraint("run", name="a2a_task_run"),
    UniqueConstraint("task_id", name="a2a_task_id"),
)

event = _table(
    "tx_nrllm_a2a_event",
    _unsigned("task"),
    _unsigned("revision"),
    Column("position", SmallInteger, nullable=False, server_default=text("0")),
    _string("kind", 16),
    _string("state", 32),
    _string("reason", 64),
    Column("payload", _MEDIUM_TEXT, nullable=True),
    _unsigned("status_at"),
    _unsigned("crdate"),
    UniqueConstraint("task", "revision", "position", name="a2a_event_place"),
)


def create_a2a_tables(engine: Engine) -> None:
    """Create the tables, unless they are there."""
    metadata.create_all(engine)


def empty_a2a_tables(engine: Engine) -> None:
    """Delete every row of both tables."""
    with engine.begin() as connection:
        connection.execute(event.delete())
        connection.execute(task.delete())


def add_task(engine: Engine, uid: int = 1, *, run_row: dict[str, Any] | None = None, **changes: Any) -> str:
    """
    Add a run that is on its way and its task, and return the task's id.

    :param run_row: what is to differ in the run; its status is the task's, unless said
    :param changes: what is to differ in the task
    """
    statuses = {"working": "running", "submitted": "queued", "canceled": "cancelled", "rejected": "failed"}
    state = changes.get("state", "working")
    status = statuses.get(state, state if state in ("completed", "failed") else "waiting_for_input")
    asked = seal(json.dumps(message("asked", "ROLE_USER")))
    row = {
        "uid": uid,
        "run": uid + 1000,
        "task_id": f"task-{uid}",
        "context_id": "context-1",
        "state": state,
        "revision": 1,
        "ceiling": "full",
        "history": json.dumps([asked]) if changes.get("ceiling", "full") in ("full", "redacted") else None,
        "tstamp": NOW,
        "crdate": NOW,
        **changes,
    }
    with engine.begin() as connection:
        if run_row is not None or "run" not in changes:
            connection.execute(
                insert(run).values({"uid": row["run"], "uuid": f"run-{uid}", "status": status, **(run_row or {})})
            )
        connection.execute(insert(task).values(row))
    return str(row["task_id"])


def add_events(engine: Engine, *rows: dict[str, Any]) -> None:
    """Add events of task 1, revision 1, each at the next position unless it says otherwise."""
    with engine.begin() as connection:
        for position, row in enumerate(rows):
            usual = {"task": 1, "revision": 1, "position": position, "kind": "status", "state": "working"}
            connection.execute(insert(event).values({**usual, "status_at": NOW, "crdate": NOW, **row}))


def rows_of(engine: Engine, table: Table) -> list[dict[str, Any]]:
    """Return all rows of a table by uid."""
    with engine.connect() as connection:
        return [dict(row._mapping) for row in connection.execute(select(table).order_by(table.c.uid))]


def row_of(engine: Engine, table: Table, uid: int) -> dict[str, Any]:
    """Return one row of a table."""
    return next(row for row in rows_of(engine, table) if row["uid"] == uid)


def journal(engine: Engine) -> list[tuple[Any, ...]]:
    """Return the journal in order, without its uids and the time it was written."""
    rows = rows_of(engine, event)
    rows.sort(key=lambda row: (row["task"], row["revision"], row["position"]))
    return [tuple(row[column] for column in row if column not in ("uid", "pid", "crdate")) for row in rows]
