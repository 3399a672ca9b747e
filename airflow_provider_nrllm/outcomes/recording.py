"""The SQL that records outcomes, and reads back what was recorded."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from sqlalchemy import BigInteger, delete, insert, literal, literal_column, select, union_all
from sqlalchemy.sql import Delete, Insert, Select

from airflow_provider_nrllm.database.conditions import same_id, value_among
from airflow_provider_nrllm.database.tables import outcome, run
from airflow_provider_nrllm.outcomes.rules import EXPLICIT, OBSERVED
from airflow_provider_nrllm.outcomes.statements import among


def lock_runs(uids: Iterable[int]) -> Select[Any]:
    """Lock the run rows, always in the order of their uids, so that two derivations cannot block each other."""
    return select(run.c.uid).where(among(run.c.uid, uids)).order_by(run.c.uid).with_for_update()


def observed_of(dialect: str, uuids: Collection[str]) -> Select[Any]:
    """The correlation ids that have an observed outcome."""
    return select(outcome.c.correlation_id).where(
        outcome.c.correlation_id.in_(sorted(uuids)), value_among(dialect, outcome.c.outcome, OBSERVED)
    )


def insert_observed(runs: Mapping[str, Collection[int]], now: int) -> Insert:
    """
    Insert an outcome for each of the runs: the database takes the uuids from their rows.

    :param runs: the uids of the runs by outcome, one run of each uuid
    """
    columns = ("pid", "correlation_id", "outcome", "crdate", "tstamp")
    # A parameter: with the second in its text, a statement would be compiled, and kept, for each page.
    stamp = literal(now, BigInteger)
    rows = [
        select(literal_column("0"), run.c.uuid, literal(value), stamp, stamp).where(among(run.c.uid, uids))
        for value, uids in sorted(runs.items())
    ]
    return insert(outcome).from_select(columns, union_all(*rows) if len(rows) > 1 else rows[0])


def outcome_rows(outcomes: Mapping[str, str], now: int) -> list[dict[str, Any]]:
    """Return the rows to insert into the outcome table, one for each correlation id."""
    return [
        {"pid": 0, "correlation_id": correlation_id, "outcome": str(value), "crdate": now, "tstamp": now}
        for correlation_id, value in outcomes.items()
    ]


def claim_outcomes() -> tuple[Insert, Delete]:
    """
    Write and delete a row of uid 0, so that of the transactions that do so at once a cluster lets one commit.

    Its nodes do not share locks, but certify by primary keys what a transaction wrote. No other transaction sees
    the row, and the next uid stays what it was.
    """
    row = {"uid": 0, "pid": 0, "correlation_id": "", "outcome": "", "crdate": 0, "tstamp": 0}
    return insert(outcome).values(row), delete(outcome).where(outcome.c.uid == 0)


def delete_ratings(dialect: str, correlation_id: str) -> Delete:
    """The explicit outcomes of a correlation id; the observed one stays."""
    return delete(outcome).where(
        same_id(dialect, outcome.c.correlation_id, literal(correlation_id)),
        value_among(dialect, outcome.c.outcome, EXPLICIT),
    )


def outcomes_of(dialect: str, correlation_id: str) -> Select[Any]:
    """The values of all outcomes of a correlation id, the oldest first."""
    return (
        select(outcome.c.outcome)
        .where(same_id(dialect, outcome.c.correlation_id, literal(correlation_id)))
        .order_by(outcome.c.uid)
    )
