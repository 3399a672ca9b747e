"""
Langfuse: scores in batches, and traces as OTLP where they are asked for.

Pure. Langfuse overwrites a score of the same id, name and day of its timestamp, so all three stay the same
whenever an outcome is handed on. A score whose trace is not there is kept, and linked when the trace comes.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from airflow_provider_nrllm.scores import otlp
from airflow_provider_nrllm.scores.exchanges import Answer, Exchange, Fate, Fates, Request, send_in_parts
from airflow_provider_nrllm.scores.rules import Score, Trace

_PATH = "/api/public/scores"


class Langfuse:
    """A Langfuse project, which the keys of the connection name."""

    name = "langfuse"
    makes_traces = False
    batch_size = 100

    def check(self) -> Exchange[None]:
        """Look at nothing: the first request shows whether the keys are right."""
        yield from ()

    def traces(self, batch: Sequence[Trace]) -> Exchange[list[Trace]]:
        """Send traces in one request; Langfuse doubles the spans of a trace that is sent again."""
        headers = {"x-langfuse-ingestion-version": "4"}
        return send_in_parts(
            batch,
            lambda part: Request("POST", "/api/public/otel/v1/traces", otlp.traces_body(part), headers),
            otlp.taken_in_part,
        )

    def scores(self, batch: Sequence[Score]) -> Exchange[Fates]:
        """Send scores as a list, or one by one to a Langfuse that takes no list yet."""
        first = yield _list_request(batch)
        if first.status == 400:
            # Self-hosted version 3 takes one object.
            return (yield from _one_by_one(batch))
        if first.is_taken and not _taken_in_part(first):
            return [(score, Fate.SENT) for score in batch]
        refused = yield from send_in_parts(batch, _list_request, _taken_in_part)
        return [(score, Fate.REFUSED if score in refused else Fate.SENT) for score in batch]


def score_body(score: Score) -> dict[str, Any]:
    """
    Return a score as Langfuse takes it.

    A rating that is replaced is recorded anew, on another day; its timestamp is that of its run, which stays.
    """
    at = score.since if score.by_human and score.since is not None else score.at
    return {
        "id": score.id,
        "traceId": score.trace_id,
        "name": score.name,
        "value": score.value,
        "dataType": "CATEGORICAL",
        "metadata": {"nrllm.correlation_id": score.correlation_id},
        "timestamp": datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
    }


def _list_request(batch: Sequence[Score]) -> Request:
    return Request("POST", _PATH, [score_body(score) for score in batch])


def _taken_in_part(answer: Answer) -> bool:
    """Return whether some were rejected; status 207 has how many and why, never which."""
    return answer.status == 207 and bool(
        not isinstance(answer.body, dict) or answer.body.get("rejected") or answer.body.get("errors")
    )


def _one_by_one(batch: Sequence[Score]) -> Exchange[Fates]:
    fates: Fates = []
    for score in batch:
        answer = yield Request("POST", _PATH, score_body(score))
        fates.append((score, Fate.SENT if answer.is_taken else Fate.REFUSED))
    return fates
