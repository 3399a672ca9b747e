"""Reading the outcomes of a range of time, each with its run and calls, a page at a time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy.engine import Connection

from airflow_provider_nrllm.database.site import SiteDatabase
from airflow_provider_nrllm.outcomes.rules import EXPLICIT, OBSERVED
from airflow_provider_nrllm.scores import statements
from airflow_provider_nrllm.scores.rules import Call, Outcome, RunRow, Score, Trace, score_of, trace_of


@dataclass(frozen=True, slots=True)
class Page:
    """
    Some outcomes, as scores and traces.

    :param traces: of the correlation ids that have a run or a call, unless a page before had them
    :param without_trace_id: how many outcomes have a correlation id that is no UUID
    """

    scores: Sequence[Score]
    traces: Sequence[Trace]
    without_trace_id: int


def read_pages(database: SiteDatabase, start: int | None, end: int, page_size: int) -> Iterator[Page]:
    """
    Yield the outcomes recorded in ``[start, end)``, by value and time, in pages; memory does not grow with them.

    A page is read in a snapshot of its own, which is closed before the page is yielded.

    :param page_size: the most outcomes of a page
    """
    for value in (*OBSERVED, *EXPLICIT):
        after: tuple[int, int] | None = None
        while True:
            with database.snapshot() as connection:
                dialect = connection.dialect.name
                rows = connection.execute(
                    statements.outcomes_after(dialect, value, start, end, after, page_size)
                ).fetchall()
                outcomes = [Outcome(uid, correlation_id, value, at) for uid, correlation_id, at in rows]
                ids = sorted({outcome.correlation_id for outcome in outcomes})
                sent: set[str] = set()
                if value in EXPLICIT and ids:
                    query = statements.observed_among(dialect, ids, start, end)
                    sent = set(connection.execute(query).scalars())
                page = _page_of(connection, outcomes, ids, sent)
            if outcomes:
                yield page
            if len(outcomes) < page_size:
                break
            after = outcomes[-1].at, outcomes[-1].uid


def _page_of(connection: Connection, outcomes: Sequence[Outcome], ids: Sequence[str], sent: Collection[str]) -> Page:
    runs: dict[str, list[RunRow]] = defaultdict(list)
    calls: dict[str, list[Call]] = defaultdict(list)
    if ids:
        for row in connection.execute(statements.runs_of(ids)).mappings():
            runs[row["uuid"]].append(_run(row))
        for row in connection.execute(statements.calls_of(ids)).mappings():
            calls[row["correlation_id"]].append(_call(row))
    # To the letter, also where the database takes other ids for the same.
    found = [trace_of(each, runs.get(each, ()), calls.get(each, ())) for each in ids]
    traces = [trace for trace in found if trace]
    since = {trace.correlation_id: trace.start_ns // 10**9 for trace in traces}
    scores = [score_of(outcome, since.get(outcome.correlation_id)) for outcome in outcomes]
    known = [score for score in scores if score]
    unsent = [trace for trace in traces if trace.correlation_id not in sent]
    return Page(known, unsent, len(scores) - len(known))


def _run(row: Any) -> RunRow:
    return RunRow(
        uid=row["uid"],
        uuid=row["uuid"],
        status=row["status"] or "",
        start=row["started_at"] or row["crdate"] or 0,
        end=row["finished_at"] or 0,
        configuration=row["configuration_identifier"] or "",
        input_tokens=row["total_prompt_tokens"] or 0,
        output_tokens=row["total_completion_tokens"] or 0,
        cost=row["estimated_cost"],
    )


def _call(row: Any) -> Call:
    texts = ("operation", "provider", "model", "served_provider", "served_model", "response_model")
    return Call(
        uid=row["uid"],
        correlation_id=row["correlation_id"],
        **{name: row[name] or "" for name in texts},
        configuration=row["configuration_identifier"] or "",
        served_configuration=row["served_configuration_identifier"] or "",
        success=bool(row["success"]),
        at=row["crdate"] or 0,
        latency_ms=row["latency_ms"] or 0,
        input_tokens=row["actual_input_tokens"],
        output_tokens=row["actual_output_tokens"],
        cost=row["actual_cost"],
    )
