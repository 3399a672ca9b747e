"""What a database means by an error: a table that is not there, a privilege that is missing, or come again."""

from __future__ import annotations

import re
from collections.abc import Iterable

from sqlalchemy import Table
from sqlalchemy.exc import DBAPIError

_MISSING_CODES = frozenset({1046, 1054, 1146, "42P01", "42703"})
_MISSING_TEXTS = ("no such table", "no such column")
_PASSING_CODES = frozenset({1205, 1213, "40001", "40P01", "55P03"})
_DENIED_CODES = frozenset({1044, 1142, 1143, "42501"})
_DENIED_TEXTS = (
    re.compile(
        r"(?P<privilege>[A-Z]+) command denied .* for (column '(?P<column>\w+)' in )?table .*?(?P<table>\w+)\W*$"
    ),
    re.compile(r"permission denied for \w+ \"?(?P<table>\w+)"),
)


def lacks_table_or_column(error: DBAPIError) -> bool:
    """Whether a statement names a table or column that is not there."""
    return _code(error) in _MISSING_CODES or str(error.orig).startswith(_MISSING_TEXTS)


def is_denied(error: DBAPIError) -> bool:
    """Whether the user lacks a privilege for a statement."""
    return _code(error) in _DENIED_CODES


def may_pass(error: BaseException) -> bool:
    """Whether the same again may succeed: after a deadlock, a lock wait time-out or a serialization failure."""
    if not isinstance(error, DBAPIError):
        return False
    return _code(error) in _PASSING_CODES or "database is locked" in str(error.orig)


def named(error: DBAPIError) -> str:
    """Return what kind of error it is, with no word of what it was about: PostgreSQL, for one, quotes the row."""
    return f"{type(error.orig).__name__} {_code(error) or ''}".strip()


def missing_grant(error: DBAPIError, known: Iterable[Table]) -> str:
    """
    Return a sentence with the GRANT that a refusal asks for, empty where its text does not tell.

    :param known: the tables whose columns may be named
    """
    denied = next((found for text in _DENIED_TEXTS if (found := text.search(str(error.orig)))), None)
    if denied is None:
        return ""
    told = denied.groupdict()
    name = told["table"]
    if name.endswith("_seq"):
        return f"Missing: GRANT USAGE ON SEQUENCE {name}. "
    columns = [told["column"]] if told.get("column") else next((t.c.keys() for t in known if t.name == name), [])
    of_columns = f" ({', '.join(columns)})" if columns else ""
    return f"Missing: GRANT {told.get('privilege') or 'SELECT'}{of_columns} ON {name}. "


def _code(error: DBAPIError) -> int | str | None:
    """Return the engine's own code: a number from MySQL and MariaDB, an SQLSTATE from PostgreSQL, None from SQLite."""
    cause = error.orig
    for code in (getattr(cause, "errno", None), *getattr(cause, "args", ())[:1]):
        if isinstance(code, int):
            return code
    return getattr(cause, "sqlstate", None) or getattr(cause, "pgcode", None)
