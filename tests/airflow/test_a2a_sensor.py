"""The sensor of A2A tasks: it waits for the end, wherever it waits, and tells the state and nothing else."""

from __future__ import annotations

import asyncio
import logging
import os
import subprocess
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import airflow
import pendulum
import pytest
from airflow.providers.common.compat.sdk import DAG, TaskDeferred
from packaging.version import Version
from sqlalchemy import text, update

from airflow_provider_nrllm.exceptions import NrLlmA2ATaskNotFoundError, NrLlmSchemaError
from airflow_provider_nrllm.sensors.a2a import NrLlmA2ATaskSensor
from airflow_provider_nrllm.triggers.a2a import NrLlmA2ATaskTrigger
from benchmarks.plans import recorded
from tests.typo3.a2a_results import result, seal
from tests.typo3.a2a_sites import hook_of
from tests.typo3.a2a_tables import add_task, create_a2a_tables, empty_a2a_tables, metadata, task
from tests.typo3.dags import make_known, run_dag, states_of
from tests.typo3.scheduler import RealAirflow
from tests.typo3.servers import free_port
from tests.typo3.sites import Site

ENDS = ["completed", "failed", "canceled", "rejected"]


def sensor(site: Site, task_id: str = "task-1", **arguments: Any) -> NrLlmA2ATaskSensor:
    return NrLlmA2ATaskSensor(task_id="wait", a2a_task_id=task_id, nrllm_conn_id=site.conn_id, **arguments)


def trigger(site: Site, task_id: str = "task-1", conn_id: str | None = None) -> NrLlmA2ATaskTrigger:
    """Return the trigger as a triggerer makes it: of what another had written down."""
    made = NrLlmA2ATaskTrigger(a2a_task_id=task_id, nrllm_conn_id=conn_id or site.conn_id, poke_interval=0.01)
    path, arguments = made.serialize()
    assert f"{NrLlmA2ATaskTrigger.__module__}.{NrLlmA2ATaskTrigger.__qualname__}" == path
    return NrLlmA2ATaskTrigger(**arguments)


async def first_event(waiting: NrLlmA2ATaskTrigger) -> Any:
    return (await anext(waiting.run())).payload


def end(site: Site, state: str) -> None:
    with site.engine.begin() as connection:
        connection.execute(update(task).values(state=state))


@pytest.mark.parametrize("state", ENDS)
@pytest.mark.parametrize("deferrable", [True, False])
def test_an_end_of_whatever_kind_ends_the_wait_and_is_what_the_sensor_returns(
    a2a_site: Site, state: str, deferrable: bool
) -> None:
    add_task(a2a_site.engine, state=state)
    assert state == sensor(a2a_site, deferrable=deferrable).execute({})


def test_it_reads_the_state_alone(a2a_site: Site) -> None:
    hook_of(a2a_site).complete(add_task(a2a_site.engine), result(), seal=seal)
    waiting = sensor(a2a_site)
    with recorded(waiting.hook.database.engine) as statements:
        waiting.execute({})
    read = [one.text for one in statements if "a2a_task.task_id =" in one.text]
    assert ["SELECT tx_nrllm_a2a_task.state"] == [one.partition(" \nFROM")[0] for one in read]


@pytest.mark.parametrize("deferrable", [True, False])
def test_a_task_that_is_not_there_is_not_waited_for(a2a_site: Site, deferrable: bool) -> None:
    add_task(a2a_site.engine, 2, run=4711)
    for task_id in ("task-1", "task-2", "TASK-1", "\x00"):
        with pytest.raises(NrLlmA2ATaskNotFoundError, match=r"has no A2A task .* or it went with its run"):
            sensor(a2a_site, task_id, deferrable=deferrable).execute({})


def test_an_installation_without_the_tables_is_told_which_are_missing(site: Site) -> None:
    metadata.drop_all(site.engine)
    with pytest.raises(NrLlmSchemaError, match="tx_nrllm_a2a_task"):
        sensor(site).execute({})


def test_it_waits_in_the_triggerer_no_longer_than_its_timeout(a2a_site: Site) -> None:
    add_task(a2a_site.engine)
    waiting = sensor(a2a_site, deferrable=True, timeout=3600, poke_interval=30)
    with pytest.raises(TaskDeferred) as deferred:
        waiting.execute({})
    assert timedelta(seconds=3590) < deferred.value.timeout <= timedelta(seconds=3600)
    # It wakes up for nothing, and waits for what is left.
    kwargs = {**deferred.value.kwargs, "until": pendulum.now("UTC").add(seconds=60).isoformat()}
    with pytest.raises(TaskDeferred) as again:
        waiting.execute_complete({}, {"seen": "OperationalError"}, **kwargs)
    assert timedelta(seconds=50) < again.value.timeout <= timedelta(seconds=60)
    assert deferred.value.trigger.serialize() == again.value.trigger.serialize()
    end(a2a_site, "canceled")
    assert "canceled" == waiting.execute_complete({}, {"seen": "canceled"}, **kwargs)


@pytest.mark.parametrize("default", ["True", "False"])
def test_where_it_waits_is_airflows_setting_to_say(default: str) -> None:
    code = (
        "from airflow_provider_nrllm.sensors.a2a import NrLlmA2ATaskSensor;"
        "print('deferrable:', NrLlmA2ATaskSensor(task_id='wait', a2a_task_id='task-1').deferrable)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "AIRFLOW__OPERATORS__DEFAULT_DEFERRABLE": default},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert f"deferrable: {default}" in done.stdout


# What Airflow does is the same on each engine.
@pytest.mark.parametrize("site", ["sqlite"], indirect=True)
@pytest.mark.usefixtures("airflow_db")
def test_a_dag_gets_the_state(a2a_site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    # Airflow 2.11 looks whether its executor, which is not used here, would go with SQLite.
    monkeypatch.setenv("_AIRFLOW__SKIP_DATABASE_EXECUTOR_COMPATIBILITY_CHECK", "1")
    add_task(a2a_site.engine, state="rejected")
    with DAG(dag_id="a2a_sensor", schedule=None, start_date=pendulum.datetime(2026, 1, 1, tz="UTC")) as dag:
        waiting = sensor(a2a_site, "{{ params.of }}", params={"of": "task-1"}, deferrable=True)
    make_known(dag)
    done = run_dag(dag, pendulum.datetime(2026, 1, 2, tz="UTC"))
    assert {"wait": "success"} == states_of(done)
    (instance,) = done.get_task_instances()
    assert "rejected" == instance.xcom_pull(task_ids=waiting.task_id)


def test_the_trigger_waits_for_the_end_and_says_what_it_saw(a2a_site: Site) -> None:
    add_task(a2a_site.engine)

    async def wait() -> Any:
        waiting = asyncio.create_task(first_event(trigger(a2a_site)))
        # Other triggers go on meanwhile.
        done, _ = await asyncio.wait({waiting}, timeout=0.2)
        assert set() == done
        await asyncio.to_thread(end, a2a_site, "failed")
        return await asyncio.wait_for(waiting, 30)

    assert {"seen": "failed"} == asyncio.run(wait())


def test_what_the_trigger_cannot_ask_about_wakes_the_task_up(a2a_site: Site) -> None:
    assert {"seen": "TaskNotFoundError"} == asyncio.run(first_event(trigger(a2a_site, "not there")))
    assert {"seen": "NrLlmConnectionError"} == asyncio.run(first_event(trigger(a2a_site, conn_id="not_there")))


def test_a_database_that_is_away_is_asked_again_and_logged_once(
    a2a_server: Site, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    add_task(a2a_server.engine, state="completed")
    a2a_server.define_connection("nrllm_away", port=free_port(), host="127.0.0.1")

    async def wait() -> Any:
        waiting = asyncio.create_task(first_event(trigger(a2a_server, conn_id="nrllm_away")))
        done, _ = await asyncio.wait({waiting}, timeout=0.5)
        assert set() == done
        a2a_server.define_connection("nrllm_away")
        return await asyncio.wait_for(waiting, 30)

    with caplog.at_level(logging.WARNING):
        assert {"seen": "completed"} == asyncio.run(wait())
    # Airflow 2.11 hands a line to the handlers, and may print it too; Airflow 3 prints it.
    told = [text.count("cannot be asked (OperationalError") for text in (caplog.text, capsys.readouterr().out)]
    assert 1 == max(told)


DAG_FILE = """
import pendulum
from airflow.sdk import DAG
from airflow_provider_nrllm.sensors.a2a import NrLlmA2ATaskSensor

with DAG(dag_id="waits", schedule="@once", start_date=pendulum.datetime(2026, 1, 1, tz="UTC")):
    NrLlmA2ATaskSensor(task_id="wait", a2a_task_id="task-1", deferrable=True, poke_interval=1)
"""


@pytest.mark.skipif(Version("3") > Version(airflow.__version__), reason="the processes are those of Airflow 3")
def test_it_goes_on_waiting_where_a_triggerer_was_killed(
    make_site: Callable[[str], Site], postgres_server: Any, tmp_path: Path
) -> None:
    site = make_site("mariadb")
    create_a2a_tables(site.engine)
    empty_a2a_tables(site.engine)
    add_task(site.engine)
    (tmp_path / "dags").mkdir()
    (tmp_path / "dags" / "waits.py").write_text(DAG_FILE)
    with postgres_server.engine(isolation_level="AUTOCOMMIT").connect() as connection:
        connection.execute(text("CREATE DATABASE airflow_of_the_sensor"))
    metadata_url = postgres_server.url.set(database="airflow_of_the_sensor").render_as_string(hide_password=False)
    running = RealAirflow(
        tmp_path, {"nrllm_default": site.connection}, ["waits"], metadata=metadata_url, dags=tmp_path / "dags"
    )
    running.environment["AIRFLOW__SCHEDULER__USE_JOB_SCHEDULE"] = "True"
    # How soon another triggerer takes over.
    running.environment["AIRFLOW__TRIGGERER__TRIGGERER_HEALTH_CHECK_THRESHOLD"] = "5"
    running.environment["AIRFLOW__TRIGGERER__JOB_HEARTBEAT_SEC"] = "1"
    waiting = "SELECT count(*) FROM trigger WHERE triggerer_id IS NOT NULL"
    try:
        running.start()
        running.schedule()
        running.watch_triggers()
        running.wait(lambda: [(1,)] == running.query(waiting))
        running.kill("triggerer")
        end(site, "canceled")
        running.watch_triggers()
        running.wait(lambda: ["success"] == running.states("waits"))
        ((state,),) = running.query("SELECT value FROM xcom WHERE task_id = 'wait' AND key = 'return_value'")
        assert "canceled" in str(state)
    finally:
        running.stop()
