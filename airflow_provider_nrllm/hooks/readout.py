"""NrLlmReadoutHook: outcomes counted by the database, by what telemetry says of the calls."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

from airflow.providers.common.compat.sdk import BaseHook
from sqlalchemy.engine import Connection

from airflow_provider_nrllm.database.site import SiteDatabase
from airflow_provider_nrllm.outcomes.rules import ExplicitOutcome, ObservedOutcome
from airflow_provider_nrllm.readout.counts import (
    Day,
    Explicit,
    Group,
    Observed,
    RangeOf,
    Readout,
    Usage,
    in_order,
)
from airflow_provider_nrllm.readout.groups import Dimension, Key
from airflow_provider_nrllm.readout.reading import key_of
from airflow_provider_nrllm.readout.statements import VALUES, ReadoutStatements
from airflow_provider_nrllm.readout.telemetry import READOUT_TABLES


class NrLlmReadoutHook(BaseHook):
    """
    Read how outcomes are spread over models, configurations and the like.

    Writes nothing; reads no record content, no user id and no approval. Works over any Airflow connection of
    type ``mysql`` (MariaDB, MySQL), ``postgres`` or ``sqlite``.

    :param nrllm_conn_id: the Airflow connection to the TYPO3 database
    """

    conn_name_attr = "nrllm_conn_id"
    default_conn_name = "nrllm_default"
    hook_name = "nr_llm readout"

    def __init__(self, nrllm_conn_id: str = default_conn_name, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.nrllm_conn_id = nrllm_conn_id

    @cached_property
    def database(self) -> SiteDatabase:
        """The database behind the connection."""
        return SiteDatabase(self.nrllm_conn_id, required=READOUT_TABLES)

    def get_conn(self) -> Any:
        """Return a plain DB-API connection, as the Airflow hook of the connection opens it."""
        return self.database.engine.raw_connection()

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

        At most four statements in one snapshot, whatever the number of outcomes; a row a group and a row a
        day come out of the database, never a row an outcome. A correlation id counts once in a source
        (ADR-176); if its calls name several models, under "several", and without calls, under "no telemetry".

        :param start: the first second of the range, None for an open one
        :param end: the first second after it
        :param grouping: by what to group: one dimension, or two for an arm
        :param range_of: ``outcome``: when the outcome was recorded; ``run``: when the run was made, which
            leaves out ratings without a run
        """
        with self.database.snapshot() as connection:
            statements = ReadoutStatements(connection.dialect.name, start, end, range_of, tuple(grouping))
            usage = dict(_usage(connection, statements))
            groups = in_order(
                Group(key, explicit, observed, usage.get(key, Usage()))
                for key, explicit, observed in _groups(connection, statements)
            )
            days = tuple(_days(connection, statements))
            without_run = 0
            if range_of is RangeOf.RUN:
                without_run = int(connection.execute(statements.ratings_without_run()).scalar_one())
        return Readout(start, end, range_of, tuple(grouping), groups, days, without_run)


def _groups(connection: Connection, statements: ReadoutStatements) -> Iterator[tuple[Key, Explicit, Observed]]:
    for row in connection.execute(statements.outcomes_by_group()):
        yield key_of(row[: -len(VALUES)]), *_sources(row[-len(VALUES) :])


def _days(connection: Connection, statements: ReadoutStatements) -> Iterator[Day]:
    for day, *counts in connection.execute(statements.outcomes_by_day()):
        yield Day(datetime.fromtimestamp(int(day), UTC).date(), *_sources(counts))


def _usage(connection: Connection, statements: ReadoutStatements) -> Iterator[tuple[Key, Usage]]:
    for *labels, calls, cost, cost_known, latency, latency_known in connection.execute(statements.usage_by_group()):
        yield (
            key_of(labels),
            Usage(int(calls), float(cost or 0), int(cost_known), float(latency or 0), int(latency_known)),
        )


def _sources(counts: Sequence[Any]) -> tuple[Explicit, Observed]:
    """Return the counts of :data:`VALUES`, the two sources apart."""
    by_value = {value: int(count) for value, count in zip(VALUES, counts, strict=True)}
    return (
        Explicit({value: by_value[value] for value in ExplicitOutcome}),
        Observed({value: by_value[value] for value in ObservedOutcome}),
    )
