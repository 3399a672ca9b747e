"""
The demo: a TYPO3 site in SQLite, the example DAG run on it by Airflow, and what became of each AI run.

The site holds 34 stories that editors' work on AI-written records can take, carried out by TYPO3 itself; their
times are moved so that the last of them is of today. ``make demo`` runs this; run again, it keeps the site.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from sqlalchemy import create_engine, select

from tests.typo3.loader import load_typo3
from tests.typo3.tables import create_tables, outcome_rows, run

ROOT = Path(__file__).parent.parent
HOME = ROOT / ".demo"
DATABASE = HOME / "typo3.sqlite"
LOG = HOME / "airflow.log"


def main() -> None:
    """Build the site if there is none, have Airflow derive, and print what came of it."""
    data: dict[str, Any] = json.loads((ROOT / "tests" / "cases" / "typo3_13.4.18.json").read_text())
    if DATABASE.exists():
        print(f"The site of an earlier demo is used again: {_shown(DATABASE)}")
    else:
        _build(data)
        print(f"A TYPO3 {data['typo3']} site was built: {_shown(DATABASE)}")
    site = create_engine(f"sqlite:///{DATABASE}")
    before = outcome_rows(site)
    print("Airflow runs the DAG nrllm_observed_outcomes ...", flush=True)
    _derive()
    after = outcome_rows(site)

    became = dict(after)
    with site.connect() as connection:
        uuids = [uuid for (uuid,) in connection.execute(select(run.c.uuid).order_by(run.c.uuid)) if uuid]
    width = max(map(len, uuids)) + 2
    print(f"\n{'AI run':{width}}{'what became of it':20}what really happened")
    for uuid in uuids:
        happened = data["what_happened"].get(uuid, "(a second run, which is part of another's story)")
        print(f"{uuid:{width}}{became.get(uuid, 'not yet'):20}{happened}")
    print("\nWhere the two differ, TYPO3's history cannot tell, or the rules say so:")
    print("docs/explanation/how-outcomes-are-derived.md, What stays coarse\n")
    for outcome, count in sorted(Counter(became.values()).items()):
        print(f"{count:3} {outcome}")
    if open_still := sum(uuid not in became for uuid in uuids):
        print(f"{open_still:3} not yet: the window of {data['window_days']} days is still open")
    added = len(after) - len(before)
    print(f"\nAdded now: {added or 'nothing, for all that has settled was answered before'}.")
    print(f"The outcomes are in the table tx_nrllm_call_outcome of {_shown(DATABASE)}.")
    print(f"Airflow's log is {_shown(LOG)}.")


def _shown(path: Path) -> str:
    return os.path.relpath(path)


def _build(data: dict[str, Any]) -> None:
    """Build the site beside its place, and move it there when it is whole."""
    HOME.mkdir(exist_ok=True)
    unfinished = DATABASE.with_suffix(".new")
    unfinished.unlink(missing_ok=True)
    site = create_engine(f"sqlite:///{unfinished}")
    create_tables(site)
    load_typo3(site, data, offset=int(time.time()) - data["now"])
    site.dispose()
    unfinished.rename(DATABASE)


def _derive() -> None:
    """Run the example DAG in an Airflow of the demo's own, which logs to a file."""
    airflow_home = HOME / "airflow"
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("AIRFLOW")},
        "AIRFLOW_HOME": str(airflow_home),
        "AIRFLOW__CORE__DAGS_FOLDER": str(ROOT / "dags"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__DATABASE__LOAD_DEFAULT_CONNECTIONS": "False",
        "AIRFLOW_CONN_NRLLM_DEFAULT": json.dumps({"conn_type": "sqlite", "host": str(DATABASE)}),
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
        sys.exit(f"{last}\nThe DAG did not run to its end; Airflow's log is {_shown(LOG)}.")


if __name__ == "__main__":
    main()
