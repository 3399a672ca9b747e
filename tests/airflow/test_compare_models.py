"""Each block of docs/how-to/read-outcomes-by-model.md, as it is written there."""

from __future__ import annotations

import json
import re
import shlex
from contextlib import redirect_stdout
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path
from textwrap import indent

import airflow
import pytest
from packaging.version import Version

from airflow_provider_nrllm.operators.readout import NrLlmOutcomeReadoutOperator
from airflow_provider_nrllm.outcomes.reasons import PURGED
from tests.typo3.dags import run_dag, states_of
from tests.typo3.readouts import DAY, calls, outcome, run, write
from tests.typo3.scheduler import RealAirflow

PAGE = (Path(__file__).parents[2] / "docs/how-to/read-outcomes-by-model.md").read_text()
DAG, NARROW, AUDITED, REASONS, CHECK = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
REPORTS = "/var/reports/nrllm"
IS_AIRFLOW_2 = Version(airflow.__version__) < Version("3")
NOW = int(datetime.now(UTC).timestamp())


def as_written(code, directory):
    """Return a block with another directory, and as the page says it is on Airflow 2.11."""
    code = code.replace(REPORTS, str(directory))
    return code.replace("dag_run.run_after", "data_interval_end") if IS_AIRFLOW_2 else code


@pytest.fixture
def site(sqlite_site):
    """A site whose outcomes are of last month, and one of last year."""
    sqlite_site.define_connection("nrllm_default")
    run(sqlite_site.engine, "edited", NOW - 20 * DAY, uid=1)
    write(sqlite_site.engine, 1, NOW - 20 * DAY, table="pages", uid=7)
    for correlation_id, value, at in (
        ("edited", "edited", NOW - 12 * DAY), ("purged", "unknown", NOW - 12 * DAY), ("old", "edited", NOW - 300 * DAY),
    ):  # fmt: skip
        calls(sqlite_site.engine, correlation_id, "model-a", configuration_identifier="seo-meta")
        outcome(sqlite_site.engine, correlation_id, value, at)
    return sqlite_site


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The DAGs folder: Airflow 3 runs only a DAG that it finds in it."""
    monkeypatch.setattr("airflow.settings.DAGS_FOLDER", str(tmp_path / "dags"))
    (tmp_path / "dags").mkdir()
    return tmp_path / "dags"


def test_the_dag_writes_a_folder_with_the_report_and_the_runs_behind_it(site, load_dag, folder, tmp_path):
    (folder / "how_to.py").write_text(as_written(DAG, tmp_path / "reports"))
    done = run_dag(load_dag("outcomes_by_model", folder / "how_to.py"), datetime.now(UTC))
    assert "success" == done.state
    dated, latest = sorted((tmp_path / "reports").iterdir())
    assert "latest" == latest.name
    files = ["outcomes.csv", "outcomes.html", "outcomes.json", "runs.csv"]
    assert [files, files] == [sorted(path.name for path in place.iterdir()) for place in (dated, latest)]
    figures = json.loads((latest / "outcomes.json").read_text())
    (group,) = figures["groups"]
    assert (["seo-meta", "model-a"], 2) == ([label["name"] for label in group["group"]], group["observed"])
    assert "https://www.example.org/typo3/record/edit?edit[pages][7]=edit" in (latest / "outcomes.html").read_text()


def test_the_reasons_are_counted(site, tmp_path):
    NrLlmOutcomeReadoutOperator(task_id="readout", output_path=str(tmp_path / "latest"), runs=True).execute({})
    printed = StringIO()
    with redirect_stdout(printed):
        exec(as_written(REASONS, tmp_path), {})
    assert f"1 {PURGED}\n" == printed.getvalue()


@pytest.mark.parametrize(("block", "expected"), [(NARROW, 1), (AUDITED, 3)], ids=["narrow", "audited"])
def test_the_other_readouts_read(site, block, expected):
    names = {"NrLlmOutcomeReadoutOperator": NrLlmOutcomeReadoutOperator}
    exec(f"task = {block}", names)
    result = names["task"].execute({})
    assert expected == sum(group["observed"] for group in result["groups"])


@pytest.mark.parametrize(("cases", "state", "told"), [(0, "skipped", 0), (40, "failed", 1)], ids=["too few", "many"])
def test_the_check_calls_where_a_bound_is_passed_and_is_skipped_where_there_is_too_little(
    site, load_dag, folder, capfd, cases, state, told
):
    with site.engine.begin() as connection:
        for number in range(cases):
            calls(connection, f"r{number}", "model-b")
            outcome(connection, f"r{number}", "unknown", NOW - 12 * DAY)
    head = DAG[: DAG.index("from airflow_provider_nrllm")] + DAG[DAG.index("with DAG(") : DAG.index("    NrLlm")]
    (folder / "check.py").write_text(as_written(head + indent(CHECK, "    "), ""))
    done = run_dag(load_dag("outcomes_by_model", folder / "check.py"), datetime.now(UTC))
    assert {"check": state} == states_of(done)
    assert told == capfd.readouterr().out.count("Outcomes: Connection 'nrllm_default'")


@pytest.mark.skipif(IS_AIRFLOW_2, reason="the stand-in for an installation is one of Airflow 3")
def test_the_command_makes_a_report_at_once(site, tmp_path):
    (command,) = re.findall(r"^airflow (.*)$", PAGE, re.MULTILINE)
    home, dags = tmp_path / "airflow", tmp_path / "dags"
    home.mkdir()
    dags.mkdir()
    (dags / "how_to.py").write_text(as_written(DAG, tmp_path / "reports"))
    installed = RealAirflow(home, {"nrllm_default": site.connection}, dags=dags)
    installed.command("db", "migrate")
    installed.command(*shlex.split(command))
    assert (tmp_path / "reports" / "latest" / "outcomes.html").exists()
