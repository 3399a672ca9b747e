"""The tables and columns that the user of a connection can see."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from sqlalchemy import Column, LargeBinary, and_, cast, column, func, or_, select, table, true, union_all
from sqlalchemy.engine import Connection
from sqlalchemy.exc import DBAPIError
from sqlalchemy.sql import ColumnElement, Select, TableClause

from airflow_provider_nrllm.database.conditions import ONE_COLLATION, Collation, Collations
from airflow_provider_nrllm.database.errors import is_denied, lacks_table_or_column

_log = logging.getLogger(__name__)

#: The most table names that are looked up one by one.
_MANY_NAMES = 1000

#: The privileges that, held on a whole database, show its tables and columns to a user of MySQL or MariaDB.
_REVEALING = ["SELECT", "INSERT", "UPDATE", "DELETE", "REFERENCES", "CREATE", "ALTER", "DROP", "INDEX"]


class WrittenTables:
    """
    The tables that runs wrote, and which of the wanted columns they have.

    A column that is not an integer is not TYPO3's and counts as absent: what it holds would be no uid, flag or
    stamp, and engines would not even compare it.

    :param wanted: the columns to look for; a table without the first of them counts as absent
    :param instead: by one of the columns, the one to look for in a table without it
    """

    def __init__(self, wanted: Sequence[str], instead: Mapping[str, str]) -> None:
        self.wanted = wanted
        self.instead = instead
        #: The tables that are there and may be read.
        self.present: frozenset[str] = frozenset()
        #: The tables that may not be read, so that it cannot be told whether a record is there.
        self.refused: frozenset[str] = frozenset()
        self._columns: dict[str, frozenset[str]] = {}

    def read(self, connection: Connection, names: Iterable[str]) -> Mapping[str, frozenset[str]]:
        """
        Return the columns of the named tables, none for a table that does not exist or may not be read.

        A table is looked up once: with two statements for all that were not asked about before, some more if
        one of them may not be read, and on MySQL and MariaDB for what their user does not see.

        :param names: from data
        """
        unseen = sorted(set(names) - self._columns.keys())
        if unseen:
            types = _columns(connection, unseen)
            self._warn_of_other_types(types)
            refused: set[str] = set()
            columns = {
                name: frozenset(each for each, is_integer in types.get(name, {}).items() if is_integer)
                for name in unseen
            }
            if connection.dialect.name == "mysql":
                # What may not be read is never taken for gone.
                absent = [(name, each) for name in unseen for each in self._wanted_in(columns[name]) - columns[name]]
                if absent and not _sees_all_tables(connection):
                    refused |= {name for name, each in absent if _is_refused(connection, name, each)}
            refused |= _refused_among(
                connection, {name: columns[name] & self._wanted_in(columns[name]) for name in types}
            )
            self._columns |= columns | dict.fromkeys(refused, frozenset())
            self.refused |= refused
            self.present |= {name for name in unseen if self.wanted[0] in self._columns[name]}
        return self._columns

    def _wanted_in(self, columns: frozenset[str]) -> frozenset[str]:
        """Return the columns that count in a table with these."""
        return frozenset(self.wanted).union(other for name, other in self.instead.items() if name not in columns)

    def _warn_of_other_types(self, types: Mapping[str, Mapping[str, bool]]) -> None:
        """Say once of each table which of its columns do not count."""
        for name, columns in types.items():
            if others := [wanted for wanted in self.wanted if columns.get(wanted) is False]:
                _log.warning(
                    "Of the table %s, which runs wrote, no integer column, as TYPO3 makes them: %s. A column of "
                    "another type counts as absent; without uid, so does the table.", name, ", ".join(others),
                )  # fmt: skip


def columns_of(connection: Connection, names: Sequence[str]) -> Mapping[str, Collection[str]]:
    """
    Return the columns of those of the named tables that exist and that the user may see, by exact name.

    One statement, whatever the number of names, and on SQLite one for each view. MySQL and MariaDB show a user only
    what it has a privilege for.
    """
    return {name: columns.keys() for name, columns in _columns(connection, names).items()}


def _columns(connection: Connection, names: Sequence[str]) -> dict[str, dict[str, bool]]:
    """Return the columns as :func:`columns_of` does, and whether each is of an integer type."""
    dialect = connection.dialect.name
    if len(names) > _MANY_NAMES:
        # A site has no such number of tables; models make names up.
        there = set(connection.execute(_all_tables(dialect)).scalars())
        names = [name for name in names if name in there]
    if dialect == "sqlite":
        return _columns_on_sqlite(connection, names)
    if dialect == "postgresql":
        relation, attribute, of_relation = _postgresql_columns(names)
        type_name = func.pg_catalog.format_type(attribute.c.atttypid, None)
        query = select(relation.c.relname, attribute.c.attname, type_name).where(of_relation)
        integers = {"smallint", "integer", "bigint"}
    else:
        columns, of_tables = _mysql_columns(names)
        query = select(columns.c.table_name, columns.c.column_name, columns.c.data_type).where(of_tables)
        integers = {"tinyint", "smallint", "mediumint", "int", "bigint"}
    found: dict[str, dict[str, bool]] = {}
    for table_name, column_name, column_type in connection.execute(query):
        if table_name in names:
            found.setdefault(table_name, {})[column_name] = column_type in integers
    return found


def _all_tables(dialect: str) -> Select[Any]:
    """The names of all tables and views that the user sees."""
    if dialect == "sqlite":
        master = table("sqlite_master", column("name"), column("type"))
        return select(master.c.name).where(master.c.type.in_(["table", "view"]))
    if dialect == "postgresql":
        relation = table("pg_class", column("oid"), column("relname"), schema="pg_catalog")
        return select(relation.c.relname).where(func.pg_catalog.pg_table_is_visible(relation.c.oid))
    tables = table("tables", column("table_schema"), column("table_name"), schema="information_schema")
    return select(tables.c.table_name).where(tables.c.table_schema == func.database())


def _columns_on_sqlite(connection: Connection, names: Sequence[str]) -> dict[str, dict[str, bool]]:
    master = table("sqlite_master", column("name"), column("type"))
    kinds = select(master.c.name, master.c.type).where(master.c.type.in_(["table", "view"]), master.c.name.in_(names))
    info = func.pragma_table_info(master.c.name).table_valued("name", "type")
    query = select(master.c.name, info.c.name, info.c.type).select_from(master.join(info, true()))
    found: dict[str, dict[str, bool]] = {}

    def read(of_names: Sequence[str]) -> None:
        for table_name, column_name, column_type in connection.execute(query.where(master.c.name.in_(of_names))):
            # As SQLite itself tells the affinity of a column.
            found.setdefault(table_name, {})[column_name] = "INT" in column_type.upper()

    kind_of = {row[0]: row[1] for row in connection.execute(kinds)}
    read([name for name, kind in kind_of.items() if kind == "table"])
    for name in (name for name, kind in kind_of.items() if kind == "view"):
        # A view whose table is gone is gone too, and would fail the statement for all.
        with suppress(DBAPIError):
            read([name])
    return found


def _mysql_columns(names: Sequence[str]) -> tuple[TableClause, ColumnElement[bool]]:
    """Return the columns that a user of MySQL or MariaDB sees, and what holds for those of the named tables."""
    parts = ("table_schema", "table_name", "column_name", "data_type", "privileges")
    columns = table("columns", *map(column, parts), schema="information_schema")
    # To the letter: of two names that differ in case, MariaDB would look for the first one only.
    named = cast(columns.c.table_name, LargeBinary).in_([name.encode() for name in names])
    return columns, and_(columns.c.table_schema == func.database(), named)


def _postgresql_columns(names: Sequence[str]) -> tuple[TableClause, TableClause, ColumnElement[bool]]:
    """Return PostgreSQL's relations and their columns, and what holds for those of the named tables."""
    # pg_catalog, not information_schema: what may not be read is denied, and does not count as gone.
    relation = table("pg_class", column("oid"), column("relname"), column("relkind"), schema="pg_catalog")
    attribute = table(
        "pg_attribute",
        column("attrelid"),
        column("attname"),
        column("attnum"),
        column("atttypid"),
        schema="pg_catalog",
    )
    return (
        relation,
        attribute,
        and_(
            attribute.c.attrelid == relation.c.oid,
            attribute.c.attnum > 0,
            func.pg_catalog.pg_table_is_visible(relation.c.oid),
            relation.c.relname.in_(names),
            # Indexes and types have names and columns too.
            relation.c.relkind.in_(["r", "p", "v", "f"]),
        ),
    )


def collations_of(connection: Connection, *columns: Column[Any]) -> Collations:
    """
    Return the collations of some columns by their tables, if MySQL or MariaDB might refuse to compare them; else none.

    It does where they differ, as the collations of tables do that were made at different times.
    """
    if connection.dialect.name != "mysql":
        return ONE_COLLATION
    names = ("table_schema", "table_name", "column_name", "character_set_name", "collation_name")
    schema = table("columns", *map(column, names), schema="information_schema")
    query = select(schema.c.table_name, schema.c.character_set_name, schema.c.collation_name).where(
        schema.c.table_schema == func.database(),
        or_(*(and_(schema.c.table_name == c.table.name, schema.c.column_name == c.name) for c in columns)),
    )
    found = {name: Collation(character_set, collation) for name, character_set, collation in connection.execute(query)}
    return found if len(set(found.values())) > 1 else ONE_COLLATION


def _sees_all_tables(connection: Connection) -> bool:
    """
    Whether a user of MySQL or MariaDB has a privilege on the whole database, and so sees all its tables and columns.

    REFERENCES on the database is enough; it lets nobody read anything.
    """
    user, host = func.substring_index(func.current_user(), "@", 1), func.substring_index(func.current_user(), "@", -1)
    grantee = func.concat("'", user, "'@'", host, "'")
    held = [
        table(name, column("grantee"), column("privilege_type"), *extra, schema="information_schema")
        for name, extra in (("user_privileges", ()), ("schema_privileges", (column("table_schema"),)))
    ]
    queries = [
        select(privileges.c.privilege_type).where(
            privileges.c.grantee == grantee,
            privileges.c.privilege_type.in_(_REVEALING),
            *(func.database().like(schema) for schema in privileges.c if schema.name == "table_schema"),
        )
        for privileges in held
    ]
    return bool(connection.execute(union_all(*queries)).fetchall())


def _refused_among(connection: Connection, columns: Mapping[str, Iterable[str]]) -> set[str]:
    """Return those of the tables of which the user may not read one of the columns, by one statement at most."""
    if connection.dialect.name == "sqlite" or not columns:
        return set()
    if connection.dialect.name == "mysql":
        seen, of_tables = _mysql_columns(list(columns))
        query = select(seen.c.table_name, seen.c.column_name).where(
            of_tables, func.find_in_set("select", seen.c.privileges) == 0
        )
    else:
        relation, attribute, of_relation = _postgresql_columns(list(columns))
        query = select(relation.c.relname, attribute.c.attname).where(
            of_relation, ~func.has_column_privilege(relation.c.oid, attribute.c.attnum, "SELECT")
        )
    return {name for name, refused in connection.execute(query) if refused in columns.get(name, ())}


def _is_refused(connection: Connection, name: str, absent: str) -> bool:
    """Whether MySQL or MariaDB refuses to read a column that the user does not see; one that is not there is not."""
    try:
        connection.execute(select(column(absent)).select_from(table(name)).limit(0))
    except DBAPIError as error:
        if is_denied(error):
            return True
        if not lacks_table_or_column(error):
            raise
    return False
