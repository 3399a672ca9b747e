"""Comparisons of columns on every engine: with many values, to the letter, and by an index."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple, TypeVar

from sqlalchemy import Column, LargeBinary, and_, cast, func, literal, or_
from sqlalchemy.dialects import mysql
from sqlalchemy.sql import ColumnElement

#: SQLite nests what is joined by OR, and takes no more than 1000 levels.
_ORS_IN_A_ROW = 100


#: How many values a list in a statement may have. Twelve bytes each, it is a quarter of the smallest packet that a
#: MySQL or MariaDB server is commonly set to take (max_allowed_packet of 1 MB).
LIST_LENGTH = 20_000

T = TypeVar("T")


def slices(values: Iterable[T], length: int = LIST_LENGTH) -> Iterator[list[T]]:
    """Yield the values in lists that fit into a statement; none of no values."""
    rest = iter(values)
    while some := list(islice(rest, length)):
        yield some


def any_of(conditions: Sequence[ColumnElement[bool]], uid: ColumnElement[Any]) -> ColumnElement[bool]:
    """
    Join by OR.

    :param uid: of the row, which is always above 0
    """
    if len(conditions) <= _ORS_IN_A_ROW:
        return or_(*conditions)
    some = [conditions[first : first + _ORS_IN_A_ROW] for first in range(0, len(conditions), _ORS_IN_A_ROW)]
    # The AND keeps SQLAlchemy from making one row of them again.
    return or_(*(and_(uid > 0, or_(*few)) for few in some))


def exact(dialect: str, text: ColumnElement[Any]) -> ColumnElement[Any]:
    """
    Return a text so that it equals only itself, to the letter.

    The collations of MySQL and MariaDB know neither case nor accents nor spaces at the end, and take one emoji for
    any other; there it comes back as the bytes of UTF-8.
    """
    return cast(cast(text, mysql.CHAR(charset="utf8mb4")), LargeBinary) if dialect == "mysql" else text


def value_among(dialect: str, column: ColumnElement[Any], values: Sequence[str]) -> ColumnElement[bool]:
    """
    Compare an outcome, a status or the kind of an event to the letter.

    ADR-176 knows ``edited``, and ``Edited`` may be a newer version's. No index serves it on MySQL and MariaDB: where
    one should, add ``column.in_(values)``.
    """
    return exact(dialect, column).in_([value.encode() for value in values] if dialect == "mysql" else list(values))


class Collation(NamedTuple):
    """The character set and collation by which MySQL or MariaDB compares a column."""

    character_set: str
    name: str


#: The collations of the columns that a statement compares, by their tables; none where all of them are the same.
Collations = Mapping[str, Collation]
ONE_COLLATION: Collations = {}


def same_id(
    dialect: str, left: ColumnElement[Any], right: ColumnElement[Any], collations: Collations = ONE_COLLATION
) -> ColumnElement[bool]:
    """
    Compare two correlation ids to the letter, by the index on the left one if it has one.

    :param left: a column of a table, or of an alias or a CTE of one
    :param collations: of the columns that are compared
    """
    same = left == in_collation_of(left, right, collations)
    return and_(same, exact(dialect, left) == exact(dialect, right)) if dialect == "mysql" else same


def in_collation_of(left: ColumnElement[Any], right: ColumnElement[Any], collations: Collations) -> ColumnElement[Any]:
    """Return the right text in the collation of the left column; MySQL and MariaDB refuse to compare two of them."""
    for column in left.base_columns:
        if isinstance(column, Column) and column.table.name in collations:
            character_set, name = collations[column.table.name]
            return cast(right, mysql.CHAR(charset=character_set)).collate(name)
    return right


def zero_if_null(dialect: str, column: ColumnElement[Any]) -> ColumnElement[Any]:
    """
    Return an unsigned column with 0 for NULL, TYPO3's own default.

    MySQL and MariaDB make a decimal of an unsigned column beside a signed 0.
    """
    zero = cast(literal(0), mysql.INTEGER(unsigned=True)) if dialect == "mysql" else literal(0)
    return func.coalesce(column, zero)
