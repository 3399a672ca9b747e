"""The privileges that the user of a connection lacks, by the catalogue; nothing is written to find out."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from sqlalchemy import Table, and_, cast, column, func, literal, select, table, union_all
from sqlalchemy.dialects.postgresql import OID, REGCLASS
from sqlalchemy.engine import Connection
from sqlalchemy.exc import DBAPIError

from airflow_provider_nrllm.database.errors import is_denied


class Privilege(NamedTuple):
    """
    A privilege on a table.

    :ivar table: its name
    :ivar name: ``SELECT``, ``INSERT``, ``UPDATE`` or ``DELETE``
    :ivar columns: on these columns; none for the whole table
    """

    table: str
    name: str
    columns: tuple[str, ...] = ()

    @classmethod
    def to_read(cls, tables: Iterable[Table], unread: Collection[tuple[str, str]] = ()) -> tuple[Privilege, ...]:
        """
        Return the privileges that reading the tables needs.

        :param tables: one may come twice, with other columns
        :param unread: columns that are left out, with their tables
        """
        columns: dict[str, dict[str, None]] = {}
        for each in tables:
            read = (of_it.name for of_it in each.columns if (each.name, of_it.name) not in unread)
            columns.setdefault(each.name, {}).update(dict.fromkeys(read))
        return tuple(cls(name, "SELECT", tuple(names)) for name, names in columns.items())

    @classmethod
    def to_insert(cls, into: Table) -> Privilege:
        """Return the privilege that inserting rows needs, whose uid the database makes."""
        return cls(into.name, "INSERT", tuple(each.name for each in into.columns if each.name != "uid"))

    def grant(self) -> str:
        """Return the GRANT, without the user."""
        of_columns = f" ({', '.join(self.columns)})" if self.columns else ""
        return f"GRANT {self.name}{of_columns} ON {self.table}"


def lacking_grants(connection: Connection, needed: Sequence[Privilege], locked: Sequence[Table]) -> list[str]:
    """
    Return the GRANTs, without the user, that the user of the connection lacks; with one statement and one a lock.

    :param needed: the privileges; all their tables and columns are there
    :param locked: the tables whose rows are locked
    """
    if connection.dialect.name == "sqlite":
        return []
    on_postgresql = connection.dialect.name == "postgresql"
    lacking = (_lacking_on_postgresql if on_postgresql else _lacking_on_mysql)(connection, needed)
    grants = [privilege.grant() for privilege in lacking]
    # Who may not read a table may not lock its rows either.
    unread = {privilege.table for privilege in lacking if privilege.name == "SELECT"}
    for each in locked:
        if each.name not in unread and not _may_lock(connection, each):
            if on_postgresql:
                grants.append(f"GRANT UPDATE (uid) ON {each.name}")
            else:
                database = connection.execute(select(func.database())).scalar_one()
                grants.append(f"GRANT LOCK TABLES ON {database}.*")
    return grants


def _lacking_on_postgresql(connection: Connection, needed: Sequence[Privilege]) -> list[Privilege]:
    asked, expressions = [], []
    for privilege in needed:
        oid = cast(cast(literal(privilege.table), REGCLASS), OID)
        for name in privilege.columns or (None,):
            asked.append((privilege, name))
            expressions.append(
                func.has_table_privilege(oid, privilege.name)
                if name is None
                else func.has_column_privilege(oid, name, privilege.name)
            )
        if privilege.name == "INSERT":
            # Null for an identity column, which needs no privilege.
            sequence = func.pg_get_serial_sequence(privilege.table, "uid")
            asked.append((Privilege(f"SEQUENCE {privilege.table}_uid_seq", "USAGE"), None))
            expressions.append(func.coalesce(func.has_sequence_privilege(sequence, "USAGE"), True))
    held = connection.execute(select(*expressions)).one()
    return _together((privilege, name) for (privilege, name), holds in zip(asked, held, strict=True) if not holds)


def _lacking_on_mysql(connection: Connection, needed: Sequence[Privilege]) -> list[Privilege]:
    parts = ("table_schema", "table_name", "column_name", "privileges")
    seen = table("columns", *map(column, parts), schema="information_schema")
    of_tables = and_(seen.c.table_schema == func.database(), seen.c.table_name.in_([each.table for each in needed]))
    held = {
        (name, of_column): set(privileges.split(","))
        for name, of_column, privileges in connection.execute(
            select(seen.c.table_name, seen.c.column_name, seen.c.privileges).where(of_tables)
        )
    }
    whole = _held_on_mysql(connection)
    return _together(
        (privilege, name)
        for privilege in needed
        for name in privilege.columns or (None,)
        if (
            (privilege.name, None) not in whole and (privilege.name, privilege.table) not in whole
            if name is None
            else privilege.name.lower() not in held.get((privilege.table, name), ())
        )
    )


def _held_on_mysql(connection: Connection) -> set[tuple[str, str | None]]:
    """Return the privileges on whole tables; the table is None for a privilege on all of them."""
    parts = ("privilege_type", "table_schema", "table_name")
    user, schema, tables = (
        table(f"{of}_privileges", *map(column, parts), schema="information_schema")
        for of in ("user", "schema", "table")
    )
    queries = (
        select(user.c.privilege_type, literal(None)),
        select(schema.c.privilege_type, literal(None)).where(func.database().like(schema.c.table_schema)),
        select(tables.c.privilege_type, tables.c.table_name).where(tables.c.table_schema == func.database()),
    )
    return {(privilege, name) for privilege, name in connection.execute(union_all(*queries))}


def _together(lacking: Iterable[tuple[Privilege, str | None]]) -> list[Privilege]:
    """Return each privilege once, on the columns that lack it."""
    columns: dict[Privilege, list[str]] = {}
    for privilege, name in lacking:
        columns.setdefault(privilege, []).extend([name] if name else [])
    return [privilege._replace(columns=tuple(names)) for privilege, names in columns.items()]


def _may_lock(connection: Connection, each: Table) -> bool:
    """Lock a row that is not there."""
    try:
        with connection.begin_nested():
            connection.execute(select(each.c.uid).where(each.c.uid == 0).with_for_update())
    except DBAPIError as error:
        if not is_denied(error):
            raise
        return False
    return True
