"""One readout of several sites, as Airflow runs it."""

from __future__ import annotations

import csv
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.pool import NullPool

from airflow_provider_nrllm.exceptions import NrLlmConnectionError, NrLlmSettingError
from airflow_provider_nrllm.operators.audit import NrLlmEditedAuditOperator
from airflow_provider_nrllm.operators.readout import NrLlmOutcomeReadoutOperator
from tests.typo3.grants import TYPO3
from tests.typo3.loader import load_typo3
from tests.typo3.readouts import DAY, MARCH, calls, outcome
from tests.typo3.sites import Site
from tests.typo3.tables import create_tables

START = datetime.fromtimestamp(MARCH, UTC)
END = START + timedelta(days=10)


@pytest.fixture
def sites(site, tmp_path, monkeypatch):
    """Two sites with the same models; one on each engine, the other on SQLite."""
    path = tmp_path / "other.sqlite"
    engine = create_engine(f"sqlite:///{path}", poolclass=NullPool)
    create_tables(engine)
    other = Site("sqlite", engine, {"conn_type": "sqlite", "host": str(path)}, None, monkeypatch)
    site.define_connection("nrllm_a")
    other.define_connection("nrllm_b")
    for found, model, value in (
        (site, "m1", "accepted_unchanged"), (site, "m2", "edited"), (other, "m1", "discarded"), (other, "m2", "edited"),
    ):  # fmt: skip
        for number in range(5):
            calls(found.engine, f"{model}-{number}", model)
            outcome(found.engine, f"{model}-{number}", value)
    return site, other


def operator(**arguments):
    defaults = {"nrllm_conn_id": ["nrllm_a", "nrllm_b"], "interval_start": START, "interval_end": END}
    return NrLlmOutcomeReadoutOperator(task_id="readout", **{**defaults, **arguments})


def groups(result):
    return {tuple(label["name"] for label in group["group"]): group["observed"] for group in result["groups"]}


def test_the_site_is_a_dimension_of_one_report(sites):
    result = operator().execute({})
    assert (["site", "served_model"], ["nrllm_a", "nrllm_b"], []) == (
        result["grouping"], result["sites"], result["sites_failed"],
    )  # fmt: skip
    assert {("nrllm_a", "m1"): 5, ("nrllm_a", "m2"): 5, ("nrllm_b", "m1"): 5, ("nrllm_b", "m2"): 5} == groups(result)
    # Models are compared within each site, and pooled over both.
    compared = result["observed"]["compared"]
    assert {"nrllm_a", "nrllm_b"} == {row["group"][0]["name"] for row in compared["differences"]}
    assert [2] == [row["strata"] for row in compared["pooled"]]


def test_by_two_other_dimensions_the_sites_are_counted_together(sites):
    assert {("", "m1"): 10, ("", "m2"): 10} == groups(operator(group_by=["configuration", "served_model"]).execute({}))


def test_sites_can_be_compared_within_each_model(sites):
    result = operator(group_by=["served_model", "site"]).execute({})
    assert {("m1", "nrllm_a"): 5, ("m1", "nrllm_b"): 5, ("m2", "nrllm_a"): 5, ("m2", "nrllm_b"): 5} == groups(result)


def test_one_site_that_fails_is_named_and_the_others_are_shown(sites, tmp_path):
    with sites[1].engine.begin() as connection:
        connection.execute(text("DROP TABLE tx_nrllm_telemetry"))
    result = operator(nrllm_conn_id=["gone", "nrllm_a", "nrllm_b"], output_path=str(tmp_path), runs=True).execute({})
    assert {("nrllm_a", "m1"): 5, ("nrllm_a", "m2"): 5} == groups(result)
    errors = {one["site"]: one["error"] for one in result["sites_failed"]}
    assert {"gone": "NrLlmConnectionError", "nrllm_b": "NrLlmSchemaError"} == errors
    page = (tmp_path / "outcomes.html").read_text()
    assert "Not shown: the site gone, which could not be read (NrLlmConnectionError)" in page
    assert "Not shown: the site nrllm_b, which could not be read (NrLlmSchemaError)" in page


def test_where_no_site_can_be_read_the_error_of_the_first_is_raised(sites):
    with pytest.raises(NrLlmConnectionError, match="'gone'"):
        operator(nrllm_conn_id=["gone", "lost"]).execute({})


def test_the_runs_of_all_sites_are_in_one_file(sites, tmp_path):
    operator(output_path=str(tmp_path), runs=True).execute({})
    with (tmp_path / "runs.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert {("nrllm_a", "nrllm_a"), ("nrllm_b", "nrllm_b")} == {(row["site"], row["group_1"]) for row in rows}
    assert 20 == len(rows)


def test_periods_are_as_wide_as_the_longest_range_of_a_site_needs(sites):
    outcome(sites[1].engine, "old", "edited", MARCH - 3 * 365 * DAY)
    result = operator(interval_start=None, interval_end=None).execute({})
    assert ("month", 2) == (result["period"], len(result["periods"]))


def test_the_edits_of_all_sites_are_audited(sites):
    for found in sites:
        load_typo3(found.engine, TYPO3)
        outcome(found.engine, "05-unhide-only", "edited")
    result = operator(group_by=["configuration", "served_model"], edited_audit=True).execute({})
    audited = [group["edited_are"] for group in result["observed"]["groups"] if "edited_are" in group]
    assert 2 == sum(group["release"] for group in audited)


def test_one_site_has_its_connection_for_its_name(sites):
    with_site = operator(nrllm_conn_id="nrllm_a", group_by=["site", "served_model"]).execute({})
    assert {("nrllm_a", "m1"): 5, ("nrllm_a", "m2"): 5} == groups(with_site)
    only = operator(where={"site": ["nrllm_b"]}).execute({})
    assert {("nrllm_b", "m1"): 5, ("nrllm_b", "m2"): 5} == groups(only)
    audit = NrLlmEditedAuditOperator(task_id="audit", nrllm_conn_id="nrllm_a", group_by="site").execute({})
    assert [[{"kind": "named", "name": "nrllm_a"}]] == [group["group"] for group in audit["groups"]]


@pytest.mark.parametrize("conn_ids", [[], ["a", "a"], ["a", 1], None, [""]])
def test_what_is_no_list_of_connections_is_refused_when_the_dag_is_parsed(conn_ids):
    with pytest.raises(ValueError, match="nrllm_conn_id is"):
        operator(nrllm_conn_id=conn_ids)


def test_a_list_that_is_rendered_to_none_is_not_retried(sqlite_site):
    task = operator(nrllm_conn_id=["{{ a }}", "{{ b }}"])
    task.nrllm_conn_id = ["", ""]
    with pytest.raises(NrLlmSettingError, match="nrllm_conn_id is"):
        task.execute({})
