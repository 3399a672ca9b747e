"""
A site whose runs all have an outcome, over three years: what a long readout reads.

The same from the same number. A run has one write and two calls, one run in ten is rated as well; eight models in
four configurations, of which one gets worse.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from random import Random
from uuid import UUID

from airflow_provider_nrllm.outcomes.rules import EXPLICIT, OBSERVED
from tests.typo3.year import BEGIN, DAY, Values

LENGTH = 3 * 365 * DAY
#: The first second after all outcomes.
AFTER = BEGIN + LENGTH + 60 * DAY
WINDOW = 7 * DAY

RUN_COLUMNS = ("uid", "uuid", "status", "be_user", "configuration_identifier", "finished_at", "tstamp", "crdate")
EVENT_COLUMNS = ("uid", "run", "sequence", "kind", "round", "payload", "crdate")
OUTCOME_COLUMNS = ("uid", "correlation_id", "outcome", "crdate", "tstamp")
CALL_COLUMNS = ("uid", "correlation_id", "operation", "model", "served_model", "configuration_identifier", "success",
                "latency_ms", "actual_cost", "crdate")  # fmt: skip
HISTORY_COLUMNS = ("uid", "tstamp", "actiontype", "userid", "recuid", "tablename", "history_data", "workspace")
RECORD_COLUMNS = ("uid", "pid", "tstamp", "crdate", "deleted")


class Answered:
    """
    The rows of the site, table by table.

    :param runs: how many runs there are, each with an observed outcome
    """

    def __init__(self, runs: int) -> None:
        self.runs = runs

    def rows(self) -> Iterator[tuple[str, tuple[str, ...], Iterable[Values]]]:
        """Yield each table's name, the columns that are given, and its rows in the order of their uids."""
        runs = [(n, f"configuration-{n % 4}") for n in range(self.runs)]
        yield (
            "tx_nrllm_agentrun",
            RUN_COLUMNS,
            (
                (n + 1, uuid(n), "completed", n % 50, name, self.made(n) + 60, self.made(n) + 60, self.made(n))
                for n, name in runs
            ),
        )
        yield (
            "tx_nrllm_agentrun_event",
            EVENT_COLUMNS,
            ((n + 1, n + 1, 1, "tool_write", 1, payload(n), self.made(n) + 30) for n, _ in runs),
        )
        yield (
            "tx_nrllm_telemetry",
            CALL_COLUMNS,
            (
                (2 * n + call, uuid(n), "chat", model(n), model(n), name, 1, 900, "0.00100000", self.made(n))
                for n, name in runs
                for call in (1, 2)
            ),
        )
        yield "tx_nrllm_call_outcome", OUTCOME_COLUMNS, self._outcomes()
        yield (
            "sys_history",
            HISTORY_COLUMNS,
            ((n + 1, self.made(n) + 29, 2, 7, n + 1, "tt_content", "{}", 0) for n, _ in runs),
        )
        yield "tt_content", RECORD_COLUMNS, ((n + 1, 1, self.made(n) + 29, self.made(n), 0) for n, _ in runs)

    def made(self, n: int) -> int:
        """Return when a run was made."""
        return BEGIN + n * LENGTH // self.runs

    def _outcomes(self) -> Iterator[Values]:
        uid = 0
        for n in range(self.runs):
            random, recorded = Random(n), self.made(n) + WINDOW + DAY
            worse = 30 * n // self.runs if n % 8 == 0 else 0
            (value,) = random.choices(OBSERVED, (60 - worse, 20 + worse, 10, 10))
            uid += 1
            yield uid, uuid(n), value, recorded, recorded
            if n % 10 == 0:
                uid += 1
                yield uid, uuid(n), random.choice(EXPLICIT), recorded, recorded


def uuid(n: int) -> str:
    """Return the uuid of a run, in an order that no index follows."""
    return str(UUID(int=(n + 1) * 0x9E3779B97F4A7C15F39CC0605CEDC835 % 2**128))


def model(n: int) -> str:
    """Return the model of a run."""
    return f"model-{n // 4 % 8}"


def payload(n: int) -> str:
    """Return the payload of a run's write."""
    named = {"writeTargetTable": "tt_content", "writeTargetUid": n + 1}
    return json.dumps({"kind": "tool_write", "round": 1, "toolName": "update_content", **named})
