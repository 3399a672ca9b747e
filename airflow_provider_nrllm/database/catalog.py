"""Which tables and columns there are, as far as the user of a connection may know."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from sqlalchemy import LargeBinary, cast, column, func, select, table, true, union_all
from sqlalchemy.engine import Connection
from sqlalchemy.exc import DBAPIError

from airflow_provider_nrllm.database.errors import lacks_table_or_column

#: The privileges that, held on a whole database, show its tables and columns to a user of MySQL or MariaDB.
_REVEALING = ["SELECT", "INSERT", "UPDATE", "DELETE", "REFERENCES", "CREATE", "ALTER", "DROP", "INDEX"]


class WrittenTables:
    """
    The tables that runs wrote, and which of the wanted columns they have.

    A column of another type than a whole number is none of TYPO3's, and is taken for absent: what it holds would be
    no uid, flag or stamp, and engines would not even compare it.

    :param wanted: the columns to look for
    """

    def __init__(self, wanted: Sequence[str]) -> None:
        self.wanted = wanted
        self._columns: dict[str, frozenset[str]] = {}

    def read(self, connection: Connection, names: Iterable[str]) -> Mapping[str, frozenset[str]]:
        """
        Return the columns of the named tables, none for a table that does not exist.

        A table is looked up once: with one statement for all that were not asked about before, and on MySQL and
        MariaDB some more for what their user does not see.

        :param names: from data
        :raises sqlalchemy.exc.DBAPIError: where it cannot be told from a missing privilege whether a table or column
            is there, so that what may not be read is never taken for gone
        """
        unseen = sorted(set(names) - self._columns.keys())
        if unseen:
            found = columns_of(connection, unseen, whole_numbers=True)
            columns = {name: found.get(name, frozenset()) for name in unseen}
            if connection.dialect.name == "mysql":
                absent = [(name, wanted) for name in unseen for wanted in self.wanted if wanted not in columns[name]]
                if absent and not _sees_all_tables(connection):
                    for name, wanted in absent:
                        _probe(connection, name, wanted)
            self._columns |= columns
        return self._columns


def columns_of(
    connection: Connection, names: Sequence[str], *, whole_numbers: bool = False
) -> Mapping[str, frozenset[str]]:
    """
    Return the columns of those of the named tables that exist and that the user may see, by exact name.

    One statement, whatever the number of names. MySQL and MariaDB show a user only what it has a privilege for.

    :param whole_numbers: only the columns of an integer type
    """
    dialect = connection.dialect.name
    if dialect == "sqlite":
        master = table("sqlite_master", column("name"), column("type"))
        info = func.pragma_table_info(master.c.name).table_valued("name", "type")
        query = (
            select(master.c.name, info.c.name)
            .select_from(master.join(info, true()))
            # No view: one whose table is gone would fail all of the statement.
            .where(master.c.type == "table", master.c.name.in_(names))
        )
        # As SQLite itself tells the affinity of a column.
        is_whole_number = info.c.type.like("%INT%")
    elif dialect == "postgresql":
        # pg_catalog, not information_schema: what may not be read is denied, and not taken for gone.
        relation = table("pg_class", column("oid"), column("relname"), column("relkind"), schema="pg_catalog")
        attribute = table(
            "pg_attribute",
            column("attrelid"),
            column("attname"),
            column("attnum"),
            column("atttypid"),
            schema="pg_catalog",
        )
        query = select(relation.c.relname, attribute.c.attname).where(
            attribute.c.attrelid == relation.c.oid,
            attribute.c.attnum > 0,
            func.pg_catalog.pg_table_is_visible(relation.c.oid),
            relation.c.relname.in_(names),
            # Indexes and types have names and columns too.
            relation.c.relkind.in_(["r", "p", "v", "f"]),
        )
        is_whole_number = func.pg_catalog.format_type(attribute.c.atttypid, None).in_(["smallint", "integer", "bigint"])
    else:
        columns = table(
            "columns",
            column("table_schema"),
            column("table_name"),
            column("column_name"),
            column("data_type"),
            schema="information_schema",
        )
        query = select(columns.c.table_name, columns.c.column_name).where(
            columns.c.table_schema == func.database(),
            # To the letter: of two names that differ in case, MariaDB would look for the first one only.
            cast(columns.c.table_name, LargeBinary).in_([name.encode() for name in names]),
        )
        is_whole_number = columns.c.data_type.in_(["tinyint", "smallint", "mediumint", "int", "bigint"])
    if whole_numbers:
        query = query.where(is_whole_number)
    wanted = frozenset(names)
    found: dict[str, set[str]] = {}
    for table_name, column_name in connection.execute(query):
        if table_name in wanted:
            found.setdefault(table_name, set()).add(column_name)
    return {name: frozenset(columns) for name, columns in found.items()}


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
    return connection.execute(union_all(*queries)).first() is not None


def _probe(connection: Connection, name: str, absent: str) -> None:
    """Ask for a column that the user does not see: an error that it may not be read, rather than is not there."""
    try:
        connection.execute(select(column(absent)).select_from(table(name)).limit(0))
    except DBAPIError as error:
        if not lacks_table_or_column(error):
            raise
