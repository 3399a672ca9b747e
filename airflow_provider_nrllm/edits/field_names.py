"""
The names of the fields in a row of TYPO3's history: only names, which the database takes out of the JSON itself.

``history_data`` holds record content, so :mod:`airflow_provider_nrllm.database.tables` does not have it. It is a column
here, of a table object of its own, and is used only inside expressions that yield the names of keys, the type
of a value, or whether there is one. No value leaves the database, not in an error's message either: text that
is no JSON is found out before it is parsed. It may be NULL, '', cut off, or PHP-serialized.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from typing import Any

from sqlalchemy import Column, MetaData, String, Table, Text, and_, bindparam, case, cast, func, or_, select
from sqlalchemy.dialects.postgresql import JSON
from sqlalchemy.sql import ColumnElement, Select

from airflow_provider_nrllm.database.tables import WholeNumber
from airflow_provider_nrllm.outcomes.evidence import Action

_history = Table(
    "sys_history",
    MetaData(),
    Column("uid", WholeNumber, primary_key=True),
    Column("tstamp", WholeNumber),
    Column("actiontype", WholeNumber),
    Column("recuid", WholeNumber),
    Column("tablename", String(255)),
    Column("workspace", WholeNumber),
    Column("history_data", Text),
)

#: What the audit needs besides what a derivation reads.
FIELD_NAMES_TABLE = _history

#: The names of the fields that a history row names; None where they cannot be read.
Fields = frozenset[str] | None

# ADD holds the row itself, MODIFY and PUBLISH {"oldRecord": {...}, "newRecord": {...}}.
CHANGED = "newRecord"


def field_names(dialect: str, uids: Collection[int]) -> Select[Any]:
    """
    The names of the fields that the history rows name.

    A row of ``uid, actiontype, blank, whole, changed, names`` for each: whether there is any text; the JSON type
    of the whole and of what changed, NULL where it is no JSON or there is none; the names as a JSON array.

    :param dialect: the engine, by SQLAlchemy's name
    :param uids: of the history rows
    """
    if dialect == "postgresql":
        return _on_postgresql(uids)
    data, is_add = _history.c.history_data, _history.c.actiontype == int(Action.ADD)
    path = case((is_add, "$"), else_=f"$.{CHANGED}")
    names: ColumnElement[Any]
    if dialect == "sqlite":
        readable = func.json_valid(data) == 1
        whole, changed = func.json_type(data), func.json_type(data, f"$.{CHANGED}")
        each = func.json_each(case((readable, data), else_="{}"), path).table_valued("key")
        names = select(func.json_group_array(each.c.key)).select_from(each).correlate(_history).scalar_subquery()
    else:
        readable = func.json_valid(data) == 1
        whole, changed = func.json_type(data), func.json_type(func.json_extract(data, f"$.{CHANGED}"))
        names = case((is_add, func.json_keys(data)), else_=func.json_keys(data, f"$.{CHANGED}"))
    return select(
        _history.c.uid,
        _history.c.actiontype,
        _blank(data),
        case((readable, whole)),
        case((readable, changed)),
        case((readable, names)),
    ).where(_among(uids))


def readable_rows(dialect: str, uids: Collection[int]) -> Select[Any]:
    """
    The history rows with their JSON: ``uid, actiontype, blank, whole``.

    ``whole`` is NULL where the text is no JSON; on PostgreSQL it is of the type JSON.
    """
    data = _history.c.history_data
    if dialect == "postgresql":
        whole: ColumnElement[Any] = case((is_json(data), cast(data, JSON)))
    else:
        whole = case((func.json_valid(data) == 1, data))
    rows = select(_history.c.uid, _history.c.actiontype, _blank(data).label("blank"), whole.label("whole"))
    rows = rows.where(_among(uids))
    # Keeps the planner from writing the expression out once for each use.
    return rows.offset(0) if dialect == "postgresql" else rows


def _on_postgresql(uids: Collection[int]) -> Select[Any]:
    parsed = readable_rows("postgresql", uids).subquery("parsed")
    whole = parsed.c.whole
    changed = whole.op("->")(CHANGED)
    named = case((parsed.c.actiontype == int(Action.ADD), whole), else_=changed)
    keys = func.json_object_keys(case((func.json_typeof(named) == "object", named))).column_valued("name")
    names = select(cast(func.json_agg(keys), Text)).correlate(parsed).scalar_subquery()
    return select(
        parsed.c.uid, parsed.c.actiontype, parsed.c.blank, func.json_typeof(whole), func.json_typeof(changed), names
    )


def _blank(data: ColumnElement[Any]) -> ColumnElement[Any]:
    return case((or_(data.is_(None), data == ""), 1), else_=0)


def _among(uids: Collection[int]) -> ColumnElement[bool]:
    return _history.c.uid.in_(bindparam(None, sorted(uids), expanding=True, literal_execute=True))


#: How deep JSON may be nested to be read on PostgreSQL; TYPO3's history needs three levels.
POSTGRESQL_DEPTH = 8

_HEX = "[0-9a-fA-F]"
# An escaped character that is one: not U+0000, which no text of PostgreSQL holds, and surrogates in pairs.
_ESCAPE = (
    r'\\(?:["\\/bfnrt]'
    rf"|u(?:000[1-9a-fA-F]|00[1-9a-fA-F]{_HEX}|0[1-9a-fA-F]{_HEX}{_HEX}|[1-9a-cA-CeEfF]{_HEX}{_HEX}{_HEX}"
    rf"|[dD][0-7]{_HEX}{_HEX}|[dD][89abAB]{_HEX}{_HEX}\\u[dD][c-fC-F]{_HEX}{_HEX}))"
)
_STRING = rf'"(?:[^"\\\u0001-\u001f]|{_ESCAPE})*"'
_SCALAR = r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?|true|false|null"
# Signs that JSON holds nowhere: a string, and any other value.
_S, _V = "\x01", "\x02"
_OBJECT = r"\{(?:\u0001:[\u0001\u0002](?:,\u0001:[\u0001\u0002])*)?\}"
_ARRAY = r"\[(?:[\u0001\u0002](?:,[\u0001\u0002])*)?\]"


def is_json(data: ColumnElement[Any]) -> ColumnElement[bool]:
    """
    Whether a text is JSON that PostgreSQL can take keys from; it never raises.

    ``IS JSON`` came with PostgreSQL 16, and before a cast is the only parser: it raises, with the text in its
    message. So the text is reduced as a parser would do it, from the inside out: each string becomes one sign
    and each other value another, then each object or array of these becomes one. JSON is what ends as one sign.
    See docs/decisions/0004-field-names-without-values.md.
    """
    reduced: ColumnElement[Any] = func.regexp_replace(data, _STRING, _S, "g")
    reduced = func.regexp_replace(reduced, _SCALAR, _V, "g")
    reduced = func.regexp_replace(reduced, r"[ \t\n\r]+", "", "g")
    for _ in range(POSTGRESQL_DEPTH):
        reduced = func.regexp_replace(reduced, f"{_OBJECT}|{_ARRAY}", _V, "g")
    return and_(data.bool_op("!~")(r"[\u0001\u0002]"), reduced == _V)


def fields_by_row(rows: Collection[Any] | Iterator[Any]) -> dict[int, Fields]:
    """
    Return the names of the fields that each history row names, from what :func:`field_names` yields.

    Valid JSON that names nothing, such as PHP's empty array ``[]``, names no field. A PUBLISH need name none.
    """
    return {int(uid): _fields(action, *found) for uid, action, *found in rows}


def _fields(action: int, blank: int, whole: str | None, changed: str | None, names: str | None) -> Fields:
    whole, changed = (whole or "").lower(), (changed or "").lower()
    nothing: Fields = frozenset()
    if action == Action.PUBLISH and (blank or (whole == "object" and not changed)):
        return nothing
    if whole == "array" or (whole == "object" and changed == "array" and action != Action.ADD):
        return nothing
    named = whole if action == Action.ADD else changed
    if whole != "object" or named != "object":
        return None
    # The least array of names is none at all.
    return frozenset(str(name) for name in json.loads(names or "[]"))
