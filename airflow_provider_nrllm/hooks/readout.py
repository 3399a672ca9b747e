"""NrLlmReadoutHook: outcomes counted by the database, by what telemetry says of the calls."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime
from typing import Any

from sqlalchemy.engine import Connection

from airflow_provider_nrllm.database.catalog import collations_of
from airflow_provider_nrllm.database.hook import SiteHook
from airflow_provider_nrllm.database.requirements import Requirements
from airflow_provider_nrllm.outcomes.rules import ExplicitOutcome, ObservedOutcome
from airflow_provider_nrllm.readout.counts import (
    Explicit,
    Group,
    Observed,
    Period,
    RangeOf,
    Readout,
    Usage,
    in_order,
    pooled,
    together,
)
from airflow_provider_nrllm.readout.groups import Dimension, GroupKey
from airflow_provider_nrllm.readout.periods import PeriodWidth
from airflow_provider_nrllm.readout.reading import key_of, text_of
from airflow_provider_nrllm.readout.statements import ID_COLUMNS, VALUES, ReadoutStatements
from airflow_provider_nrllm.readout.telemetry import READOUT_TABLES


class NrLlmReadoutHook(SiteHook):
    """
    Read how outcomes are spread over models, configurations and the like.

    Writes nothing; reads no record content, no user id and no approval. Works over any Airflow connection of
    type ``mysql`` (MariaDB, MySQL), ``postgres`` or ``sqlite``.

    :param nrllm_conn_id: the Airflow connection to the TYPO3 database
    """

    hook_name = "nr_llm readout"
    requirements = Requirements(READOUT_TABLES, page="docs/how-to/read-outcomes-by-model.md")

    def readout(
        self,
        start: int | None,
        end: int,
        *,
        grouping: Sequence[Dimension],
        range_of: RangeOf = RangeOf.OUTCOME,
    ) -> Readout:
        """
        Count the outcomes of a range of time.

        At most four statements in one snapshot, whatever the number of outcomes; a row a group and period comes
        out of the database, never a row an outcome. A correlation id counts once in a source
        (ADR-176); if its calls name several models, under "several", and without calls, under "no telemetry".

        :param start: the first second of the range, None for an open one
        :param end: the first second after it
        :param grouping: by what to group: one dimension, or two for an arm
        :param range_of: ``outcome``: when the outcome was recorded; ``run``: when the run was made, which
            leaves out ratings without a run
        """
        with self.database.snapshot() as connection:
            collations = collations_of(connection, *ID_COLUMNS)
            statements = ReadoutStatements(connection.dialect.name, start, end, range_of, tuple(grouping), collations)
            first = start if start is not None else _first_time(connection, statements, end)
            width = PeriodWidth.of_range(first, end)
            usage = dict(_usage(connection, statements))
            periods = _periods(connection, statements, width)
            groups = in_order(
                Group(key, *pooled(own), usage.get(key, Usage()), periods=own) for key, own in periods.items()
            )
            without_run = 0
            if range_of is RangeOf.RUN:
                without_run = int(connection.execute(statements.ratings_without_run()).scalar_one())
        return Readout(
            start, end, range_of, tuple(grouping), groups, together(periods.values()), without_run, width=width
        )


def _first_time(connection: Connection, statements: ReadoutStatements, end: int) -> int:
    """Return when the first outcome was that counts; the end of the range where there is none."""
    found = connection.execute(statements.first_time()).scalar()
    return end if found is None else int(found)


def _periods(
    connection: Connection, statements: ReadoutStatements, width: PeriodWidth
) -> dict[GroupKey, tuple[Period, ...]]:
    """Return the outcomes of each group over time, in order."""
    found: dict[GroupKey, list[Period]] = {}
    for row in connection.execute(statements.outcomes_over_time(width)):
        *labels, period = row[: -len(VALUES)]
        found.setdefault(key_of(labels), []).append(Period(_first_day(period), *_sources(row[-len(VALUES) :])))
    return {key: tuple(sorted(periods, key=lambda period: period.first)) for key, periods in found.items()}


def _first_day(period: Any) -> date:
    """Return the first day of a period as the statement tells it: by a Unix time, a month as ``2026-03``."""
    told = text_of(period)
    return date.fromisoformat(f"{told}-01") if "-" in told[1:] else datetime.fromtimestamp(int(period), UTC).date()


def _usage(connection: Connection, statements: ReadoutStatements) -> Iterator[tuple[GroupKey, Usage]]:
    for *labels, calls, cost, cost_known, latency, latency_known in connection.execute(statements.usage_by_group()):
        yield (
            key_of(labels),
            Usage(int(calls), float(cost or 0), int(cost_known), float(latency or 0), int(latency_known)),
        )


def _sources(counts: Sequence[Any]) -> tuple[Explicit, Observed]:
    """Return the counts of ``VALUES``, the two sources apart."""
    by_value = {value: int(count) for value, count in zip(VALUES, counts, strict=True)}
    return (
        Explicit({value: by_value[value] for value in ExplicitOutcome}),
        Observed({value: by_value[value] for value in ObservedOutcome}),
    )
