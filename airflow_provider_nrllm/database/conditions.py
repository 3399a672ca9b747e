"""How columns are compared, on every engine: with many values, to the letter, and by an index."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import LargeBinary, and_, cast, func, literal, or_
from sqlalchemy.dialects import mysql
from sqlalchemy.sql import ColumnElement

#: SQLite nests what is joined by OR, and takes no more than 1000 levels.
_ORS_IN_A_ROW = 100


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


def same_id(
    dialect: str, left: ColumnElement[Any], right: ColumnElement[Any], collation: str | None = None
) -> ColumnElement[bool]:
    """
    Compare two correlation ids to the letter; the collations of MySQL and MariaDB know neither case nor accents.

    :param collation: that of the left one, where the right one has another
    """
    if dialect != "mysql":
        return left == right
    return and_(
        left == (right.collate(collation) if collation else right), cast(left, LargeBinary) == cast(right, LargeBinary)
    )


def value_among(dialect: str, column: ColumnElement[Any], values: Sequence[str]) -> ColumnElement[bool]:
    """Compare an outcome to the letter: ADR-176 knows ``edited``, and ``Edited`` may be a newer version's."""
    if dialect != "mysql":
        return column.in_(values)
    return cast(column, LargeBinary).in_([value.encode() for value in values])


def zero_if_null(dialect: str, column: ColumnElement[Any]) -> ColumnElement[Any]:
    """
    Return an unsigned column with 0 for NULL, TYPO3's own default.

    MySQL and MariaDB make a decimal of an unsigned column beside a signed 0.
    """
    zero = cast(literal(0), mysql.INTEGER(unsigned=True)) if dialect == "mysql" else literal(0)
    return func.coalesce(column, zero)
