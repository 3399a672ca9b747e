"""Reading a readout: what the statements return, as counts, groups and pages of outcomes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

from sqlalchemy.engine import Connection

from airflow_provider_nrllm.database.catalog import collations_of
from airflow_provider_nrllm.outcomes.rules import ExplicitOutcome, ObservedOutcome
from airflow_provider_nrllm.readout.counts import Explicit, Observed, Period, RangeOf, Usage
from airflow_provider_nrllm.readout.coverage import ANSWERED_WITHIN, Coverage
from airflow_provider_nrllm.readout.groups import Dimension, GroupKey, Kind, Label
from airflow_provider_nrllm.readout.labelling import USAGE
from airflow_provider_nrllm.readout.periods import PeriodWidth
from airflow_provider_nrllm.readout.statements import ID_COLUMNS, VALUES, ReadoutStatements


def statements_of(
    connection: Connection,
    start: int | None,
    end: int,
    range_of: RangeOf,
    grouping: Sequence[Dimension],
    where: Mapping[Dimension, Sequence[str]] | None,
    window: int,
    site: str,
) -> ReadoutStatements:
    """Return the statements of a readout or an audit of a site; the other parameters are those of the hooks."""
    return ReadoutStatements(
        connection.dialect.name,
        start,
        end,
        range_of,
        tuple(grouping),
        collations_of(connection, *ID_COLUMNS),
        dict(where or {}),
        window,
        site,
    )


def read_first_time(connection: Connection, statements: ReadoutStatements) -> int:
    """Return when the first outcome was that counts; the end of the range where there is none."""
    found = connection.execute(statements.first_time()).scalar_one_or_none()
    return statements.end if found is None else int(found)


def read_periods(
    connection: Connection, statements: ReadoutStatements, width: PeriodWidth
) -> dict[GroupKey, tuple[Period, ...]]:
    """Return the outcomes of each group over time, in order."""
    found: dict[GroupKey, list[Period]] = {}
    labels = 2 * len(statements.grouping)
    for row in connection.execute(statements.outcomes_over_time(width)):
        period = Period(_first_day(row[labels]), *_sources(row[labels + 1 :]))
        found.setdefault(key_of(row[:labels]), []).append(period)
    return {key: tuple(sorted(periods, key=lambda period: period.first)) for key, periods in found.items()}


def read_coverage(connection: Connection, statements: ReadoutStatements, now: int) -> Coverage:
    """
    Return how many of the runs made in the range have an outcome.

    :param now: the moment of asking
    """
    row = connection.execute(statements.coverage(now - ANSWERED_WITHIN)).one()
    return Coverage(*(int(count or 0) for count in row))


@dataclass(frozen=True, slots=True)
class Answered:
    """
    One outcome that counts.

    :param uid: of its row
    :param at: its time, by which it is in the range
    :param key: its group
    """

    uid: int
    correlation_id: str
    outcome: str
    at: int
    key: GroupKey


def read_answered(
    connection: Connection, statements: ReadoutStatements, after: int, limit: int, values: Sequence[str]
) -> tuple[list[Answered], int | None]:
    """
    Return a page of the outcomes that count, and after which uid the next one begins; None after the last.

    :param after: the uid of the last row of the page before
    :param limit: the most rows of the page, before those are left out that do not count
    :param values: the outcomes that are asked for
    """
    last, rows = connection.execute(statements.page_after(after, limit, values)).one()
    if last is None:
        return [], None
    answered = []
    for uid, correlation_id, value, at, *labels in connection.execute(
        statements.outcomes_between(after, int(last), values)
    ):
        key = _key_among(statements, labels)
        if key is not None:
            answered.append(Answered(int(uid), text_of(correlation_id), text_of(value), int(at), key))
    return answered, int(last) if rows == limit else None


def key_of(labels: Sequence[Any]) -> GroupKey:
    """Return a group's key from its kinds and names in turn."""
    return tuple(
        Label(Kind(text_of(kind)), text_of(name) if text_of(kind) == Kind.NAMED else "")
        for kind, name in zip(labels[::2], labels[1::2], strict=True)
    )


def text_of(value: Any) -> str:
    """Return a text that may have come as bytes."""
    return bytes(value).decode("utf-8", "replace") if isinstance(value, bytes | bytearray | memoryview) else str(value)


def _key_among(statements: ReadoutStatements, labels: Sequence[Any]) -> GroupKey | None:
    """Return a group's key from the labels of :attr:`ReadoutStatements.dimensions`; None if it does not count."""
    told: dict[Dimension, Label] = dict(zip(statements.dimensions, key_of(labels), strict=True))
    for dimension, names in statements.where.items():
        if told[dimension].kind is not Kind.NAMED or told[dimension].name not in names:
            return None
    return tuple(told[dimension] for dimension in statements.grouping)


def _first_day(period: Any) -> date:
    """Return the first day of a period as the statement tells it: by a Unix time, a month as ``2026-03``."""
    told = text_of(period)
    return date.fromisoformat(f"{told}-01") if "-" in told[1:] else datetime.fromtimestamp(int(period), UTC).date()


def _sources(row: Sequence[Any]) -> tuple[Explicit, Observed]:
    """Return the counts of :data:`VALUES` and what the calls took, the two sources apart."""
    counts = {value: int(count) for value, count in zip(VALUES, row, strict=False)}
    usage = row[len(VALUES) :]
    return (
        Explicit({value: counts[value] for value in ExplicitOutcome}, _usage(usage[: len(USAGE)])),
        Observed({value: counts[value] for value in ObservedOutcome}, _usage(usage[len(USAGE) :])),
    )


def _usage(row: Sequence[Any]) -> Usage:
    calls, cost, cost_known, latency, latency_known = row
    return Usage(int(calls or 0), float(cost or 0), int(cost_known or 0), float(latency or 0), int(latency_known or 0))
