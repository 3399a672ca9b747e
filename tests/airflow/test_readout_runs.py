"""The runs behind a readout's figures, as Airflow reads and writes them."""

from __future__ import annotations

import csv
import json
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import delete, event, insert

from airflow_provider_nrllm.hooks.readout import NrLlmReadoutHook
from airflow_provider_nrllm.operators.readout import NrLlmOutcomeReadoutOperator
from airflow_provider_nrllm.outcomes.reasons import PURGED, Reason
from airflow_provider_nrllm.readout.groups import Dimension
from tests.typo3 import tables
from tests.typo3.grants import TYPO3
from tests.typo3.loader import load_typo3
from tests.typo3.readouts import DAY, MARCH, calls, outcome, payload, run, write

START = datetime.fromtimestamp(MARCH, UTC)
END = START + timedelta(days=10)
WEEK = 7 * DAY


def rows_of(site, tmp_path, **arguments):
    """Return the rows of runs.csv by run and source."""
    defaults = {"interval_start": START, "interval_end": END, "output_path": str(tmp_path), "runs": True}
    task = NrLlmOutcomeReadoutOperator(task_id="readout", nrllm_conn_id=site.conn_id, **{**defaults, **arguments})
    task.execute({})
    with (tmp_path / "runs.csv").open(newline="", encoding="utf-8") as file:
        return {(row["run"], row["source"]): row for row in csv.DictReader(file)}


@pytest.fixture
def answered(site):
    """A site with a run that wrote twice and is rated, a rated task result, and a run whose row is purged."""
    run(site.engine, "r1", MARCH - WEEK, uid=1)
    write(site.engine, 1, MARCH - WEEK - 100, table="tt_content", uid=42)
    write(site.engine, 1, MARCH - WEEK - 50, table="pages", uid=7)
    write(site.engine, 1, MARCH - WEEK - 20, table="tt_content", uid=42)
    calls(site.engine, "r1", "a")
    outcome(site.engine, "r1", "edited", MARCH + DAY)
    outcome(site.engine, "r1", "helpful", MARCH + 2 * DAY)
    outcome(site.engine, "task", "not_helpful", MARCH)
    outcome(site.engine, "purged", "unknown", MARCH)
    return site


def test_each_outcome_is_a_row_with_what_its_run_wrote(answered, tmp_path):
    rows = rows_of(answered, tmp_path)
    assert {("r1", "observed"), ("r1", "explicit"), ("task", "explicit"), ("purged", "observed")} == rows.keys()
    of_run = rows["r1", "observed"]
    assert ("edited", "a", "tt_content:42 pages:7") == (of_run["outcome"], of_run["group_1"], of_run["records"])
    assert ("", "", PURGED) == tuple(rows["purged", "observed"][name] for name in ("settled", "records", "reason"))
    assert ("", "no telemetry") == (rows["task", "explicit"]["records"], rows["task", "explicit"]["kind_1"])


def test_a_run_settles_when_its_last_window_closes_and_counts_a_window_after_its_end(answered, tmp_path):
    of_run = rows_of(answered, tmp_path)["r1", "observed"]
    # The last write was 20 seconds before the end; the readout dates an outcome by the end alone.
    assert ("2026-02-28T23:59:40Z", "2026-03-01T00:00:00Z") == (of_run["settled"], of_run["at"])


@pytest.mark.parametrize("range_of", ["outcome", "recorded", "run"])
def test_the_rows_are_those_that_the_figures_count(answered, tmp_path, range_of):
    run(answered.engine, "before", MARCH - WEEK - 1, uid=2)
    outcome(answered.engine, "before", "edited", MARCH - 1)
    run(answered.engine, "within", MARCH + 1, uid=3)
    outcome(answered.engine, "within", "edited", MARCH + 20 * DAY)
    rows = rows_of(answered, tmp_path, range_of=range_of)
    figures = json.loads((tmp_path / "outcomes.json").read_text())
    counts = [sum(group[name] for group in figures["groups"]) for name in ("observed", "rated")]
    assert counts == [sum(source == each for _, source in rows) for each in ("observed", "explicit")]
    assert 0 < len(rows)


def test_only_the_named_names_are_rows(answered, tmp_path):
    rows = rows_of(answered, tmp_path, where={"served_model": ["a"]})
    assert {("r1", "observed"), ("r1", "explicit")} == rows.keys()


def test_why_a_run_is_unknown_is_told_in_words(site, tmp_path):
    load_typo3(site.engine, TYPO3)
    for number, name in enumerate(("02-human-edit", "05-unhide-only")):
        outcome(site.engine, name, "unknown", MARCH + number)
    run(site.engine, "unreadable", MARCH, uid=900)
    payload(site.engine, 900, MARCH, "{}")
    run(site.engine, "trimmed", MARCH, uid=901)
    write(site.engine, 901, MARCH, uid=4711)
    with site.engine.begin() as connection:
        connection.execute(insert(tables.metadata.tables["tt_content"]).values(uid=4711, pid=1))
    for name in ("unreadable", "trimmed"):
        outcome(site.engine, name, "unknown", MARCH + 8 * DAY)
    reasons = {name: row["reason"] for (name, _), row in rows_of(site, tmp_path, range_of="recorded").items()}
    expected = {
        "02-human-edit": Reason.FIELDS,
        "05-unhide-only": Reason.FIELDS,
        "unreadable": Reason.NO_RECORD,
        "trimmed": Reason.TRIMMED,
    }
    assert expected == reasons


def test_what_the_audit_says_of_an_edited_or_accepted_run_is_its_reason(site, tmp_path):
    load_typo3(site.engine, TYPO3)
    for name in ("02-human-edit", "05-unhide-only", "07-move-only"):
        outcome(site.engine, name, "edited")
    outcome(site.engine, "01-untouched", "accepted_unchanged")
    rows = rows_of(site, tmp_path, edited_audit=True, range_of="recorded")
    expected = {"02-human-edit": "edit of the run's text", "05-unhide-only": "release", "07-move-only": "move"}
    expected["01-untouched"] = "still hidden"
    assert expected == {name: row["reason"] for (name, _), row in rows.items()}


def test_memory_and_statements_are_those_of_a_page_however_many_runs_there_are(site):
    with site.engine.begin() as connection:
        for number in range(95):
            run(connection, f"r{number}", MARCH - WEEK, uid=number + 1)
            write(connection, number + 1, MARCH - WEEK, uid=number + 1)
            outcome(connection, f"r{number}", "edited")
    hook, statements = NrLlmReadoutHook(site.conn_id), []
    event.listen(hook.database.engine, "before_cursor_execute", lambda *told: statements.append(told[2]))

    def count(page_size):
        statements.clear()
        rows = hook.runs(MARCH, MARCH + DAY, grouping=[Dimension.SERVED_MODEL], page_size=page_size)
        # The first row is there before the second page is read.
        first = next(rows)
        pages_before = sum("writeTarget" in text or "payload" in text for text in statements)
        return pages_before, len([first, *rows]), sum("tx_nrllm" in text for text in statements)

    # A page costs four: where it ends, its outcomes, their runs, and what these wrote.
    assert [(1, 95, 4), (1, 95, 40)] == [count(page_size) for page_size in (100, 10)]


def test_the_page_shows_the_runs_with_links_into_the_backend(answered, tmp_path):
    template = "https://www.example.org/typo3/record/edit?edit[{table}][{uid}]=edit"
    rows_of(answered, tmp_path, link_template=template)
    page = (tmp_path / "outcomes.html").read_text()
    assert 'href="https://www.example.org/typo3/record/edit?edit[pages][7]=edit"' in page
    figures = json.loads((tmp_path / "outcomes.json").read_text())
    assert (2, 2) == tuple(figures["runs"][source]["count"] for source in ("observed", "explicit"))


def test_runs_of_dated_folders_are_kept_past_a_purge(answered, tmp_path):
    rows_of_before = {"dated_folders": True, "output_path": str(tmp_path), "runs": True}
    task = NrLlmOutcomeReadoutOperator(
        task_id="readout", nrllm_conn_id=answered.conn_id, interval_start=START, interval_end=END, **rows_of_before
    )
    files = task.execute({})["files"]
    assert 2 == sum(file.endswith("runs.csv") for file in files)
    kept, latest = (tmp_path / name / "runs.csv" for name in ("2026-03-11T000000Z", "latest"))
    before = kept.read_bytes()
    assert before == latest.read_bytes()
    with answered.engine.begin() as connection:
        for table in (tables.run, tables.event, tables.outcome):
            connection.execute(delete(table))
    task.interval_start, task.interval_end = END, END + timedelta(days=7)
    task.execute({})
    assert before == kept.read_bytes()
    assert 1 == len(latest.read_text().splitlines())


def test_without_runs_there_is_no_file_of_runs(answered, tmp_path):
    task = NrLlmOutcomeReadoutOperator(task_id="r", nrllm_conn_id=answered.conn_id, output_path=str(tmp_path))
    task.execute({})
    assert ["outcomes.csv", "outcomes.html", "outcomes.json"] == sorted(path.name for path in tmp_path.iterdir())
    assert "runs" not in json.loads((tmp_path / "outcomes.json").read_text())


@pytest.mark.parametrize(
    "arguments",
    [
        {"runs": True},
        {"link_template": "https://a.example/{uid}", "output_path": "/tmp/r"},
        {"runs": True, "link_template": "javascript:alert({uid})", "output_path": "/tmp/r"},
        {"runs": True, "link_template": "https://a.example/{person}", "output_path": "/tmp/r"},
    ],
)
def test_what_cannot_be_is_refused_when_the_dag_is_parsed(arguments):
    with pytest.raises(ValueError, match="expected"):
        NrLlmOutcomeReadoutOperator(task_id="readout", **arguments)
