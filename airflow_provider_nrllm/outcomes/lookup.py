"""How the outcomes of a run are found: by which index, and in which collation."""

from __future__ import annotations

from typing import Any, NamedTuple

from sqlalchemy import Column, and_, column, func, or_, select, table
from sqlalchemy.engine import Connection

from airflow_provider_nrllm.database.tables import outcome, run

#: The index that finds outcomes. MariaDB plans by counts that lag behind: while it takes the table for empty, it would
#: read all outcomes for every run.
CORRELATION_INDEX = "correlation"


class Lookup(NamedTuple):
    """
    How MySQL and MariaDB are to find the outcomes of a run.

    :ivar hinted: by :data:`CORRELATION_INDEX`, which is there
    :ivar collation: that of the outcomes' ids, where it is another than that of the runs' uuids
    """

    hinted: bool = False
    collation: str | None = None


def _has_index(connection: Connection, table_name: str, index_name: str) -> bool:
    """Whether MySQL or MariaDB has an index of that name, which a hint may then name; False on other engines."""
    if connection.dialect.name != "mysql":
        return False
    names = ("table_schema", "table_name", "index_name")
    indexes = table("statistics", *map(column, names), schema="information_schema")
    query = select(indexes.c.index_name).where(
        indexes.c.table_schema == func.database(),
        indexes.c.table_name == table_name,
        indexes.c.index_name == index_name,
    )
    return connection.execute(query).first() is not None


def outcome_lookup(connection: Connection) -> Lookup:
    """Return how the outcomes of a run are to be found."""
    return Lookup(
        hinted=_has_index(connection, outcome.name, CORRELATION_INDEX),
        collation=_differing_collation(connection, outcome.c.correlation_id, run.c.uuid),
    )


def _differing_collation(connection: Connection, first: Column[Any], second: Column[Any]) -> str | None:
    """
    Return the collation of the first column, if MySQL or MariaDB refuses to compare it with the second; else None.

    It does where both have one character set and two collations, as tables have that were made at different times.
    """
    if connection.dialect.name != "mysql":
        return None
    names = ("table_schema", "table_name", "column_name", "character_set_name", "collation_name")
    columns = table("columns", *map(column, names), schema="information_schema")
    query = select(columns.c.table_name, columns.c.character_set_name, columns.c.collation_name).where(
        columns.c.table_schema == func.database(),
        or_(*(and_(columns.c.table_name == c.table.name, columns.c.column_name == c.name) for c in (first, second))),
    )
    found = {name: (character_set, collation) for name, character_set, collation in connection.execute(query)}
    of_first, of_second = found.get(first.table.name), found.get(second.table.name)
    if of_first and of_second and of_first[0] == of_second[0] and of_first[1] != of_second[1]:
        return str(of_first[1])
    return None
