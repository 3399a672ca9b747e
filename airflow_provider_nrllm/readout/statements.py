"""
The SQL of a readout: the database counts, and what it returns is a row a group and period.

Built with SQLAlchemy Core from :mod:`airflow_provider_nrllm.readout.telemetry`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from sqlalchemy import and_, case, exists, func, literal, or_, select, true
from sqlalchemy.sql import ColumnElement, Select
from sqlalchemy.sql.selectable import CTE, FromClause

from airflow_provider_nrllm.database.conditions import ONE_COLLATION, Collations, exact, same_id, value_among
from airflow_provider_nrllm.database.tables import event, outcome, run
from airflow_provider_nrllm.outcomes.partitions import DAY
from airflow_provider_nrllm.outcomes.rules import EXPLICIT, OBSERVED, ExplicitOutcome, ObservedOutcome
from airflow_provider_nrllm.outcomes.statements import is_write
from airflow_provider_nrllm.readout.counts import RangeOf
from airflow_provider_nrllm.readout.groups import Dimension
from airflow_provider_nrllm.readout.labelling import USAGE, Labels
from airflow_provider_nrllm.readout.period_column import period_of
from airflow_provider_nrllm.readout.periods import PeriodWidth
from airflow_provider_nrllm.readout.telemetry import telemetry

#: The correlation ids that the statements compare with each other.
ID_COLUMNS = (outcome.c.correlation_id, run.c.uuid, telemetry.c.correlation_id)

#: The outcome values this version knows; a newer one is skipped (ADR-176).
VALUES = (*ExplicitOutcome, *ObservedOutcome)

#: More rows than a table has.
_ALL_ROWS = 2**63 - 1


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
    :param where: the names that count, by dimension
    :param window: how long a record is watched after a write, in seconds
    :param site: what the site is called
    """

    dialect: str
    start: int | None
    end: int
    range_of: RangeOf
    grouping: Sequence[Dimension]
    collations: Collations = field(default_factory=lambda: ONE_COLLATION)
    where: Mapping[Dimension, Sequence[str]] = field(default_factory=dict)
    window: int = 7 * DAY
    site: str = ""

    def first_time(self) -> Select[Any]:
        """The time of the first outcome that counts, NULL for none."""
        return select(func.min(self._counted().c.at))

    def outcomes_over_time(self, width: PeriodWidth) -> Select[Any]:
        """
        A row a group and period: its kinds and names, and the period.

        Then a count for each of :data:`VALUES`, and what the calls of each source took, as in :data:`USAGE`.
        """
        labels = self._labels()
        labelled = labels.of(self._counted(), partial(period_of, self.dialect, width))
        columns = [*labels.columns(labelled, self.grouping), labelled.c.period]
        usage = [
            func.sum(case((labelled.c.outcome.in_(values), labelled.c[name])))
            for values in (EXPLICIT, OBSERVED)
            for name in USAGE
        ]
        return (
            select(*columns, *_counts(labelled), *usage)
            .where(*labels.conditions(labelled, self.where))
            .group_by(*columns)
        )

    def ratings_without_run(self) -> Select[Any]:
        """The number of correlation ids, of any time, that have a rating and no run."""
        has_run = exists(select(literal(1)).where(self._same(run.c.uuid, outcome.c.correlation_id)))
        return select(func.count(func.distinct(self._exact(outcome.c.correlation_id)))).where(
            self._valued(outcome, EXPLICIT), outcome.c.correlation_id != "", ~has_run
        )

    def coverage(self, due: int) -> Select[Any]:
        """
        One row on the runs made in the range: how many, with writes, answered, and not due yet.

        :param due: what has settled after this second is not due
        """
        last = (
            select(func.max(event.c.crdate))
            .where(event.c.run == run.c.uid, is_write(self.dialect))
            .correlate(run)
            .scalar_subquery()
        )
        answered = exists(
            select(literal(1)).where(
                self._same(outcome.c.correlation_id, run.c.uuid),
                self._valued(outcome, OBSERVED),
            )
        )
        runs = (
            select(
                func.coalesce(run.c.finished_at, 0).label("ended"), last.label("last"), case((answered, 1), else_=0)
                .label("answered"),
            )
            .where(run.c.uuid != "", self._in_range(run.c.crdate))
            .cte("runs")
        )  # fmt: skip
        wrote, is_answered = runs.c.last.is_not(None), runs.c.answered == 1
        goes_on = or_(runs.c.ended == 0, runs.c.ended > due, runs.c.last + self.window > due)
        counted = (wrote, and_(wrote, is_answered), and_(wrote, ~is_answered, goes_on))
        columns: list[Any] = [func.count(), *(func.sum(case((condition, 1), else_=0)) for condition in counted)]
        return select(*columns).select_from(runs)

    def page_after(self, uid: int, limit: int, values: Sequence[str]) -> Select[Any]:
        """
        The uid of the last outcome row of a page, and how many rows it has, whether or not they count.

        :param uid: that of the last row before
        :param limit: the most rows
        :param values: the outcomes that are asked for
        """
        rows = (
            select(outcome.c.uid)
            .where(*self._by_uid(values), outcome.c.uid > uid)
            .order_by(outcome.c.uid)
            .limit(limit)
            .subquery()
        )
        columns: list[Any] = [func.max(rows.c.uid), func.count()]
        return select(*columns)

    def outcomes_between(self, after: int, last: int, values: Sequence[str]) -> Select[Any]:
        """
        The outcome rows of a page that count, in the order of their uids: ``uid, correlation_id, outcome, at`` of each.

        Then its kinds and names: those it is grouped by, and those that :attr:`where` asks for.

        :param after: the uid of the last row before
        :param last: the uid of the last row of the page
        :param values: the outcomes that are asked for
        """
        page = (*self._by_uid(values), outcome.c.uid > after, outcome.c.uid <= last)
        labels = self._labels()
        labelled = labels.of(self._counted(page))
        columns: list[Any] = [labelled.c[name] for name in ("uid", "correlation_id", "outcome", "at")]
        return select(*columns, *labels.columns(labelled, self.dimensions)).order_by(labelled.c.uid)

    def _by_uid(self, values: Sequence[str]) -> tuple[ColumnElement[bool], ...]:
        """Of which value and how old outcome rows are, in a form that no index serves but that of the uids."""
        valued = value_among(self.dialect, func.coalesce(outcome.c.outcome, ""), values)
        # What was recorded before the range settled before it; its run may have been made in it.
        early = true() if self.start is None or self.range_of is RangeOf.RUN else outcome.c.crdate + 0 >= self.start
        return valued, outcome.c.correlation_id != "", early

    @property
    def dimensions(self) -> tuple[Dimension, ...]:
        """The dimensions it is grouped by, then those that :attr:`where` adds."""
        return tuple(dict.fromkeys([*self.grouping, *self.where]))

    def _labels(self) -> Labels:
        return Labels(self.dialect, self.collations, self.dimensions, self.site)

    def _counted(self, page: Sequence[ColumnElement[bool]] = ()) -> CTE:
        """
        The outcome rows that count: of a known value, in the range, one for each correlation id and source.

        :param page: which rows instead of all; they are few, and their runs are looked up one by one
        """
        every = (self._valued(outcome, [*EXPLICIT, *OBSERVED]), outcome.c.correlation_id != "")
        columns = (outcome.c.uid, outcome.c.correlation_id, outcome.c.outcome)
        if self.range_of is RangeOf.RUN and not page:
            runs = self._run_times()
            counted = (
                select(*columns, runs.c.at)
                .select_from(outcome.join(runs, self._same(outcome.c.correlation_id, runs.c.correlation_id)))
                .where(*every, ~self._superseded(outcome))
            )
            return counted.cte("counted")
        if not page and self.range_of is RangeOf.RECORDED:
            page = (*every, self._in_range(outcome.c.crdate))
        elif not page:
            # What was recorded before the range settled before it.
            page = every if self.start is None else (*every, outcome.c.crdate >= self.start)
        at = {RangeOf.OUTCOME: self._settled, RangeOf.RUN: self._made}.get(self.range_of, lambda: outcome.c.crdate)()
        # The offset keeps engines from writing the expression out, and asking for the run, once for each use.
        # With a limit beside it: SQLAlchemy 1.4 makes one for SQLite, and its parameter comes last of all.
        rows = select(*columns, at.label("at")).where(*page).limit(_ALL_ROWS).offset(0).cte("dated")
        return select(rows).where(self._in_range(rows.c.at), ~self._superseded(rows)).cte("counted")

    def _made(self) -> ColumnElement[Any]:
        """When an outcome's first run was made; NULL without one."""
        return (
            select(func.min(run.c.crdate))
            .where(self._same(run.c.uuid, outcome.c.correlation_id))
            .correlate(outcome)
            .scalar_subquery()
        )

    def _settled(self) -> ColumnElement[Any]:
        """
        When an observed outcome's run settled, as near as its own row tells; when a rating was given.

        A run writes nothing after it has ended, and settles a window after its last write at the latest. It had
        settled when its outcome was recorded. So it is the earlier of the two; of a purged run, the latter.
        """
        ended = (
            select(func.max(run.c.finished_at) + self.window)
            .where(self._same(run.c.uuid, outcome.c.correlation_id), run.c.finished_at > 0)
            .correlate(outcome)
            .scalar_subquery()
        )
        observed = self._valued(outcome, OBSERVED)
        return case(
            (observed, func.coalesce(self._least(ended, outcome.c.crdate), outcome.c.crdate)), else_=outcome.c.crdate
        )

    def _least(self, left: ColumnElement[Any], right: ColumnElement[Any]) -> ColumnElement[Any]:
        """Return the lesser of two numbers; NULL, or on PostgreSQL the other, if one of them is NULL."""
        return func.min(left, right) if self.dialect == "sqlite" else func.least(left, right)

    def _superseded(self, row: FromClause) -> ColumnElement[bool]:
        """
        ADR-176: at most one row for a correlation id and source, but no key forbids a second.

        The last rating replaces those before it, the first observed outcome is final.
        """
        other = outcome.alias("other")
        return exists(
            select(literal(1))
            .where(
                self._same(other.c.correlation_id, row.c.correlation_id),
                or_(
                    and_(self._valued(row, EXPLICIT), self._valued(other, EXPLICIT), other.c.uid > row.c.uid),
                    and_(self._valued(row, OBSERVED), self._valued(other, OBSERVED), other.c.uid < row.c.uid),
                ),
            )
            .correlate(row)
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

    def _same(self, left: ColumnElement[Any], right: ColumnElement[Any]) -> ColumnElement[bool]:
        return same_id(self.dialect, left, right, self.collations)

    def _valued(self, outcomes: FromClause, values: Sequence[str]) -> ColumnElement[bool]:
        # The plain comparison is for the index.
        column = outcomes.c.outcome
        exactly = value_among(self.dialect, column, values)
        return and_(column.in_(values), exactly) if self.dialect == "mysql" else exactly

    def _exact(self, text: ColumnElement[Any]) -> ColumnElement[Any]:
        return exact(self.dialect, text)


def _counts(table: FromClause) -> list[ColumnElement[Any]]:
    return [func.sum(case((table.c.outcome == str(value), 1), else_=0)).label(str(value)) for value in VALUES]
