"""The meaning of a database's error: a missing table, a missing privilege, or try again."""

from __future__ import annotations

import re
from typing import NamedTuple

from sqlalchemy.exc import DBAPIError, InterfaceError

_MISSING_CODES = frozenset({1046, 1054, 1146, "42P01", "42703"})
_MISSING_TEXTS = ("no such table", "no such column")
#: Another transaction won: a deadlock, a serialization failure, a row that changed since it was read.
_CONFLICT_CODES = frozenset({1020, 1213, "40001", "40P01"})
_LOCKED_CODES = frozenset({1205, 3572, "55P03"})
#: PostgreSQL's classes of a connection that is lost or not had and of a server that shuts down; MySQL's codes.
_LOST_CLASSES = ("08", "57P0", "53300", "2002", "2003", "2006", "2013", "2055", "1040", "1053", "1927")
_DRIVERS = frozenset({"MySQLdb", "mysql", "psycopg", "psycopg2", "sqlite3"})
_DENIED_CODES = frozenset({1044, 1142, 1143, "42501"})
_DENIED_TEXTS = (
    re.compile(r"(?P<privilege>[A-Z]+) command denied .* for column '(?P<column>\w+)' in table '(?P<table>\w+)'"),
    re.compile(r"(?P<privilege>[A-Z]+(?:, ?[A-Z ]+)*) command denied .* for table .*?(?P<table>\w+)\W*$"),
    re.compile(r"permission denied for \w+ \"?(?P<table>\w+)"),
)


class Denial(NamedTuple):
    """A privilege that a database refused, as far as its error tells: on a table, for one column."""

    table: str
    privilege: str
    column: str | None


def lacks_table_or_column(error: DBAPIError) -> bool:
    """Whether a statement names a table or column that is not there."""
    return code_of(error.orig) in _MISSING_CODES or str(error.orig).startswith(_MISSING_TEXTS)


def is_denied(error: DBAPIError) -> bool:
    """Whether the user lacks a privilege for a statement."""
    return code_of(error.orig) in _DENIED_CODES


def is_conflict(error: BaseException) -> bool:
    """Whether another transaction won, so that the same in a new transaction may succeed at once."""
    return isinstance(error, DBAPIError) and code_of(error.orig) in _CONFLICT_CODES


def is_locked(error: DBAPIError) -> bool:
    """Whether another transaction holds a row, and the statement did not wait for it, or not for longer."""
    return _is_locked(error.orig)


def _is_locked(cause: BaseException | None) -> bool:
    return code_of(cause) in _LOCKED_CODES or "database is locked" in str(cause)


def may_pass(error: BaseException) -> bool:
    """
    Whether the same again may succeed: after a conflict, a lock that was not had, or a lost connection.

    :param error: SQLAlchemy's, or a driver's own where a connection was not had
    """
    if isinstance(error, DBAPIError):
        return error.connection_invalidated or isinstance(error, InterfaceError) or _may_pass(error.orig)
    return type(error).__module__.partition(".")[0] in _DRIVERS and _may_pass(error)


def _may_pass(cause: BaseException | None) -> bool:
    code = code_of(cause)
    if code is None and type(cause).__module__.startswith("psycopg"):
        # PostgreSQL's client has no code for a server that it does not reach.
        return type(cause).__name__ == "OperationalError"
    return str(code or "").startswith(_LOST_CLASSES) or code in _CONFLICT_CODES or _is_locked(cause)


def named(error: DBAPIError) -> str:
    """Return what kind of error it is, with no word of what it was about: PostgreSQL, for one, quotes the row."""
    return f"{type(error.orig).__name__} {code_of(error.orig) or ''}".strip()


def kind_of(error: BaseException) -> str:
    """Return what kind of error any error is, with no word of what it was about."""
    return named(error) if isinstance(error, DBAPIError) else type(error).__name__


def denial_of(error: DBAPIError) -> Denial | None:
    """Return what was refused, None where the error does not tell."""
    for text in _DENIED_TEXTS:
        if found := text.search(str(error.orig)):
            told = found.groupdict()
            privilege = told.get("privilege") or _privilege_for(error.statement or "")
            return Denial(told["table"], privilege, told.get("column"))
    return None


def _privilege_for(statement: str) -> str:
    """Return the privilege that a statement asks for; PostgreSQL does not say which one was missing."""
    verb = statement.split(None, 1)[0].upper() if statement.strip() else ""
    if statement.rstrip().endswith("FOR UPDATE"):
        return "SELECT, UPDATE"
    return verb if verb in ("INSERT", "UPDATE", "DELETE") else "SELECT"


def code_of(cause: BaseException | None) -> int | str | None:
    """Return the engine's own code: a number from MySQL and MariaDB, an SQLSTATE from PostgreSQL, None from SQLite."""
    for code in (getattr(cause, "errno", None), *getattr(cause, "args", ())[:1]):
        if isinstance(code, int):
            return code
    return getattr(cause, "sqlstate", None) or getattr(cause, "pgcode", None)
