"""The tables, columns and privileges that a hook needs, and the sentences about missing ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Column, Table, column, func, select, table
from sqlalchemy.engine import Connection

from airflow_provider_nrllm.database.catalog import columns_of
from airflow_provider_nrllm.database.privileges import Privilege, lacking_grants

#: Where what is missing comes from, by table name prefix.
_MADE_BY = {"tx_nrllm_": "the TYPO3 extension nr_llm", "sys_": "the TYPO3 core", "be_": "the TYPO3 core"}

#: The engines of MySQL and MariaDB that lock single rows and take back a transaction.
_ENGINES_WITH_ROW_LOCKS = ["InnoDB", "ROCKSDB", "TokuDB", "ndbcluster"]


@dataclass(frozen=True, slots=True)
class Requirements:
    """
    What a hook needs of a database.

    :ivar tables: read, with all the columns that they have here; one may come twice, with other columns
    :ivar inserted: into which rows are inserted
    :ivar deleted: from which rows are deleted
    :ivar locked: whose rows are locked
    :ivar unread: columns that are there, and whose privileges only some of what the hook does needs
    :ivar page: of the documentation, with the GRANTs
    """

    tables: Sequence[Table] = ()
    inserted: Sequence[Table] = ()
    deleted: Sequence[Table] = ()
    locked: Sequence[Table] = ()
    unread: Sequence[Column[Any]] = ()
    page: str = "docs/how-to/database-user.md"

    def missing(self, connection: Connection) -> list[str]:
        """Return the names of the tables and columns that are not there, columns as ``table.column``."""
        found = columns_of(connection, sorted({each.name for each in self.tables}))
        missing: dict[str, None] = {}
        for each in self.tables:
            if each.name not in found:
                missing[each.name] = None
            else:
                absent = [of_it.name for of_it in each.columns if of_it.name not in found[each.name]]
                missing.update(dict.fromkeys(f"{each.name}.{name}" for name in absent))
        return list(missing)

    def lacking_grants(self, connection: Connection) -> list[str]:
        """Return the GRANTs that the user lacks, without the user; the tables are all there."""
        needed = (
            *Privilege.to_read(self.tables, {(each.table.name, each.name) for each in self.unread}),
            *map(Privilege.to_insert, self.inserted),
            *(Privilege(each.name, "DELETE") for each in self.deleted),
        )
        return lacking_grants(connection, needed, self.locked)

    def tables_without_row_locks(self, connection: Connection) -> list[str]:
        """Return the tables of MySQL and MariaDB that are written or locked and have another engine than InnoDB."""
        if connection.dialect.name != "mysql":
            return []
        parts = ("table_schema", "table_name", "engine")
        tables = table("tables", *map(column, parts), schema="information_schema")
        names = sorted({each.name for each in (*self.inserted, *self.locked)})
        query = select(tables.c.table_name, tables.c.engine).where(
            tables.c.table_schema == func.database(),
            tables.c.table_name.in_(names),
            tables.c.engine.not_in(_ENGINES_WITH_ROW_LOCKS),
        )
        return [f"{name} ({engine})" for name, engine in connection.execute(query)]


def explain_missing(conn_id: str, missing: Iterable[str], schemas: Sequence[str] = ()) -> str:
    """
    Return a sentence that names what is missing, who makes it, and what to do.

    :param schemas: of PostgreSQL, that have such a table and are not searched
    """
    names = list(missing)
    if schemas:
        return (
            f"Connection {conn_id!r}: not in the search_path: {', '.join(names)}. There are such tables in the schema "
            f"{' and '.join(schemas)}. Give the connection the extra "
            f'{{"options": "-c search_path={schemas[0]}"}}, and its user USAGE on that schema.'
        )
    makers = sorted({maker for prefix, maker in _MADE_BY.items() if any(n.startswith(prefix) for n in names)})
    return (
        f"Connection {conn_id!r}: not in the database, or not visible to its user: {', '.join(names)}. "
        f"Made by {' and '.join(makers)}: install or update it, run TYPO3's database analyzer, and check that "
        "the connection names the TYPO3 database."
    )


def other_schemas(connection: Connection, missing: Iterable[str]) -> list[str]:
    """Return the schemas of PostgreSQL that have one of the missing tables and are not searched."""
    if connection.dialect.name != "postgresql":
        return []
    relation = table("pg_class", column("relname"), column("relnamespace"), column("oid"), schema="pg_catalog")
    namespace = table("pg_namespace", column("nspname"), column("oid"), schema="pg_catalog")
    query = (
        select(namespace.c.nspname)
        .distinct()
        .select_from(relation.join(namespace, namespace.c.oid == relation.c.relnamespace))
        .where(relation.c.relname.in_(list(missing)), ~func.pg_catalog.pg_table_is_visible(relation.c.oid))
        .order_by(namespace.c.nspname)
    )
    return list(connection.execute(query).scalars())
