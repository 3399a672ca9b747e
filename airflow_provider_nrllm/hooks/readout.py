"""NrLlmReadoutHook: outcomes counted by the database, by what telemetry says of the calls."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
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
from airflow_provider_nrllm.readout.groups import Dimension, Key, Kind, Label
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

    def keys_of(self, correlation_ids: Collection[str], grouping: Sequence[Dimension]) -> Mapping[str, Key]:
        """
        Return the group of each of the correlation ids, in one statement.

        :param correlation_ids: a page of them
        :param grouping: by what to group
        """
        untold = tuple(Label(Kind.NO_TELEMETRY) for _ in grouping)
        keys = dict.fromkeys(correlation_ids, untold)
        if not keys:
            return keys
        with self.database.snapshot() as connection:
            statements = ReadoutStatements(connection.dialect.name, None, 0, RangeOf.OUTCOME, tuple(grouping))
            for correlation_id, *labels in connection.execute(statements.labels_of_ids(sorted(correlation_ids))):
                keys[_text(correlation_id)] = _key(labels)
        return keys


def _groups(connection: Connection, statements: ReadoutStatements) -> Iterator[tuple[Key, Explicit, Observed]]:
    for row in connection.execute(statements.outcomes_by_group()):
        yield _key(row[: -len(VALUES)]), *_sources(row[-len(VALUES) :])


def _days(connection: Connection, statements: ReadoutStatements) -> Iterator[Day]:
    for day, *counts in connection.execute(statements.outcomes_by_day()):
        yield Day(datetime.fromtimestamp(int(day), UTC).date(), *_sources(counts))


def _usage(connection: Connection, statements: ReadoutStatements) -> Iterator[tuple[Key, Usage]]:
    for *labels, calls, cost, cost_known, latency, latency_known in connection.execute(statements.usage_by_group()):
        yield (
            _key(labels),
            Usage(int(calls), float(cost or 0), int(cost_known), float(latency or 0), int(latency_known)),
        )


def _sources(counts: Sequence[Any]) -> tuple[Explicit, Observed]:
    """Return the counts of :data:`VALUES`, the two sources apart."""
    by_value = {value: int(count) for value, count in zip(VALUES, counts, strict=True)}
    return (
        Explicit({value: by_value[value] for value in ExplicitOutcome}),
        Observed({value: by_value[value] for value in ObservedOutcome}),
    )


def _key(labels: Sequence[Any]) -> Key:
    """Return a group's key from its kinds and names in turn."""
    return tuple(
        Label(Kind(_text(kind)), _text(name) if _text(kind) == Kind.NAMED else "")
        for kind, name in zip(labels[::2], labels[1::2], strict=True)
    )


def _text(value: Any) -> str:
    """Return a text that may have come as bytes."""
    return bytes(value).decode("utf-8", "replace") if isinstance(value, bytes | bytearray | memoryview) else str(value)
