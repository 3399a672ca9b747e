"""The readout and the audit as Airflow runs them, with what they write."""

from __future__ import annotations

import csv
import json
import logging
import re
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from airflow.providers.common.compat.sdk import ObjectStoragePath

from airflow_provider_nrllm.exceptions import NrLlmExtraError, NrLlmSettingError
from airflow_provider_nrllm.operators.audit import NrLlmEditedAuditOperator
from airflow_provider_nrllm.operators.readout import NrLlmOutcomeReadoutOperator
from tests.typo3.loader import load_typo3
from tests.typo3.readouts import CRAB, DAY, FORMULA, LONG, MARCH, QUOTES, ROCKET, SCRIPT, calls, outcome

START = datetime.fromtimestamp(MARCH, UTC)
END = START + timedelta(days=10)
TYPO3 = json.loads((Path(__file__).parent.parent / "cases" / "typo3_13.4.18.json").read_text())
NAMES = [QUOTES, SCRIPT, ROCKET, CRAB, LONG, FORMULA, "$x^2$ &amp; _a_\n# no heading"]


def operator(site, **arguments):
    defaults = {"interval_start": START, "interval_end": END}
    return NrLlmOutcomeReadoutOperator(task_id="readout", nrllm_conn_id=site.conn_id, **{**defaults, **arguments})


@pytest.fixture
def named(sqlite_site):
    """A site whose models have names that are hard to write."""
    with sqlite_site.engine.begin() as connection:
        for number, name in enumerate(NAMES):
            for place in range(number + 1):
                correlation_id, at = f"r{number}-{place}", MARCH + place * DAY
                calls(connection, correlation_id, name, actual_cost=0.01)
                outcome(connection, correlation_id, "helpful" if place % 2 else "not_helpful", at)
                value = ("edited", "accepted_unchanged", "discarded", "unknown")[place % 4]
                outcome(connection, correlation_id, value, at)
    return sqlite_site


def test_the_result_is_plain_json_with_the_sources_apart(site):
    for correlation_id, model, values in [("r1", "a", ["helpful", "edited"]), ("r2", "b", ["unknown", "not_helpful"])]:
        calls(site.engine, correlation_id, model)
        for value in values:
            outcome(site.engine, correlation_id, value)
    result = operator(site).execute({})
    assert result == json.loads(json.dumps(result))
    explicit, observed = result["explicit"]["groups"], result["observed"]["groups"]
    assert [("a", 1, 0), ("b", 0, 1)] == [(g["group"][0]["name"], g["helpful"], g["not_helpful"]) for g in explicit]
    assert [("a", 1, 0), ("b", 0, 1)] == [(g["group"][0]["name"], g["edited"], g["unknown"]) for g in observed]
    # Of b's one run none is decided: no share is not a share of zero.
    assert {"count": 0, "of": 0, "value": None, "low": None, "high": None} == observed[1]["shares"]["edited"]
    assert {"count": 1, "of": 1, "value": 1.0, "low": 0.206549, "high": 1.0} == observed[1]["shares"]["unknown"]
    # 0 of 1 less 1 of 1; Wilson's ends (0, 0.793451) and (0.206549, 1): -1 to -1 + hypot(0.793451, 0.793451).
    difference = result["explicit"]["compared"]["differences"][0]["helpful"]
    assert {"value": -1.0, "low": -1.0, "high": 0.122109, "told": False} == difference


@pytest.fixture
def said(caplog, capfd):
    """What was logged so far; Airflow 3 writes it to the standard streams."""
    caplog.set_level(logging.INFO)
    return lambda: "".join([caplog.text, *capfd.readouterr()])


def test_it_says_that_it_recommends_nothing(sqlite_site, said):
    result = operator(sqlite_site).execute({})
    assert result["note"].startswith("This readout makes no recommendation")
    assert "This readout makes no recommendation" in said()


def test_past_200_groups_the_result_says_how_many_were_left_out(sqlite_site, tmp_path):
    with sqlite_site.engine.begin() as connection:
        for number in range(203):
            calls(connection, f"r{number}", f"model {number}")
            outcome(connection, f"r{number}", "helpful")
    result = operator(sqlite_site, output_path=str(tmp_path)).execute({})
    assert (200, 200, 3) == (len(result["groups"]), len(result["explicit"]["groups"]), result["groups_left_out"])
    assert 203 == len(json.loads((tmp_path / "outcomes.json").read_text())["groups"])


def test_names_stay_within_their_cell_of_the_log(named, said):
    operator(named).execute({})
    lines = said().splitlines()
    # Each line of a table has as many cells as its head, whatever is in them: 2, 4 to 8.
    widths = {len(re.findall(r"(?<!\\)\|", line)) - 1 for line in lines if line.startswith("|")}
    assert {2, 4, 5, 6, 7, 8} == widths
    assert not any(line.startswith("# no heading") for line in lines)


def test_the_files_hold_every_figure(named, tmp_path):
    result = operator(named, output_path=str(tmp_path)).execute({})
    assert ["outcomes.json", "outcomes.csv", "outcomes.html"] == [Path(file).name for file in result["files"]]
    figures = json.loads((tmp_path / "outcomes.json").read_text("utf-8"))
    assert {*NAMES} == {group["group"][0]["name"] for group in figures["groups"]}
    with (tmp_path / "outcomes.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    # A spreadsheet would take the name for a formula.
    assert {*NAMES, "'" + FORMULA} - {FORMULA} == {row["group_1"] for row in rows if row["group_1"]}
    ratings = {row["group_1"]: row["count"] for row in rows if (row["table"], row["figure"]) == ("explicit", "helpful")}
    assert ("2", "0") == (ratings[LONG], ratings[QUOTES])


def test_files_go_to_an_object_storage_path_and_replace_those_of_before(named, tmp_path):
    path = ObjectStoragePath(f"file://{tmp_path}/deeper/still")
    for _ in range(2):
        operator(named, output_path=path).execute({})
    assert {"outcomes.json", "outcomes.csv", "outcomes.html"} == {f.name for f in (tmp_path / "deeper/still").iterdir()}


def test_dated_folders_keep_the_readouts_of_other_ranges_and_replace_those_of_the_same(named, tmp_path):
    for end in (END, START + timedelta(days=1), END):
        operator(named, output_path=str(tmp_path), dated_folders=True, interval_end=end).execute({})
    assert ["2026-03-02T000000Z", "2026-03-11T000000Z", "latest"] == sorted(path.name for path in tmp_path.iterdir())
    assert [3, 3, 3] == [len(list(folder.iterdir())) for folder in tmp_path.iterdir()]


def test_a_backfill_of_an_older_range_leaves_the_latest_alone(named, tmp_path):
    for end in (END, START + timedelta(days=1)):
        result = operator(named, output_path=str(tmp_path), dated_folders=True, interval_end=end).execute({})
    assert ["2026-03-02T000000Z"] * 3 == [Path(file).parent.name for file in result["files"]]
    newest, latest = (tmp_path / name / "outcomes.html" for name in ("2026-03-11T000000Z", "latest"))
    assert newest.read_bytes() == latest.read_bytes()


def test_one_outcome_of_1970_does_not_make_the_page_long(named, tmp_path):
    calls(named.engine, "old", "model of 1970")
    outcome(named.engine, "old", "edited", 0)
    operator(named, interval_start=None, interval_end=None, output_path=str(tmp_path)).execute({})
    assert '"1970-01-01"' in (tmp_path / "outcomes.json").read_text()
    assert (tmp_path / "outcomes.html").stat().st_size < 100_000


def test_nothing_is_written_without_a_path(named, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert [] == operator(named).execute({})["files"]
    assert [] == list(tmp_path.iterdir())


def test_an_empty_range_is_a_page_too(sqlite_site, tmp_path):
    result = operator(sqlite_site, output_path=str(tmp_path)).execute({})
    assert ([], None) == (result["groups"], result["explicit"]["compared"])
    assert "None in this range." in (tmp_path / "outcomes.html").read_text()


def test_without_the_extra_the_error_says_what_to_install(named, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    monkeypatch.delitem(sys.modules, "airflow_provider_nrllm.readout.page", raising=False)
    with pytest.raises(NrLlmExtraError, match=r"pip install 'airflow-provider-nrllm\[readout\]'"):
        operator(named, output_path=str(tmp_path)).execute({})


def test_the_range_is_the_data_interval_without_arguments(sqlite_site):
    outcome(sqlite_site.engine, "r1", "helpful", MARCH + DAY)
    task = operator(sqlite_site, interval_start=None, interval_end=None)
    inside = task.execute({"data_interval_start": START, "data_interval_end": END})
    after = task.execute({"data_interval_start": END, "data_interval_end": END + timedelta(days=1)})
    everything = task.execute({})
    assert [1, 0, 1] == [len(result["groups"]) for result in (inside, after, everything)]


@pytest.mark.parametrize(
    "arguments",
    [
        {"group_by": "be_user"},
        {"group_by": []},
        {"group_by": ["operation", "operation"]},
        {"group_by": ["operation", "served_model", "configuration"]},
        {"range_of": "telemetry"},
        {"window": 0},
        {"interval_start": END, "interval_end": START},
        {"interval_start": START, "interval_end": None},
        {"release_fields": "hidden"},
    ],
)
def test_what_cannot_be_is_refused_when_the_dag_is_parsed(sqlite_site, arguments):
    with pytest.raises(ValueError):  # noqa: PT011
        operator(sqlite_site, **arguments)
    with pytest.raises(ValueError):  # noqa: PT011
        NrLlmEditedAuditOperator(task_id="audit", **arguments)


def test_a_rendered_range_that_cannot_be_is_not_retried(sqlite_site):
    task = operator(sqlite_site, interval_start="{{ a }}", interval_end="{{ b }}")
    task.interval_start, task.interval_end = "2026-03-02", "2026-03-01"
    with pytest.raises(NrLlmSettingError, match="expected an end after the start"):
        task.execute({})


def test_the_audit_counts_by_group(site):
    load_typo3(site.engine, TYPO3)
    with site.engine.begin() as connection:
        for uuid, value in TYPO3["expect"].items():
            if value:
                outcome(connection, uuid, value, TYPO3["now"])
        calls(connection, "02-human-edit", "a")
        calls(connection, "05-unhide-only", "a")
        calls(connection, "06-form-save-no-change", "a", "b")
    result = NrLlmEditedAuditOperator(task_id="audit", nrllm_conn_id=site.conn_id).execute({})
    assert result == json.loads(json.dumps(result))
    # All nine, by hand: 02 run's text; 05, 23, 26 released; 06, 11 no change; 07 moved; 12 restored; 29 untold.
    meanings = ("run_text", "cannot_be_told", "beside", "release", "move", "restore", "no_change")
    assert [1, 1, 0, 3, 1, 1, 2] == [result["in_all"][meaning] for meaning in meanings]
    assert {"count": 7, "of": 9} == {name: result["in_all"]["over_report"][name] for name in ("count", "of")}
    found = {(g["group"][0]["kind"], g["group"][0]["name"]): g["edited_runs"] for g in result["groups"]}
    assert {("named", "a"): 2, ("several", ""): 1, ("no telemetry", ""): 6} == found


def test_the_readout_shows_the_audit_beside_edited_when_asked(site, said):
    load_typo3(site.engine, TYPO3)
    with site.engine.begin() as connection:
        for uuid in ("02-human-edit", "05-unhide-only", "06-form-save-no-change"):
            outcome(connection, uuid, "edited")
    plain = operator(site).execute({})
    asked = operator(site, edited_audit=True).execute({})
    assert "edited_are" not in plain["observed"]["groups"][0]
    edited = asked["observed"]["groups"][0]["edited_are"]
    assert (3, 1, 1, 1) == tuple(edited[name] for name in ("edited_runs", "run_text", "release", "no_change"))
    assert "how much of EDITED is about the run's text" in said()


def test_a_schedule_without_width_is_said_to_cover_everything(sqlite_site, said):
    end = datetime(2026, 3, 8, tzinfo=UTC)
    NrLlmOutcomeReadoutOperator(task_id="readout", nrllm_conn_id=sqlite_site.conn_id).execute(
        {"data_interval_start": end, "data_interval_end": end}
    )
    told = " ".join(said().split())
    assert "Range [the beginning, 2026-03-08T00:00:00Z), all that settled before the end" in told
    assert "which has no width: a plain cron schedule gives none since Airflow 3" in told
