"""What OpenLineage is told of a derivation, and that nothing of it is imported where nobody asks."""

import json
import subprocess
import sys
import time
from datetime import UTC, datetime

import pytest
from sqlalchemy import text
from sqlalchemy.exc import IntegrityError

from airflow_provider_nrllm.exceptions import NrLlmPartitionError
from airflow_provider_nrllm.operators.outcomes import NrLlmDeriveOutcomesOperator
from tests.typo3.runs import DAY, add_run
from tests.typo3.tables import outcome_rows

END = int(time.time()) // DAY * DAY - DAY
TABLES = ["sys_history", "tx_nrllm_agentrun", "tx_nrllm_agentrun_event", "tx_nrllm_call_outcome", "tt_content"]

_DERIVE_WITHOUT = """
import pkgutil, sys


class Without:
    \"\"\"A Python where the OpenLineage provider and its client are not installed.\"\"\"

    @staticmethod
    def find_spec(name, path=None, target=None):
        # That the provider is there at all, Airflow asks itself.
        if name.startswith(("openlineage", "airflow.providers.openlineage.")) and not name.endswith("_info"):
            asked.append(name)
            raise ModuleNotFoundError(name)


asked = []
sys.meta_path.insert(0, Without)
import airflow_provider_nrllm

for module in pkgutil.walk_packages(airflow_provider_nrllm.__path__, "airflow_provider_nrllm."):
    # The page is the api-server's, and needs an Airflow that has one.
    if module.name not in ("airflow_provider_nrllm.lineage", "airflow_provider_nrllm.ui.app"):
        __import__(module.name)
from airflow_provider_nrllm.operators.outcomes import NrLlmDeriveOutcomesOperator

del asked[:]
NrLlmDeriveOutcomesOperator(task_id="derive", nrllm_conn_id="nrllm_default").execute({})
print(asked)
"""


def naming(site):
    """Return the namespace of a site and what stands before its tables' names."""
    port = site.connection.get("port")
    return {
        "sqlite": (f"sqlite://{site.connection['host']}", ""),
        "mariadb": (f"mysql://127.0.0.1:{port}", "typo3."),
        "postgres": (f"postgres://127.0.0.1:{port}", "typo3.public."),
    }[site.name]


def test_lineage_names_the_tables_of_the_connection_and_has_the_counts(site):
    add_run(site.engine, "one", made=END - 8 * DAY, writes=[END - 7 * DAY - 60])
    operator = NrLlmDeriveOutcomesOperator(task_id="derive", nrllm_conn_id=site.conn_id)
    operator.execute({})
    lineage = operator.get_openlineage_facets_on_complete(None)
    namespace, prefix = naming(site)
    assert [(namespace, prefix + table) for table in TABLES] == [(read.namespace, read.name) for read in lineage.inputs]
    (written,) = lineage.outputs
    assert (namespace, f"{prefix}tx_nrllm_call_outcome") == (written.namespace, written.name)
    assert 1 == written.outputFacets["outputStatistics"].rowCount
    counts = lineage.run_facets["nrllm_observedOutcomes"]
    assert (1, 1, 7) == (counts.runsAnswered, counts.outcomes["accepted_unchanged"], counts.windowDays)
    assert str(site.connection.get("password", "no password")) not in repr(lineage)


def test_lineage_names_only_tables_that_are_there(site):
    add_run(site.engine, "one", made=END - 8 * DAY, writes=[END - 7 * DAY - 60], table="a_table_that_a_model_made_up")
    operator = NrLlmDeriveOutcomesOperator(task_id="derive", nrllm_conn_id=site.conn_id)
    operator.execute({})
    assert TABLES[:4] == [
        read.name.rpartition(".")[2] for read in operator.get_openlineage_facets_on_complete(None).inputs
    ]


def test_lineage_of_a_task_that_failed_has_the_counts_of_what_was_recorded(make_site_to_change):
    site = make_site_to_change("sqlite")
    for uuid in ("one", "two"):
        add_run(site.engine, uuid, made=END - 8 * DAY, writes=[END - 7 * DAY - 60])
    with site.engine.begin() as connection:
        connection.execute(
            text(
                "CREATE TRIGGER refuse BEFORE INSERT ON tx_nrllm_call_outcome WHEN NEW.correlation_id = 'two' "
                "BEGIN SELECT RAISE(ABORT, 'refused'); END"
            )
        )
    operator = NrLlmDeriveOutcomesOperator(task_id="derive", nrllm_conn_id=site.conn_id, page_size=1)
    with pytest.raises(IntegrityError):
        operator.execute({})
    lineage = operator.get_openlineage_facets_on_complete(None)
    assert TABLES == [read.name for read in lineage.inputs]
    assert 1 == lineage.run_facets["nrllm_observedOutcomes"].runsAnswered


def test_lineage_of_a_task_that_failed_before_it_counted_has_the_tables(site):
    operator = NrLlmDeriveOutcomesOperator(task_id="derive", nrllm_conn_id=site.conn_id, interval_end="2999-01-01")
    with pytest.raises(NrLlmPartitionError):
        operator.execute({})
    lineage = operator.get_openlineage_facets_on_complete(None)
    assert TABLES[:4] == [read.name.rpartition(".")[2] for read in lineage.inputs]
    assert ["tx_nrllm_call_outcome"] == [written.name.rpartition(".")[2] for written in lineage.outputs]


def emitted(tmp_path, monkeypatch, event_type):
    """Run the example DAG in a process of its own, since the provider reads its settings once; return the event."""
    file = tmp_path / "events.jsonl"
    transport = {"type": "file", "log_file_path": str(file), "append": True}
    monkeypatch.setenv("AIRFLOW__OPENLINEAGE__TRANSPORT", json.dumps(transport))
    command = ["dags", "test", "nrllm_observed_outcomes", datetime.fromtimestamp(END, UTC).isoformat()]
    subprocess.run([sys.executable, "-m", "airflow", *command], capture_output=True, text=True, check=False)
    events = [json.loads(line) for line in file.read_text().splitlines()]
    job = "nrllm_observed_outcomes.derive_outcomes"
    (event,) = (event for event in events if (event["eventType"], event["job"]["name"]) == (event_type, job))
    return event


@pytest.mark.parametrize("site", ["mariadb"], indirect=True)
def test_the_openlineage_provider_emits_it(site, airflow_db, tmp_path, monkeypatch):
    site.define_connection("nrllm_default")
    add_run(site.engine, "one", made=END - 8 * DAY, writes=[END - 7 * DAY - 60])
    event = emitted(tmp_path, monkeypatch, "COMPLETE")
    assert [f"typo3.{table}" for table in TABLES] == [read["name"] for read in event["inputs"]]
    assert 1 == event["outputs"][0]["outputFacets"]["outputStatistics"]["rowCount"]
    assert 1 == event["run"]["facets"]["nrllm_observedOutcomes"]["runsAnswered"]


def test_the_openlineage_provider_emits_the_tables_of_a_task_that_failed(
    make_site_to_change, airflow_db, tmp_path, monkeypatch
):
    site = make_site_to_change("mariadb")
    site.define_connection("nrllm_default")
    with site.engine.begin() as connection:
        connection.execute(text("DROP TABLE tx_nrllm_call_outcome"))
    event = emitted(tmp_path, monkeypatch, "FAIL")
    assert [f"typo3.{table}" for table in TABLES[:4]] == [read["name"] for read in event["inputs"]]
    assert ["typo3.tx_nrllm_call_outcome"] == [written["name"] for written in event["outputs"]]


@pytest.mark.parametrize("site", ["sqlite"], indirect=True)
def test_a_derivation_asks_for_nothing_of_openlineage(site):
    site.define_connection("nrllm_default")
    add_run(site.engine, "old", made=END - 90 * DAY, writes=[END - 80 * DAY])
    done = subprocess.run([sys.executable, "-c", _DERIVE_WITHOUT], capture_output=True, text=True, check=False)
    assert 0 == done.returncode, done.stderr
    assert "[]" == done.stdout.splitlines()[-1]
    assert [("old", "accepted_unchanged")] == outcome_rows(site.engine)
