"""
Whether the value that a history row gives a field is empty, the one of before, or the one of another row.

The database compares; what leaves it is a yes or no for a field name, never a value and no hash of one, in no
error either. Values are compared as the texts that a database column would hold, so that 1 is '1', and JSON
texts by what they mean, as far as the engine can tell: MySQL, PostgreSQL and MariaDB from 10.7 on know that the
order of keys and the digits of a number do not matter; older ones and SQLite only leave out white space.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from typing import Any

from sqlalchemy import LargeBinary, Text, and_, case, cast, func, literal, null, or_, select, union_all
from sqlalchemy.dialects import mysql
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.engine import Connection, Dialect
from sqlalchemy.sql import ColumnElement, Select
from sqlalchemy.sql.selectable import CTE, CompoundSelect

from airflow_provider_nrllm.edits.changes import Answer, Question
from airflow_provider_nrllm.edits.field_names import CHANGED, is_json, readable_rows
from airflow_provider_nrllm.outcomes.evidence import Action

#: The field names that TYPO3 has; a value of another one is not compared.
_FIELD = re.compile(r"[A-Za-z0-9_]{1,64}")

#: What TYPO3 stores for nothing, one for another.
_EMPTY = ("", "0", "false", "[]", "{}")

#: How deep JSON may be nested to be read on MySQL.
_MYSQL_DEPTH = 100

#: The most fields of a statement: SQLite takes 500 selects in one UNION.
_FIELDS_AT_ONCE = 400


def read_answers(connection: Connection, asked: Collection[Question]) -> dict[tuple[int, str], Answer]:
    """
    Return the answers by row and field, by one statement on any page with less than 400 fields.

    :param connection: in the snapshot of the page
    """
    by_field: dict[str, list[Question]] = {}
    for question in asked:
        if _FIELD.fullmatch(question.field):
            by_field.setdefault(question.field, []).append(question)
    names = sorted(by_field)
    answers = {}
    for first in range(0, len(names), _FIELDS_AT_ONCE):
        some = {name: by_field[name] for name in names[first : first + _FIELDS_AT_ONCE]}
        for row, name, *flags in connection.execute(comparisons(connection.dialect, some)):
            answers[int(row), str(name)] = Answer(*map(bool, flags))
    return answers


def comparisons(dialect: Dialect, asked: dict[str, list[Question]]) -> CompoundSelect[Any]:
    """
    A row of ``uid, field, unchanged, empty, same`` for each question.

    :param asked: the questions by field
    """
    uids = {uid for some in asked.values() for question in some for uid in (question.row, question.last) if uid}
    rows = readable_rows(dialect.name, uids).cte("rows_with_json")
    last = rows.alias("last_rows")
    return union_all(*(_of_field(dialect, rows, last, name, some) for name, some in asked.items()))


def _of_field(dialect: Dialect, row: CTE, last: CTE, name: str, asked: Iterable[Question]) -> Select[Any]:
    pairs = {question.row: question.last for question in asked}
    partners = {uid: last for uid, last in pairs.items() if last}
    values = [row.c.uid, _text(dialect, row, "oldRecord", name).label("old"), _new(dialect, row, name).label("new")]
    source: Any = row
    if partners:
        source = row.outerjoin(last, last.c.uid == case(partners, value=row.c.uid))
        values.append(case((last.c.uid.is_not(None), _new(dialect, last, name))).label("last"))
    else:
        values.append(cast(null(), Text).label("last") if dialect.name != "mysql" else null().label("last"))
    found = select(*values).select_from(source).where(row.c.uid.in_(sorted(pairs)))
    value = (found.offset(0) if dialect.name == "postgresql" else found).subquery("found")
    has_partner = value.c.uid.in_(sorted(partners)) if partners else literal(0) == literal(1)
    return select(
        value.c.uid,
        literal(name),
        _flag(_equal(dialect, value.c.old, value.c.new)),
        _flag(_empty(dialect, value.c.new)),
        _flag(and_(has_partner, _equal(dialect, value.c.last, value.c.new))),
    )


def _new(dialect: Dialect, row: Any, name: str) -> ColumnElement[Any]:
    """Return the value that a row gives a field: an ADD holds the record itself."""
    of_add, of_change = _text(dialect, row, None, name), _text(dialect, row, CHANGED, name)
    return case((row.c.actiontype == int(Action.ADD), of_add), else_=of_change)


def _text(dialect: Dialect, row: Any, part: str | None, name: str) -> ColumnElement[Any]:
    """Return a value as text, NULL where there is none."""
    if dialect.name == "postgresql":
        whole = row.c.whole if part is None else row.c.whole.op("->")(part)
        return cast(whole.op("->>")(name), Text)
    path = f'$."{name}"' if part is None else f'$.{part}."{name}"'
    value = func.json_extract(row.c.whole, path)
    if dialect.name == "sqlite":
        return cast(value, Text)
    return case((func.json_type(value) != "NULL", func.json_unquote(value)))


def _empty(dialect: Dialect, text: ColumnElement[Any]) -> ColumnElement[bool]:
    if dialect.name == "mysql":
        return func.coalesce(cast(text, LargeBinary), b"").in_([value.encode() for value in _EMPTY])
    return func.coalesce(text, "").in_(_EMPTY)


def _equal(dialect: Dialect, left: ColumnElement[Any], right: ColumnElement[Any]) -> ColumnElement[bool]:
    same = cast(left, LargeBinary) == cast(right, LargeBinary) if dialect.name == "mysql" else left == right
    both_empty = and_(_empty(dialect, left), _empty(dialect, right))
    return or_(both_empty, func.coalesce(same, False), func.coalesce(_equal_as_json(dialect, left, right), False))


def _equal_as_json(dialect: Dialect, left: ColumnElement[Any], right: ColumnElement[Any]) -> ColumnElement[bool]:
    """Whether two texts are JSON objects or arrays that mean the same; NULL where they are none."""
    composite = [or_(text.like("{%"), text.like("[%")) for text in (left, right)]
    if dialect.name == "postgresql":
        # A number of many digits is more than JSONB takes, and its error would quote it.
        readable = [and_(is_json(text), text.op("!~")(r"[0-9]{100}|[eE][-+]?[0-9]{3}")) for text in (left, right)]
        return case((and_(*composite, *readable), cast(left, JSONB) == cast(right, JSONB)))
    valid = [func.json_valid(text) == 1 for text in (left, right)]
    if dialect.name == "sqlite":
        equal = func.json(left) == func.json(right)
    elif not getattr(dialect, "is_mariadb", False):
        # For what is nested deeper MySQL's JSON_VALID raises too.
        composite += [_brackets(text) <= _MYSQL_DEPTH for text in (left, right)]
        equal = cast(left, mysql.JSON) == cast(right, mysql.JSON)
    elif (dialect.server_version_info or ()) >= (10, 7):
        equal = func.json_equals(left, right) == 1
    else:
        equal = cast(func.json_compact(left), LargeBinary) == cast(func.json_compact(right), LargeBinary)
    return case((and_(*composite, *valid), equal))


def _brackets(text: ColumnElement[Any]) -> ColumnElement[int]:
    """Return how many brackets open, those in strings among them: JSON is nested no deeper than that."""
    return func.char_length(text) - func.char_length(func.replace(func.replace(text, "[", ""), "{", ""))


def _flag(condition: ColumnElement[bool]) -> ColumnElement[Any]:
    return case((condition, 1), else_=0)
