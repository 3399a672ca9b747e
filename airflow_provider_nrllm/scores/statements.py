"""The SQL of outcomes that are handed on, and of the runs and calls that make their traces."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import and_, exists, literal, or_, select, true
from sqlalchemy.sql import ColumnElement, Select

from airflow_provider_nrllm.database.conditions import same_id, value_among
from airflow_provider_nrllm.database.tables import outcome
from airflow_provider_nrllm.outcomes.rules import EXPLICIT, OBSERVED
from airflow_provider_nrllm.scores.tables import run, telemetry


def outcomes_after(
    dialect: str, value: str, start: int | None, end: int, after: tuple[int, int] | None, limit: int
) -> Select[Any]:
    """
    A page of the outcomes of one value that were recorded in ``[start, end)``, by time and uid.

    An index serves it, and a page starts where the last one ended. Of several rows of a source for one correlation
    id only the one that holds is among them: the first observed outcome, and the last rating (ADR-176).

    :param after: time and uid of the last row of the page before
    :param limit: the most rows
    """
    at, uid = outcome.c.crdate, outcome.c.uid
    begun: ColumnElement[bool] = true() if start is None else at >= start
    if after is not None:
        begun = and_(at >= after[0], or_(at > after[0], uid > after[1]))
    other = outcome.alias("other")
    source = EXPLICIT if value in EXPLICIT else OBSERVED
    held_by_another = exists(
        select(literal(1)).where(
            same_id(dialect, other.c.correlation_id, outcome.c.correlation_id),
            value_among(dialect, other.c.outcome, source),
            other.c.uid > uid if source is EXPLICIT else other.c.uid < uid,
        )
    )
    return (
        select(uid, outcome.c.correlation_id, at)
        .where(
            outcome.c.outcome == value,
            value_among(dialect, outcome.c.outcome, [value]),
            begun,
            at < end,
            outcome.c.correlation_id != "",
            ~held_by_another,
        )
        .order_by(at, uid)
        .limit(limit)
    )


def observed_among(dialect: str, correlation_ids: Sequence[str], start: int | None, end: int) -> Select[Any]:
    """Those of some correlation ids that have an observed outcome recorded in ``[start, end)``."""
    begun: ColumnElement[bool] = true() if start is None else outcome.c.crdate >= start
    return select(outcome.c.correlation_id).where(
        outcome.c.correlation_id.in_(correlation_ids),
        value_among(dialect, outcome.c.outcome, OBSERVED),
        begun,
        outcome.c.crdate < end,
    )


def runs_of(correlation_ids: Sequence[str]) -> Select[Any]:
    """The runs of some correlation ids, by uid; on MySQL and MariaDB also those of ids that look alike."""
    columns = (column for column in run.c if column is not run.c.crdate)
    return select(*columns, run.c.crdate).where(run.c.uuid.in_(correlation_ids)).order_by(run.c.uid)


def calls_of(correlation_ids: Sequence[str]) -> Select[Any]:
    """The calls of some correlation ids, by uid; on MySQL and MariaDB also those of ids that look alike."""
    return select(telemetry).where(telemetry.c.correlation_id.in_(correlation_ids)).order_by(telemetry.c.uid)
