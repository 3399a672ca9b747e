"""
The demo's TYPO3 site in SQLite, and the example DAGs run on it by Airflow.

The site holds stories that editors' work on AI-written records can take, carried out by TYPO3 itself; their times are
moved so that the last of them is of today. The models, what they cost and the ratings are made up.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from sqlalchemy import create_engine
from sqlalchemy.engine import Engine

from tests.typo3.loader import load_typo3
from tests.typo3.readouts import calls, outcome
from tests.typo3.tables import create_tables

ROOT = Path(__file__).parent.parent
HOME = Path(os.environ.get("DEMO_HOME", ROOT / ".demo")).absolute()
DATABASE = HOME / "typo3.sqlite"
READOUTS = HOME / "readouts"
LOG = HOME / "airflow.log"

#: The connection to the site, by its id.
CONNECTIONS = {"nrllm_default": {"conn_type": "sqlite", "host": str(DATABASE)}}

_MODELS = ("larch-large", "larch-small")


def case() -> dict[str, Any]:
    """Return what TYPO3 wrote."""
    data: dict[str, Any] = json.loads((ROOT / "tests" / "cases" / "typo3_13.4.18.json").read_text())
    return data


def site() -> Engine:
    """Return an engine of the site."""
    return create_engine(f"sqlite:///{DATABASE}")


def build() -> bool:
    """Build the site, unless an earlier demo did; return whether it was built."""
    if DATABASE.exists():
        return False
    HOME.mkdir(exist_ok=True)
    # Beside its place, and moved there when it is whole.
    unfinished = DATABASE.with_suffix(".new")
    unfinished.unlink(missing_ok=True)
    engine = create_engine(f"sqlite:///{unfinished}")
    create_tables(engine)
    data, now = case(), int(time.time())
    load_typo3(engine, data, offset=now - data["now"])
    _add_models(engine, [row["uuid"] for row in data["tables"]["tx_nrllm_agentrun"]], now)
    engine.dispose()
    unfinished.rename(DATABASE)
    return True


def derive() -> None:
    """Derive outcomes and read them by model, in an Airflow of the demo's own, which logs to a file."""
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("AIRFLOW")},
        "AIRFLOW_HOME": str(HOME / "airflow"),
        "AIRFLOW__CORE__DAGS_FOLDER": str(ROOT / "dags"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__DATABASE__LOAD_DEFAULT_CONNECTIONS": "False",
        "AIRFLOW__NRLLM__READOUT_PATH": str(READOUTS),
        **{f"AIRFLOW_CONN_{name.upper()}": json.dumps(fields) for name, fields in CONNECTIONS.items()},
    }
    with LOG.open("w") as log:
        done = subprocess.run(
            [sys.executable, "-m", "demo.derive"],
            cwd=ROOT,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            check=False,
        )
    if done.returncode:
        last = "".join(LOG.read_text(errors="replace").splitlines(keepends=True)[-15:])
        sys.exit(f"{last}\nThe DAGs did not run to their end; Airflow's log is {shown(LOG)}.")


def shown(path: Path) -> str:
    """Return a path as it is typed here."""
    return os.path.relpath(path)


def _add_models(engine: Engine, uuids: list[str], now: int) -> None:
    """Lay the calls of the runs to models into the site, and ratings of some."""
    with engine.begin() as connection:
        for number, uuid in enumerate(uuids):
            large = number % 5 < 3
            calls(
                connection,
                uuid,
                _MODELS[0] if large else _MODELS[1],
                crdate=now,
                actual_cost=0.012 if large else 0.002,
                latency_ms=2400 + 37 * number if large else 800 + 11 * number,
            )
            if number % 3 == 0:
                outcome(connection, uuid, "not_helpful" if number % 4 == 0 else "helpful", now)
