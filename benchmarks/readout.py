"""
How long a readout of three years takes, and what it writes: ``python -m benchmarks.readout --runs 1000000``.

Each is made in a process of its own, by Airflow's operator, over a site whose runs all have an outcome.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.answered import AFTER, Answered
from benchmarks.servers import ENGINES, KeptSite
from tests.typo3.year import BEGIN

#: What is asked of the operator.
QUESTIONS: dict[str, dict[str, Any]] = {
    "one dimension": {"group_by": "served_model"},
    "two dimensions": {"group_by": ["configuration", "served_model"]},
    "with runs": {"group_by": "served_model", "runs": True},
    "with both audits": {"group_by": "served_model", "edited_audit": True},
}


def child(job: dict[str, Any]) -> None:
    """Make one readout and print what it took as JSON."""
    with tempfile.TemporaryDirectory() as home:
        os.environ.update(
            AIRFLOW_HOME=home,
            AIRFLOW__CORE__UNIT_TEST_MODE="True",
            AIRFLOW__CORE__LOAD_EXAMPLES="False",
            AIRFLOW_CONN_NRLLM_BENCHMARK=json.dumps(job["connection"]),
        )
        from sqlalchemy import event
        from sqlalchemy.engine import Engine

        from airflow_provider_nrllm.operators.readout import NrLlmOutcomeReadoutOperator

        statements: list[str] = []
        event.listen(Engine, "before_cursor_execute", lambda *told: statements.append(told[2]))
        operator = NrLlmOutcomeReadoutOperator(
            task_id="readout",
            nrllm_conn_id="nrllm_benchmark",
            interval_start=datetime.fromtimestamp(job["start"], UTC),
            interval_end=datetime.fromtimestamp(job["end"], UTC),
            output_path=f"{home}/readout",
            **job["question"],
        )
        logging.disable(logging.INFO)
        begun = time.perf_counter()
        operator.execute({})
        taken = time.perf_counter() - begun
        peak = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
        sizes = {path.name: path.stat().st_size for path in Path(home, "readout").iterdir()}
        of_the_site = [
            statement
            for statement in statements
            if statement.startswith(("SELECT", "WITH"))
            and not any(catalogue in statement for catalogue in ("information_schema", "sqlite_master"))
        ]
        print(
            json.dumps(
                {"seconds": round(taken, 1), "statements": len(of_the_site), "peak MB": int(peak.split()[1]) // 1024}
                | sizes
            )
        )


def main() -> None:
    """Build the sites that are not there yet, and print what was measured."""
    parser = argparse.ArgumentParser(description=__doc__.strip().partition("\n")[0])
    parser.add_argument("--runs", type=int, default=1_000_000)
    parser.add_argument("--engines", nargs="+", choices=ENGINES, default=ENGINES)
    parser.add_argument("--only", nargs="+", choices=tuple(QUESTIONS), default=tuple(QUESTIONS))
    parser.add_argument("--build", action="store_true", help="build the sites and measure nothing")
    arguments = parser.parse_args()
    for engine in arguments.engines:
        site = KeptSite(engine, arguments.runs, Answered)
        try:
            for name in arguments.only if not arguments.build else ():
                job = {"connection": site.connection, "start": BEGIN, "end": AFTER, "question": QUESTIONS[name]}
                command = [sys.executable, "-W", "ignore", "-m", "benchmarks.readout", "--child", json.dumps(job)]
                done = subprocess.run(command, capture_output=True, text=True, check=True)
                print(
                    json.dumps({"engine": engine, "what": name, **json.loads(done.stdout.splitlines()[-1])}), flush=True
                )
        finally:
            site.close()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(json.loads(sys.argv[2]))
    else:
        main()
