"""
The score of an outcome and the trace of a run, whatever the target.

Nothing here knows of Airflow or SQL. All times are Unix seconds, UTC. A score has its source in its name, so that
explicit and observed outcomes are never mixed; its value is the stored word, never a number (ADR-176).
"""

from __future__ import annotations

import hashlib
import re
import uuid
from collections.abc import Sequence
from dataclasses import dataclass

from airflow_provider_nrllm.outcomes.rules import EXPLICIT, OBSERVED

OBSERVED_NAME = "nrllm.observed"
EXPLICIT_NAME = "nrllm.explicit"

#: Makes the id of a score out of its trace and name; another one would double all scores that are there.
_NAMESPACE = uuid.UUID("6f1c1a52-6a3f-5b0e-9a57-0c6f5a3d7e11")
_UUID = re.compile(r"[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}", re.ASCII | re.IGNORECASE)
_NO_TRACE_ID = "0" * 32


@dataclass(frozen=True, slots=True)
class Outcome:
    """
    A row of the table of outcomes.

    :param at: when it was recorded
    """

    uid: int
    correlation_id: str
    value: str
    at: int


@dataclass(frozen=True, slots=True)
class RunRow:
    """
    A row of the table of runs, without what it was about and who started it.

    :param start: when it began
    :param end: when it ended; 0 until then
    """

    uid: int
    uuid: str
    status: str
    start: int
    end: int
    configuration: str
    input_tokens: int
    output_tokens: int
    cost: float | None


@dataclass(frozen=True, slots=True)
class Call:
    """
    A row of the telemetry: one call of a provider.

    :param at: when it was written, after the call
    :param latency_ms: how long the call took, in milliseconds
    :param cost: None where it was not measured
    """

    uid: int
    correlation_id: str
    operation: str
    provider: str
    model: str
    served_provider: str
    served_model: str
    response_model: str
    configuration: str
    served_configuration: str
    success: bool
    at: int
    latency_ms: int
    input_tokens: int | None
    output_tokens: int | None
    cost: float | None


@dataclass(frozen=True, slots=True)
class Trace:
    """
    The trace of a correlation id: its runs and its calls, of which there is at least one.

    :param id: 32 hexadecimal digits
    """

    id: str
    correlation_id: str
    runs: Sequence[RunRow]
    calls: Sequence[Call]

    @property
    def start_ns(self) -> int:
        """When the first of it began, in nanoseconds."""
        return min([*(run.start * 10**9 for run in self.runs), *map(call_start_ns, self.calls)])

    @property
    def end_ns(self) -> int:
        """When the last of it ended, in nanoseconds."""
        ends = [*(max(run.start, run.end) for run in self.runs), *(call.at for call in self.calls)]
        return max(ends) * 10**9


def call_start_ns(call: Call) -> int:
    """Return when a call began, in nanoseconds; its row was written when it ended."""
    return call.at * 10**9 - call.latency_ms * 10**6


@dataclass(frozen=True, slots=True)
class Score:
    """
    An outcome as a target stores it.

    :param id: the same whenever the same outcome is handed on, and when a rating is replaced
    :param name: :data:`OBSERVED_NAME` or :data:`EXPLICIT_NAME`
    :param value: the stored word
    :param at: when the outcome was recorded
    :param since: when its run began; None where no row tells
    """

    id: str
    trace_id: str
    name: str
    value: str
    correlation_id: str
    at: int
    since: int | None = None

    @property
    def by_human(self) -> bool:
        """Whether a person gave it (ADR-176)."""
        return self.name == EXPLICIT_NAME


def trace_id_of(correlation_id: str) -> str | None:
    """Return the trace id of a correlation id, a UUID without its dashes; None for any other text."""
    if not _UUID.fullmatch(correlation_id):
        return None
    digits = correlation_id.replace("-", "").lower()
    return None if digits == _NO_TRACE_ID else digits


def score_of(outcome: Outcome, since: int | None = None) -> Score | None:
    """
    Return the score of an outcome; None where its correlation id is no UUID, so that no trace can be its.

    :param since: when its run began
    :raises ValueError: for a value that this version does not know
    """
    if outcome.value not in (*EXPLICIT, *OBSERVED):
        raise ValueError("the outcome is of a value that this version does not know")
    trace_id = trace_id_of(outcome.correlation_id)
    if trace_id is None:
        return None
    name = EXPLICIT_NAME if outcome.value in EXPLICIT else OBSERVED_NAME
    score_id = uuid.uuid5(_NAMESPACE, f"{trace_id}/{name}").hex
    return Score(score_id, trace_id, name, outcome.value, outcome.correlation_id, outcome.at, since)


def trace_of(correlation_id: str, runs: Sequence[RunRow], calls: Sequence[Call]) -> Trace | None:
    """Return the trace of a correlation id; None without a run and a call, and where the id is no UUID."""
    trace_id = trace_id_of(correlation_id)
    if trace_id is None or not (runs or calls):
        return None
    return Trace(trace_id, correlation_id, tuple(runs), tuple(calls))


def span_id_of(trace_id: str, part: str) -> str:
    """Return the id of a part of a trace, the same whenever the trace is made: 16 hexadecimal digits."""
    return hashlib.sha256(f"{trace_id}/{part}".encode()).hexdigest()[:16]
