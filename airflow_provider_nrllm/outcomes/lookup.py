"""The lookup of a run's outcomes: by which index, and in which collation."""

from __future__ import annotations

from typing import NamedTuple

from sqlalchemy import column, func, select, table
from sqlalchemy.engine import Connection

from airflow_provider_nrllm.database.catalog import collations_of
from airflow_provider_nrllm.database.conditions import ONE_COLLATION, Collations
from airflow_provider_nrllm.database.tables import outcome, run

#: The index that finds outcomes. MariaDB plans by counts that lag behind: while it takes the table for empty, it would
#: read all outcomes for every run.
CORRELATION_INDEX = "correlation"


class Lookup(NamedTuple):
    """
    How MySQL and MariaDB are to find the outcomes of a run.

    :ivar hinted: by :data:`CORRELATION_INDEX`, which is there
    :ivar collations: of the outcomes' ids and the runs' uuids
    """

    hinted: bool = False
    collations: Collations = ONE_COLLATION


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
    return bool(connection.execute(query).fetchall())


def outcome_lookup(connection: Connection) -> Lookup:
    """Return how the outcomes of a run are to be found."""
    return Lookup(
        hinted=_has_index(connection, outcome.name, CORRELATION_INDEX),
        collations=collations_of(connection, outcome.c.correlation_id, run.c.uuid),
    )
