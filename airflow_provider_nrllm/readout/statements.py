"""
The SQL of a readout: the database counts, and what it returns is a row a group and period.

Built with SQLAlchemy Core from :mod:`airflow_provider_nrllm.readout.telemetry`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import and_, case, exists, func, literal, literal_column, or_, select, true
from sqlalchemy.sql import ColumnElement, Select
from sqlalchemy.sql.selectable import CTE, FromClause

from airflow_provider_nrllm.database.conditions import (
    Collations,
    exact,
    in_collation_of,
    same_id,
    value_among,
)
from airflow_provider_nrllm.database.tables import outcome, run
from airflow_provider_nrllm.outcomes.partitions import DAY
from airflow_provider_nrllm.outcomes.rules import EXPLICIT, OBSERVED, ExplicitOutcome, ObservedOutcome
from airflow_provider_nrllm.readout.counts import RangeOf
from airflow_provider_nrllm.readout.groups import Dimension, Kind
from airflow_provider_nrllm.readout.periods import PeriodWidth
from airflow_provider_nrllm.readout.telemetry import DIMENSION_COLUMNS, telemetry

#: The outcome values this version knows; a newer one is skipped (ADR-176).
VALUES = (*ExplicitOutcome, *ObservedOutcome)

#: The correlation ids that the statements compare with each other.
ID_COLUMNS = (outcome.c.correlation_id, run.c.uuid, telemetry.c.correlation_id)


@dataclass(frozen=True, slots=True)
class ReadoutStatements:
    """
    The statements of one readout.

    :param dialect: the engine, by SQLAlchemy's name
    :param start: the first second of the range, None for an open one
    :param end: the first second after it
    :param range_of: whose time is in the range
    :param grouping: by what is grouped
    :param collations: those of :data:`ID_COLUMNS`
    """

    dialect: str
    start: int | None
    end: int
    range_of: RangeOf
    grouping: Sequence[Dimension]
    collations: Collations = field(default_factory=dict)

    def first_time(self) -> Select[Any]:
        """The time of the first outcome that counts, NULL for none."""
        return select(func.min(self._counted().c.at))

    def outcomes_over_time(self, width: PeriodWidth) -> Select[Any]:
        """A row a group and period: its kinds and names, the period, then a count for each of :data:`VALUES`."""
        counted = self._counted()
        named = self._named(select(counted.c.correlation_id))
        labelled = (
            select(
                counted.c.outcome,
                _period(self.dialect, counted.c.at, width).label("period"),
                *self._labels(named),
            )
            .select_from(counted.outerjoin(named, self._same_id(counted, named)))
            .cte("labelled")
        )
        groups = [*self._labels_of(labelled), labelled.c.period]
        return select(*groups, *_counts(labelled)).group_by(*groups)

    def usage_by_group(self) -> Select[Any]:
        """A row a group with telemetry: its kinds and names, calls, cost, of how many known, latency, the same."""
        counted = self._counted()
        named = self._named(select(counted.c.correlation_id))
        # The collation of MySQL may take two ids for one: only those with an outcome are to be counted.
        has_outcome = exists(select(literal(1)).where(self._same_id(counted, named)))
        labelled = select(*self._labels(named), *(named.c[name] for name in USAGE)).where(has_outcome).cte("labelled")
        labels = self._labels_of(labelled)
        return select(*labels, *(func.sum(labelled.c[name]) for name in USAGE)).group_by(*labels)

    def ratings_without_run(self) -> Select[Any]:
        """How many correlation ids, of any time, have a rating and no run."""
        has_run = exists(select(literal(1)).where(self._same(run.c.uuid, outcome.c.correlation_id)))
        return select(func.count(func.distinct(self._exact(outcome.c.correlation_id)))).where(
            self._valued(outcome, EXPLICIT), outcome.c.correlation_id != "", ~has_run
        )

    def edited_after(self, uid: int, limit: int) -> Select[Any]:
        """The outcome rows ``edited`` that count, in the order of their uids: ``uid, correlation_id`` of each."""
        counted = self._counted()
        return (
            select(counted.c.uid, counted.c.correlation_id)
            .where(counted.c.outcome == str(ObservedOutcome.EDITED), counted.c.uid > uid)
            .order_by(counted.c.uid)
            .limit(limit)
        )

    def labels_of_ids(self, correlation_ids: Collection[str]) -> Select[Any]:
        """A row for each of the correlation ids that has telemetry: the id, its kinds and names."""
        named = self._named(correlation_ids)
        return select(named.c.correlation_id, *self._labels(named))

    def _counted(self) -> CTE:
        """The outcome rows that count: of a known value, in the range, one for each correlation id and source."""
        if self.range_of is RangeOf.OUTCOME:
            source: FromClause = outcome
            at: ColumnElement[Any] = outcome.c.crdate
            in_range = self._in_range(at)
        else:
            runs = self._run_times()
            source = outcome.join(runs, self._same_id(outcome, runs))
            at, in_range = runs.c.at, true()
        return (
            select(outcome.c.uid, outcome.c.correlation_id, outcome.c.outcome, at.label("at"))
            .select_from(source)
            .where(
                self._valued(outcome, (*EXPLICIT, *OBSERVED)),
                outcome.c.correlation_id != "",
                in_range,
                ~self._superseded(),
            )
            .cte("counted")
        )

    def _superseded(self) -> ColumnElement[bool]:
        """
        ADR-176: at most one row for a correlation id and source, but no key forbids a second.

        The last rating replaces those before it, the first observed outcome is final.
        """
        other = outcome.alias("other")
        return exists(
            select(literal(1)).where(
                self._same(other.c.correlation_id, outcome.c.correlation_id),
                or_(
                    and_(self._valued(outcome, EXPLICIT), self._valued(other, EXPLICIT), other.c.uid > outcome.c.uid),
                    and_(self._valued(outcome, OBSERVED), self._valued(other, OBSERVED), other.c.uid < outcome.c.uid),
                ),
            )
        )

    def _run_times(self) -> CTE:
        """When each uuid's first run was made, for those in the range; the uuid of a run need not be unique."""
        at = func.min(run.c.crdate)
        return (
            select(func.min(run.c.uuid).label("correlation_id"), at.label("at"))
            .where(run.c.uuid != "")
            .group_by(self._exact(run.c.uuid))
            .having(self._in_range(at))
            .cte("run_times")
        )

    def _in_range(self, at: ColumnElement[Any]) -> ColumnElement[bool]:
        return at < self.end if self.start is None else and_(at >= self.start, at < self.end)

    def _named(self, ids: Any) -> CTE:
        """For each correlation id with telemetry, the least and greatest name of each dimension, and its usage."""
        names = []
        for position, dimension in enumerate(self.grouping):
            column: ColumnElement[Any] = DIMENSION_COLUMNS[dimension]
            # '' names nothing: a row of it beside one that names a model does not make two models.
            name = self._exact(
                func.coalesce(column, "") if dimension.empty_name is not None else func.nullif(column, "")
            )
            names += [func.min(name).label(f"least_{position}"), func.max(name).label(f"greatest_{position}")]
        return (
            select(
                func.min(telemetry.c.correlation_id).label("correlation_id"),
                *names,
                func.count().label("calls"),
                func.sum(telemetry.c.actual_cost).label("cost"),
                func.count(telemetry.c.actual_cost).label("cost_known"),
                func.sum(telemetry.c.latency_ms).label("latency"),
                func.count(telemetry.c.latency_ms).label("latency_known"),
            )
            .where(telemetry.c.correlation_id.in_(self._ids_for(telemetry.c.correlation_id, ids)))
            .group_by(self._exact(telemetry.c.correlation_id))
            .cte("named")
        )

    def _labels(self, named: CTE) -> Iterator[ColumnElement[Any]]:
        """The kind and the name of an id in each dimension."""
        for position in range(len(self.grouping)):
            least, greatest = named.c[f"least_{position}"], named.c[f"greatest_{position}"]
            kind = case(
                (named.c.calls.is_(None), str(Kind.NO_TELEMETRY)),
                (least.is_(None), str(Kind.NOT_RECORDED)),
                (least != greatest, str(Kind.SEVERAL)),
                else_=str(Kind.NAMED),
            )
            yield kind.label(f"kind_{position}")
            yield case((least == greatest, least)).label(f"name_{position}")

    def _labels_of(self, labelled: CTE) -> list[ColumnElement[Any]]:
        return [labelled.c[f"{part}_{place}"] for place in range(len(self.grouping)) for part in ("kind", "name")]

    def _same_id(self, left: Any, right: Any) -> ColumnElement[bool]:
        return self._same(left.c.correlation_id, right.c.correlation_id)

    def _same(self, left: ColumnElement[Any], right: ColumnElement[Any]) -> ColumnElement[bool]:
        return same_id(self.dialect, left, right, self.collations)

    def _valued(self, outcomes: FromClause, values: Sequence[str]) -> ColumnElement[bool]:
        # The plain comparison is for the index.
        column = outcomes.c.outcome
        exactly = value_among(self.dialect, column, values)
        return and_(column.in_(values), exactly) if self.dialect == "mysql" else exactly

    def _ids_for(self, column: ColumnElement[Any], ids: Any) -> Any:
        """Return a list or a subquery of ids as one that the column can be compared with."""
        if not isinstance(ids, Select):
            return ids
        (selected,) = ids.selected_columns
        return select(in_collation_of(column, selected, self.collations))

    def _exact(self, text: ColumnElement[Any]) -> ColumnElement[Any]:
        return exact(self.dialect, text)


#: The columns of what calls took.
USAGE = ("calls", "cost", "cost_known", "latency", "latency_known")


#: The first Monday is four days after the epoch.
_TO_MONDAY = 3 * DAY


def _period(dialect: str, at: ColumnElement[Any], width: PeriodWidth) -> ColumnElement[Any]:
    """Return the day (UTC) that tells a time's period: its first one as a Unix time, of a month ``2026-03``."""
    if width is PeriodWidth.DAY:
        return at - at % DAY
    if width is PeriodWidth.WEEK:
        return at - (at + _TO_MONDAY) % (7 * DAY)
    if dialect == "postgresql":
        return func.to_char(func.timezone("UTC", func.to_timestamp(at)), "YYYY-MM")
    if dialect == "sqlite":
        return func.strftime("%Y-%m", at, "unixepoch")
    # Not FROM_UNIXTIME, which knows the session's time zone.
    return func.date_format(func.timestampadd(literal_column("SECOND"), at, "1970-01-01"), "%Y-%m")


def _counts(table: FromClause) -> list[ColumnElement[Any]]:
    return [func.sum(case((table.c.outcome == str(value), 1), else_=0)).label(str(value)) for value in VALUES]
