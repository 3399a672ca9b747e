"""
One derivation in a process of its own: ``python -m benchmarks.child '{"connection": ..., "start": ..., ...}'``.

Says ``ready`` when all is imported and connected, waits for a line, derives, and prints what it took as JSON.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlalchemy import event
from sqlalchemy.engine import Engine


def _memory(field: str) -> float:
    """Return a field of this process's memory, in MB (Linux)."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) / 1024
    raise KeyError(field)


def _count_connections(engine: Engine) -> list[int]:
    """Return a list to which each connection that is opened adds a 1."""
    opened: list[int] = []
    event.listen(engine, "connect", lambda *_: opened.append(1))
    return opened


def _to_connect(engine: Engine) -> float:
    """Return how many seconds it takes to open a connection and close it, on the average of ten."""
    begun = time.perf_counter()
    for _ in range(10):
        engine.connect().close()
    return (time.perf_counter() - begun) / 10


def main(job: dict[str, Any]) -> None:
    """Derive one partition."""
    with tempfile.TemporaryDirectory() as home:
        os.environ.update(
            AIRFLOW_HOME=home,
            AIRFLOW__CORE__UNIT_TEST_MODE="True",
            AIRFLOW__CORE__LOAD_EXAMPLES="False",
            AIRFLOW_CONN_NRLLM_BENCHMARK=json.dumps(job["connection"]),
        )
        from airflow_provider_nrllm.operators.outcomes import NrLlmDeriveOutcomesOperator

        moments = [at and datetime.fromtimestamp(at, UTC) for at in (job["start"], job["end"])]
        operator = NrLlmDeriveOutcomesOperator(
            task_id="derive",
            nrllm_conn_id="nrllm_benchmark",
            interval_start=moments[0],
            interval_end=moments[1],
            **({"page_size": job["page_size"]} if job.get("page_size") else {}),
        )
        logging.disable(logging.INFO)
        works, message = operator.hook.test_connection()
        assert works, message
        print("ready", flush=True)
        sys.stdin.readline()
        connected = _count_connections(operator.hook.database.engine)
        # Forget the peak of the imports.
        Path("/proc/self/clear_refs").write_text("5")
        before, begun = _memory("VmRSS"), time.perf_counter()
        result = operator.execute({})
        taken = time.perf_counter() - begun
        peak = _memory("VmHWM")
        found = {"seconds": taken, "runs": result["runs_answered"], "peak": peak, "own": peak - before}
        print(json.dumps({**found, "connecting": sum(connected) * _to_connect(operator.hook.database.engine)}))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
