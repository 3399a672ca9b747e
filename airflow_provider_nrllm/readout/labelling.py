"""
The SQL that tells the group of each outcome: what telemetry says of its calls, and its run's events of its writes.

Of each dimension an outcome has one kind and, if it is named, one name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import JSON, String, and_, case, cast, func, literal, select
from sqlalchemy.sql import ColumnElement
from sqlalchemy.sql.selectable import CTE, FromClause

from airflow_provider_nrllm.database.conditions import Collations, exact, same_id
from airflow_provider_nrllm.database.tables import event, run
from airflow_provider_nrllm.edits.field_names import is_json
from airflow_provider_nrllm.outcomes.statements import is_write
from airflow_provider_nrllm.readout.groups import Dimension, Kind
from airflow_provider_nrllm.readout.telemetry import DIMENSION_COLUMNS, PAYLOAD_KEYS, telemetry

#: The columns of what the calls of an outcome took.
USAGE = ("calls", "cost", "cost_known", "latency", "latency_known")


@dataclass(frozen=True, slots=True)
class Labels:
    """
    How outcomes are labelled.

    :param dialect: the engine, by SQLAlchemy's name
    :param collations: those of the ids that are compared
    :param dimensions: those that are told
    :param site: what the site is called
    """

    dialect: str
    collations: Collations
    dimensions: Sequence[Dimension]
    site: str = ""

    def of(self, counted: CTE, period: Callable[[ColumnElement[Any]], ColumnElement[Any]] | None = None) -> CTE:
        """
        A row for each of the outcomes: ``uid, correlation_id, outcome, at``, its kinds and names, and :data:`USAGE`.

        :param counted: the outcomes, with these four columns
        :param period: what makes a column ``period`` of their time
        """
        told = self._told_by_calls(counted)
        joined: FromClause = told
        written: CTE | None = None
        columns: list[ColumnElement[Any]] = [
            told.c[name] for name in ("uid", "correlation_id", "outcome", "at", *USAGE)
        ]
        if any(dimension in PAYLOAD_KEYS for dimension in self.dimensions):
            written = self._told_by_writes(counted)
            joined = told.outerjoin(written, written.c.uid == told.c.uid)
        if period:
            columns.append(period(told.c.at).label("period"))
        for dimension in self.dimensions:
            is_site = dimension is Dimension.SITE
            columns += _constant(dimension, self.site) if is_site else _label(dimension, told, written)
        return select(*columns).select_from(joined).cte("labelled")

    def columns(self, labelled: CTE, dimensions: Sequence[Dimension]) -> list[ColumnElement[Any]]:
        """The kind and the name of each of the dimensions in turn."""
        return [labelled.c[f"{part}_{dimension}"] for dimension in dimensions for part in ("kind", "name")]

    def conditions(self, labelled: CTE, where: Mapping[Dimension, Sequence[str]]) -> Iterator[ColumnElement[bool]]:
        """Whether an outcome has one of the names in each of the dimensions, to the letter."""
        for dimension, names in where.items():
            known: list[Any] = [name.encode() for name in names] if self.dialect == "mysql" else list(names)
            yield and_(labelled.c[f"kind_{dimension}"] == str(Kind.NAMED), labelled.c[f"name_{dimension}"].in_(known))

    def _told_by_calls(self, counted: CTE) -> CTE:
        """The least and greatest name of each dimension that the calls tell, and what they took."""
        names = []
        for dimension, column in DIMENSION_COLUMNS.items():
            if dimension in self.dimensions:
                # '' names nothing: a row of it beside one that names a model does not make two models.
                plain = func.coalesce(column, "") if dimension.empty_name is not None else func.nullif(column, "")
                names += _extremes(dimension, self._exact(plain))
        return (
            select(
                counted.c.uid,
                *(func.min(counted.c[name]).label(name) for name in ("correlation_id", "outcome", "at")),
                *names,
                func.count(telemetry.c.correlation_id).label("calls"),
                func.sum(telemetry.c.actual_cost).label("cost"),
                func.count(telemetry.c.actual_cost).label("cost_known"),
                func.sum(telemetry.c.latency_ms).label("latency"),
                func.count(telemetry.c.latency_ms).label("latency_known"),
            )
            .select_from(counted.outerjoin(telemetry, self._same(telemetry.c.correlation_id, counted.c.correlation_id)))
            .group_by(counted.c.uid)
            .cte("told")
        )

    def _told_by_writes(self, counted: CTE) -> CTE:
        """The least and greatest name of each dimension that the payloads of the writes tell."""
        names = []
        for dimension in self.dimensions:
            if dimension in PAYLOAD_KEYS:
                told = func.nullif(self._payload_text(PAYLOAD_KEYS[dimension]), "")
                names += _extremes(dimension, self._exact(told))
        return (
            select(counted.c.uid, *names)
            .select_from(
                counted.join(run, self._same(run.c.uuid, counted.c.correlation_id)).join(
                    event, event.c.run == run.c.uid
                )
            )
            .where(is_write(self.dialect))
            .group_by(counted.c.uid)
            .cte("written")
        )

    def _payload_text(self, key: str) -> ColumnElement[Any]:
        """The text under a key of the payload; NULL if there is none, or the payload is no JSON."""
        payload = event.c.payload
        if self.dialect == "postgresql":
            value = func.json_extract_path(cast(payload, JSON), key)
            text = func.json_extract_path_text(cast(payload, JSON), key)
            return case((is_json(payload), case((func.json_typeof(value) == "string", text))))
        path = f"$.{key}"
        found = func.json_extract(payload, path)
        if self.dialect == "sqlite":
            return case((func.json_valid(payload) == 1, case((func.json_type(payload, path) == "text", found))))
        unquoted = case((func.json_type(found) == "STRING", func.json_unquote(found)))
        return case((func.json_valid(payload) == 1, unquoted))

    def _same(self, left: ColumnElement[Any], right: ColumnElement[Any]) -> ColumnElement[bool]:
        return same_id(self.dialect, left, right, self.collations)

    def _exact(self, text: ColumnElement[Any]) -> ColumnElement[Any]:
        return exact(self.dialect, text)


def _extremes(dimension: Dimension, name: ColumnElement[Any]) -> list[ColumnElement[Any]]:
    return [func.min(name).label(f"least_{dimension}"), func.max(name).label(f"greatest_{dimension}")]


def _constant(dimension: Dimension, name: str) -> list[ColumnElement[Any]]:
    """The kind and the name of all outcomes in a dimension that the database does not tell."""
    told = {"kind": str(Kind.NAMED), "name": name}
    return [cast(literal(text), String(250)).label(f"{part}_{dimension}") for part, text in told.items()]


def _label(dimension: Dimension, told: CTE, written: CTE | None) -> list[ColumnElement[Any]]:
    """The kind and the name of an outcome in one dimension."""
    source, nothing = (told, told.c.calls == 0), Kind.NO_TELEMETRY
    if written is not None and dimension in PAYLOAD_KEYS:
        source, nothing = (written, written.c.uid.is_(None)), Kind.PURGED
    table, is_nothing = source
    least, greatest = table.c[f"least_{dimension}"], table.c[f"greatest_{dimension}"]
    kind = case(
        (is_nothing, str(nothing)),
        (least.is_(None), str(Kind.NOT_RECORDED)),
        (least != greatest, str(Kind.SEVERAL)),
        else_=str(Kind.NAMED),
    )
    return [kind.label(f"kind_{dimension}"), case((least == greatest, least)).label(f"name_{dimension}")]
