"""The statements that run on an engine, and which tables they read from end to end."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

from sqlalchemy import event
from sqlalchemy.engine import Connection, Engine


class Statement(NamedTuple):
    """A statement as the driver got it."""

    text: str
    parameters: Any


@contextmanager
def recorded(engine: Engine) -> Iterator[list[Statement]]:
    """Record the statements that run on an engine, in order."""
    statements: list[Statement] = []

    def record(_connection: Any, _cursor: Any, text: str, parameters: Any, _context: Any, _many: bool) -> None:
        statements.append(Statement(text, parameters))

    event.listen(engine, "before_cursor_execute", record)
    try:
        yield statements
    finally:
        event.remove(engine, "before_cursor_execute", record)


def scanned(connection: Connection, statement: Statement) -> set[str]:
    """
    Return the tables that the statement reads from end to end, by name or by alias.

    Nothing of that kind is to be said of what is no SELECT.
    """
    if not statement.text.lstrip().startswith("SELECT"):
        return set()
    if connection.dialect.name == "postgresql":
        explain = f"EXPLAIN (FORMAT JSON) {statement.text}"
        found = connection.exec_driver_sql(explain, statement.parameters).scalar_one()
        plan = json.loads(found) if isinstance(found, str) else found
        return {node["Alias"] for node in _nodes(plan[0]["Plan"]) if _reads_all(node)}
    if connection.dialect.name == "sqlite":
        details = _sqlite_plan(connection, statement)
        return {detail.split()[1] for detail in details if detail.startswith("SCAN ") and " INDEX " not in detail}
    # MySQL's default is a tree from 9.5 on.
    explain = f"EXPLAIN FORMAT=TRADITIONAL {statement.text}"
    rows = connection.exec_driver_sql(explain, statement.parameters).mappings()
    # "index" is every entry of an index, and no better.
    return {row["table"] for row in rows if row["type"] in ("ALL", "index") and not row["table"].startswith("<")}


def sorts(connection: Connection, statement: Statement) -> bool:
    """Whether SQLite sorts what the statement finds, so that it has to find all before it returns the first."""
    return any("USE TEMP B-TREE FOR ORDER BY" in detail for detail in _sqlite_plan(connection, statement))


def _sqlite_plan(connection: Connection, statement: Statement) -> list[str]:
    # SQLite's driver knows no enumerations.
    values = tuple(str(value) if isinstance(value, str) else value for value in statement.parameters)
    return [row[3] for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement.text}", values)]


def _nodes(plan: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield plan
    for inner in plan.get("Plans", ()):
        yield from _nodes(inner)


def _reads_all(node: Mapping[str, Any]) -> bool:
    kind = node["Node Type"]
    return kind == "Seq Scan" or (kind in ("Index Scan", "Index Only Scan") and "Index Cond" not in node)
