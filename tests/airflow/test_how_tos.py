"""
The commands of the how-tos, as written, on an Airflow whose schedules make the runs: each DAG gets past the day.

Airflow 2.11 has neither ``airflow backfill`` nor a run without a date; test_backfill.py runs its own command.
"""

from __future__ import annotations

import json
import re
import shlex
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote
from urllib.request import Request, urlopen

import airflow
import pytest
from packaging.version import Version
from sqlalchemy import text

from tests.typo3.command import StandIn
from tests.typo3.dags import DAGS
from tests.typo3.runs import DAY, add_run
from tests.typo3.scheduler import RealAirflow
from tests.typo3.sites import Site
from tests.typo3.tables import outcome_rows

ROOT = Path(__file__).parents[2]
AIRFLOW = Version(airflow.__version__)
#: The midnight that has just been, when the newest data interval ended.
TODAY = int(time.time()) // DAY * DAY
#: The first day that is answered; the how-tos let the reader set it.
FIRST_DAY = TODAY - 3 * DAY
PASSWORD = "let-me-in"
EXAMPLES = ["nrllm_observed_outcomes", "nrllm_outcomes_and_purges", "nrllm_many_sites"]
if Version("3.2") <= AIRFLOW:
    EXAMPLES.append("nrllm_partitioned")

pytestmark = pytest.mark.skipif(Version("3") > AIRFLOW, reason="the commands are those of Airflow 3")


def commands_of(page: str, heading: str = "") -> list[list[str]]:
    """Return Airflow's commands on a page, or below one of its headings, as they are written."""
    written = (ROOT / page).read_text()
    if heading:
        written = written.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    blocks = "\n".join(re.findall(r"```(?:ba)?sh\n(.*?)```", written, re.DOTALL))
    lines = [line for line in blocks.splitlines() if line.startswith("airflow ")]
    lines += re.findall(r"`(airflow [^`\n]* [^`\n]* [^`\n]*)`", written)
    # Airflow 2.11's own.
    return [shlex.split(line, comments=True)[1:] for line in lines if "airflow dags backfill" not in line]


@pytest.fixture(scope="module")
def typo3(tmp_path_factory: pytest.TempPathFactory) -> StandIn:
    return StandIn(tmp_path_factory.mktemp("typo3"))


@pytest.fixture(scope="module")
def running(mariadb_server, postgres_server, tmp_path_factory, typo3) -> Iterator[RealAirflow]:
    """An Airflow whose DAGs are the examples and the README's, copied with another first day, and still paused."""
    directory = tmp_path_factory.mktemp("airflow")
    dags = directory / "dags"
    dags.mkdir()
    readme = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert readme
    files = {name: (DAGS / f"{name}.py").read_text() for name in EXAMPLES} | {"what_became_of_it": readme[1]}
    day = datetime.fromtimestamp(FIRST_DAY, UTC)
    for name, code in files.items():
        first = re.sub(r"datetime\(2026, 1, 1,", f"datetime({day.year}, {day.month}, {day.day},", code)
        assert first != code
        (dags / f"{name}.py").write_text(first.replace('"vendor/bin/typo3"', repr(typo3.command)))
    with postgres_server.engine(isolation_level="AUTOCOMMIT").connect() as connection:
        connection.execute(text("CREATE DATABASE airflow_of_the_how_tos"))
    metadata = postgres_server.url.set(database="airflow_of_the_how_tos").render_as_string(hide_password=False)
    connections = dict.fromkeys(("nrllm_default", "nrllm_site_a", "nrllm_site_b"), mariadb_server.connection)
    found = RealAirflow(directory, connections, files, metadata=metadata, dags=dags)
    found.environment["AIRFLOW__CORE__DAGS_ARE_PAUSED_AT_CREATION"] = "True"
    found.environment["AIRFLOW__SCHEDULER__USE_JOB_SCHEDULE"] = "True"
    found.let_in({"admin": PASSWORD})
    try:
        found.start()
        found.schedule()
        yield found
    finally:
        found.stop()


@pytest.fixture
def site(make_site) -> Site:
    return make_site("mariadb")


def runs_of(running: RealAirflow, dag_id: str, run_type: str) -> list[str]:
    """Return the states of a DAG's runs of one type, by their logical dates."""
    query = text("SELECT state FROM dag_run WHERE dag_id = :dag_id AND run_type = :run_type ORDER BY logical_date")
    return [state for (state,) in running.query(query.bindparams(dag_id=dag_id, run_type=run_type))]


def follow(running: RealAirflow, *commands: list[str]) -> None:
    assert commands
    for command in commands:
        running.command(*command)


def wait_for(running: RealAirflow, dag_id: str, **runs: int) -> None:
    """Wait until a DAG has so many successful runs of each type, and no others."""
    for run_type, count in runs.items():
        running.wait(lambda of=run_type, number=count: ["success"] * number == runs_of(running, dag_id, of))


def is_past_the_day(running: RealAirflow, dag_id: str) -> bool:
    """Whether the next run of the schedule is that of the day that has begun."""
    query = text("SELECT next_dagrun FROM dag WHERE dag_id = :dag_id").bindparams(dag_id=dag_id)
    ((following,),) = running.query(query)
    return bool(following.timestamp() == TODAY)


def task_logs(running: RealAirflow, dag_id: str) -> str:
    return "\n".join(path.read_text() for path in (running.directory / "logs" / f"dag_id={dag_id}").rglob("*.log"))


def test_a_schedule_and_what_answers_all_that_was_never_answered(running, site):
    dag_id = "nrllm_observed_outcomes"
    # It settled before the first day.
    add_run(site.engine, "early", made=FIRST_DAY - 9 * DAY, writes=[FIRST_DAY - 8 * DAY])
    add_run(site.engine, "scheduled", made=TODAY - 9 * DAY, writes=[TODAY - 8 * DAY])

    follow(running, *commands_of("docs/how-to/schedule.md"))
    wait_for(running, dag_id, scheduled=3)
    assert is_past_the_day(running, dag_id)
    assert [("scheduled", "accepted_unchanged")] == outcome_rows(site.engine)
    assert "1 runs settled before this partition and have no outcome" in task_logs(running, dag_id)

    follow(running, *commands_of("docs/how-to/backfill.md", "All that was never answered"))
    wait_for(running, dag_id, manual=1)
    assert ["early", "scheduled"] == [uuid for uuid, _ in outcome_rows(site.engine)]

    # The same command cures what a shorter window left out.
    follow(running, *commands_of("docs/how-to/many-unknown.md"))
    wait_for(running, dag_id, manual=2)
    follow(running, *commands_of("docs/how-to/backfill.md", "A range of dates"))
    wait_for(running, dag_id, backfill=10, scheduled=3)
    assert is_past_the_day(running, dag_id)


def test_a_run_by_hand_with_a_date_stops_a_dag_and_deleting_it_lets_it_go_on(running, site, typo3):
    dag_id = "nrllm_outcomes_and_purges"
    add_run(site.engine, "run", made=FIRST_DAY - 8 * DAY, writes=[FIRST_DAY - 7 * DAY + 60])
    running.command("dags", "test", dag_id, datetime.fromtimestamp(FIRST_DAY, UTC).isoformat())
    unpause, trigger = commands_of("docs/how-to/beside-the-purges.md")
    follow(running, unpause)
    running.wait(
        lambda: "run already exists; skipping dagrun creation" in (running.directory / "scheduler.log").read_text()
    )
    assert [] == runs_of(running, dag_id, "scheduled")

    ((run_id,),) = running.query(f"SELECT run_id FROM dag_run WHERE dag_id = '{dag_id}'")
    delete_as_the_page_says(running, dag_id, run_id)
    wait_for(running, dag_id, scheduled=3)
    assert is_past_the_day(running, dag_id)
    assert [("run", "accepted_unchanged")] == outcome_rows(site.engine)
    assert ["--ansi", "nrllm:privacy:purge", "--days=30"] in typo3.calls

    follow(running, trigger)
    wait_for(running, dag_id, manual=1)


def delete_as_the_page_says(running: RealAirflow, dag_id: str, run_id: str) -> None:
    """Delete a run over the API; the address is the one of the page."""
    page = (ROOT / "docs/how-to/backfill.md").read_text()
    written = re.search(r"http://airflow.example.org:8080(/\S*)", page)
    assert written
    path = written[1].replace("nrllm_observed_outcomes", dag_id)
    assert path.endswith("/dagRuns/<run")
    path = path.replace("<run", quote(run_id))
    login = json.dumps({"username": "admin", "password": PASSWORD}).encode()
    token = ask(f"{running.address}/auth/token", "POST", {"Content-Type": "application/json"}, login)["access_token"]
    ask(running.address + path, "DELETE", {"Authorization": f"Bearer {token}"})


def ask(url: str, method: str, headers: dict[str, str], body: bytes | None = None) -> Any:
    with urlopen(Request(url, data=body, method=method, headers=headers), timeout=30) as response:
        return json.loads(response.read() or b"{}")


def test_many_sites_get_past_the_day(running, site):
    add_run(site.engine, "run", made=TODAY - 9 * DAY, writes=[TODAY - 8 * DAY])
    follow(running, *commands_of("docs/how-to/many-sites.md"))
    wait_for(running, "nrllm_many_sites", scheduled=3)
    assert is_past_the_day(running, "nrllm_many_sites")
    assert [("run", "accepted_unchanged")] == outcome_rows(site.engine)


def test_the_dag_of_the_readme_gets_past_the_day(running, site):
    add_run(site.engine, "run", made=TODAY - 9 * DAY, writes=[TODAY - 8 * DAY])
    follow(running, *commands_of("README.md", "Backfill"))
    wait_for(running, "what_became_of_it", scheduled=3, backfill=31)
    assert is_past_the_day(running, "what_became_of_it")
    assert [("run", "accepted_unchanged")] == outcome_rows(site.engine)


@pytest.mark.skipif(Version("3.3") > AIRFLOW, reason="Airflow backfills partitions since 3.3")
def test_partitions_are_backfilled_beside_their_schedule(running, site):
    add_run(site.engine, "run", made=TODAY - 9 * DAY, writes=[TODAY - 8 * DAY])
    follow(running, *commands_of("docs/how-to/backfill.md", "Partitions"))
    wait_for(running, "nrllm_partitioned", backfill=10)
    running.wait(lambda: {"success"} == set(runs_of(running, "nrllm_partitioned", "scheduled")))
    assert [("run", "accepted_unchanged")] == outcome_rows(site.engine)
