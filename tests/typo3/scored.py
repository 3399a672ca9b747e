"""Outcomes with a run and calls, laid into a site for tests that hand them on."""

from __future__ import annotations

import uuid
from typing import Any

from sqlalchemy import insert
from sqlalchemy.engine import Engine

from tests.typo3.tables import outcome, run, telemetry

AT = 1_780_000_000
WORDS = ("accepted_unchanged", "edited", "discarded", "unknown")


def uuid_of(number: int) -> str:
    """Return the uuid of the run of a number."""
    return str(uuid.UUID(int=number * 0x9E3779B97F4A7C15F39CC0605CEDC835 % 2**128))


def add_outcome(engine: Engine, correlation_id: str, value: str, at: int = AT) -> None:
    """Add an outcome."""
    with engine.begin() as connection:
        connection.execute(insert(outcome).values(correlation_id=correlation_id, outcome=value, crdate=at, tstamp=at))


def add_answered(engine: Engine, number: int, first: int = 1, *, at: int = AT) -> list[str]:
    """Add runs with two calls and an observed outcome each, and a rating for every third; return their uuids."""
    runs: list[dict[str, Any]] = []
    calls: list[dict[str, Any]] = []
    outcomes: list[dict[str, Any]] = []
    for each in range(first, first + number):
        uid, made = uuid_of(each), at - 7 * 86400
        runs.append(
            {
                "uid": each, "uuid": uid, "status": "completed", "crdate": made, "started_at": made,
                "finished_at": made + 20, "configuration_identifier": "news", "total_prompt_tokens": 900,
                "total_completion_tokens": 120, "estimated_cost": 0.01, "be_user": 4711,
            }
        )  # fmt: skip
        calls += [
            {
                "correlation_id": uid, "operation": "chat", "provider": "openai", "model": "asked",
                "served_provider": "openai", "served_model": f"model-{each % 3}", "response_model": "",
                "configuration_identifier": "news", "served_configuration_identifier": "news", "success": 1,
                "latency_ms": 1800, "actual_input_tokens": 450, "actual_output_tokens": 60, "actual_cost": 0.005,
                "crdate": made + 4 * call,
            }
            for call in (1, 2)
        ]  # fmt: skip
        values = [WORDS[each % 4], *(["helpful"] if each % 3 == 0 else [])]
        outcomes += [{"correlation_id": uid, "outcome": value, "crdate": at, "tstamp": at} for value in values]
    with engine.begin() as connection:
        for table, rows in ((run, runs), (telemetry, calls), (outcome, outcomes)):
            connection.execute(insert(table), rows)
    return [row["uuid"] for row in runs]
