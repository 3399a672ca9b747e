"""A backfill by a real Airflow: its scheduler, its executor and its command line."""

import json
import time
from datetime import UTC, datetime, timedelta

import airflow
import pytest
from packaging.version import Version
from sqlalchemy import text

from airflow_provider_nrllm.operators.outcomes import NrLlmDeriveOutcomesOperator
from tests.typo3.runs import DAY, add_edit, add_run
from tests.typo3.scheduler import RealAirflow, RealAirflow2
from tests.typo3.tables import empty_tables, outcome, outcome_rows

#: A midnight, when the schedule's data intervals end.
END = int(time.time()) // DAY * DAY - DAY
AIRFLOW = Version(airflow.__version__)
TEN_DAYS = [datetime.fromtimestamp(END - days * DAY, UTC) for days in range(10, 0, -1)]


#: Those that are asked for here, and that this Airflow can have.
DAG_IDS = ["nrllm_observed_outcomes"]
if Version("3.2") <= AIRFLOW:
    DAG_IDS += ["nrllm_partitioned", "nrllm_after_each_partition"]


@pytest.fixture(scope="module")
def real_airflow(tmp_path_factory, mariadb_server, request):
    """A running Airflow whose default connection is the site on MariaDB."""
    directory = tmp_path_factory.mktemp("airflow")
    connections = {"nrllm_default": mariadb_server.connection}
    if AIRFLOW < Version("3"):
        server = request.getfixturevalue("postgres_server")
        with server.engine(isolation_level="AUTOCOMMIT").connect() as connection:
            connection.execute(text("CREATE DATABASE airflow_metadata"))
        metadata = server.url.set(database="airflow_metadata").render_as_string(hide_password=False)
        running = RealAirflow2(directory, connections, metadata)
    else:
        running = RealAirflow(directory, connections, DAG_IDS)
    try:
        running.start()
        yield running
    finally:
        running.stop()


@pytest.fixture
def busy_site(mariadb_server):
    """A site where runs settle every three hours, over ten days and a day around them; a third are edited."""
    engine = mariadb_server.engine()
    empty_tables(engine)
    for number in range(96):
        settled = END - 11 * DAY + number * 3 * 3600
        add_run(engine, f"run-{number:02}", made=settled - 7 * DAY - 60, writes=[settled - 7 * DAY])
        if number % 3 == 0:
            add_edit(engine, number + 1, settled - DAY)
    return engine


def test_ten_days_by_several_runs_at_once_give_the_rows_of_one_run_over_the_whole_range(
    real_airflow, busy_site, mariadb_server, monkeypatch
):
    real_airflow.backfill("nrllm_observed_outcomes", TEN_DAYS[0], TEN_DAYS[-1])
    assert real_airflow.states("nrllm_observed_outcomes") == ["success"] * 10
    assert real_airflow.most_at_once("nrllm_observed_outcomes") > 1
    by_backfill = outcome_rows(busy_site)

    real_airflow.backfill("nrllm_observed_outcomes", TEN_DAYS[0], TEN_DAYS[-1], again=True)
    assert real_airflow.states("nrllm_observed_outcomes") == ["success"] * 10
    assert outcome_rows(busy_site) == by_backfill

    with busy_site.begin() as connection:
        connection.execute(outcome.delete())
    monkeypatch.setenv("AIRFLOW_CONN_WHOLE_RANGE", json.dumps(mariadb_server.connection))
    NrLlmDeriveOutcomesOperator(
        task_id="derive",
        nrllm_conn_id="whole_range",
        interval_start=TEN_DAYS[0],
        interval_end=TEN_DAYS[-1] + timedelta(1),
    ).execute({})
    assert outcome_rows(busy_site) == by_backfill
    assert 80 == len(by_backfill)


# Airflow backfills partitions since 3.3. On an older one there is nothing to ask; that the example then defines
# no DAG, where there are no partitions at all, test_example_dags.py asks.
if Version("3.3") <= AIRFLOW:

    def test_partitions_are_backfilled_and_each_is_handed_on_once(real_airflow, busy_site):
        last_four = TEN_DAYS[-4:]
        real_airflow.backfill("nrllm_partitioned", last_four[0], last_four[-1])
        assert real_airflow.states("nrllm_partitioned") == ["success"] * 4
        assert [uuid for uuid, _ in outcome_rows(busy_site)] == [f"run-{number:02}" for number in range(56, 88)]

        keys = [day.strftime("%Y-%m-%dT%H:%M:%S") for day in last_four]
        events = {
            key: json.loads(extra)
            for key, extra in real_airflow.query(
                "SELECT partition_key, extra FROM asset_event WHERE partition_key IS NOT NULL"
            )
        }
        assert sorted(events) == keys
        assert {8} == {extra["runs_answered"] for extra in events.values()}

        real_airflow.follow_schedules("nrllm_after_each_partition")
        real_airflow.wait(lambda: real_airflow.states("nrllm_after_each_partition").count("success") == 4)
        runs = real_airflow.query("SELECT partition_key FROM dag_run WHERE dag_id = 'nrllm_after_each_partition'")
        assert sorted(key for (key,) in runs) == keys
