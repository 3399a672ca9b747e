"""Each example DAG, run by Airflow in this process."""

import time
from datetime import UTC, datetime, timedelta

import airflow
import pytest
from airflow.providers.common.compat.sdk import DAG, task
from packaging.version import Version
from sqlalchemy import select

from airflow_provider_nrllm.operators.purge import NrLlmPurgeGuardOperator, NrLlmPurgeOperator
from tests.typo3 import a2a_tables
from tests.typo3.command import StandIn
from tests.typo3.dags import DAGS, make_known, run_dag, states_of
from tests.typo3.runs import DAY, add_run
from tests.typo3.tables import outcome_rows, run

pytestmark = pytest.mark.usefixtures("airflow_db")

AIRFLOW = Version(airflow.__version__)

#: The midnight before yesterday, when the schedule's data interval ended.
END = int(time.time()) // DAY * DAY - DAY
MOMENT = datetime.fromtimestamp(END, UTC)

PARTITIONED = ["nrllm_partitioned", "nrllm_after_each_partition"]
PURGES = ["purge_governance", "purge_privacy", "purge_session", "purge_telemetry"]

on_sqlite = pytest.mark.parametrize("site", ["sqlite"], indirect=True)


@pytest.fixture
def typo3(tmp_path):
    """A stand-in for TYPO3's command line."""
    return StandIn(tmp_path)


@pytest.fixture
def purges_dag(load_dag):
    """Return a function that returns the DAG of derivation and purges, its tasks changed."""

    def load(**of_every_task):
        dag = load_dag("nrllm_outcomes_and_purges")
        for operator in dag.tasks:
            for name, value in of_every_task.items():
                setattr(operator, name, value)
        return dag

    return load


def run_purges(typo3, dag, moment=MOMENT):
    return states_of(run_dag(dag, moment, run_conf={"typo3_command": typo3.command}))


def test_partitions_come_with_airflow_3_2_and_are_no_import_error_before(load_dag):
    found = [load_dag(name, DAGS / "nrllm_partitioned.py") for name in PARTITIONED]
    assert [dag is not None for dag in found] == [Version("3.2") <= AIRFLOW] * 2


@on_sqlite
def test_the_purges_run_after_a_derivation_that_left_nothing(site, typo3, purges_dag):
    site.define_connection("nrllm_default")
    add_run(site.engine, "old", made=END - 40 * DAY, writes=[END - 7 * DAY - 60])
    # The site serves no A2A clients.
    a2a_tables.metadata.drop_all(site.engine)
    states = run_purges(typo3, purges_dag(retries=0))
    assert "skipped" == states.pop("purge_a2a")
    assert {"success"} == set(states.values())
    assert [("old", "accepted_unchanged")] == outcome_rows(site.engine)
    assert sorted(typo3.calls) == [
        ["--ansi", f"nrllm:{category}:purge", "--days=30"]
        for category in ("governance", "privacy", "session", "telemetry")
    ]


def test_a_purge_takes_what_is_answered_and_not_what_is_watched(site, typo3, purges_dag):
    site.define_connection("nrllm_default")
    typo3.write(
        then="if sys.argv[-2] == 'nrllm:privacy:purge':\n"
        "    from sqlalchemy import create_engine\n"
        "    from tests.typo3.runs import purge_runs\n"
        f"    engine = create_engine({site.engine.url.render_as_string(hide_password=False)!r})\n"
        f"    print(purge_runs(engine, made_before={int(time.time()) - 30 * DAY}), 'runs')\n"
    )
    add_run(site.engine, "old", made=END - 40 * DAY, writes=[END - 7 * DAY - 60])
    states = run_purges(typo3, purges_dag(retries=0))
    assert "success" == states["purge_privacy"]
    assert [] == uuids(site)
    # Approved late: its last write is still watched when it is old enough to be purged.
    add_run(site.engine, "late", made=END - 40 * DAY, writes=[END - 7 * DAY + 60])
    states = run_purges(typo3, purges_dag(retries=0))
    assert {"skipped"} == {states[purge] for purge in PURGES}
    assert ["late"] == uuids(site)
    # The next day's derivation answers it, and the purge takes it.
    states = run_purges(typo3, purges_dag(retries=0), MOMENT + timedelta(days=1))
    assert "success" == states["purge_privacy"]
    assert [] == uuids(site)
    assert [("late", "accepted_unchanged"), ("old", "accepted_unchanged")] == outcome_rows(site.engine)


@on_sqlite
def test_a2a_tasks_go_with_the_runs_that_were_purged(a2a_site, typo3, purges_dag):
    a2a_site.define_connection("nrllm_default")
    a2a_tables.add_task(a2a_site.engine, 1)
    a2a_tables.add_task(a2a_site.engine, 2, run=4711)
    states = run_purges(typo3, purges_dag(retries=0))
    assert "success" == states["purge_a2a"]
    assert [1] == [row["uid"] for row in a2a_tables.rows_of(a2a_site.engine, a2a_tables.task)]


def uuids(site):
    """Return the uuids of the runs that are there."""
    with site.engine.connect() as connection:
        return list(connection.execute(select(run.c.uuid)).scalars())


@on_sqlite
def test_a_run_at_risk_skips_the_purges(site, typo3, purges_dag):
    site.define_connection("nrllm_default")
    add_run(site.engine, "late", made=END - 40 * DAY, writes=[END - 3 * DAY])
    states = run_purges(typo3, purges_dag(retries=0))
    assert "success" == states.pop("derive_outcomes")
    assert {"skipped"} == set(states.values())
    assert [] == typo3.calls


@on_sqlite
def test_a_retention_that_airflow_resolves_later_is_checked_later(site):
    site.define_connection("nrllm_default")

    @task
    def keep():
        return 20

    with DAG(dag_id="resolved_later", schedule=None, start_date=MOMENT, params={"outcomes": 40}) as dag:
        kept = keep()
        NrLlmPurgeGuardOperator(task_id="guard", retention=kept, outcome_retention=dag.param("outcomes"))
    make_known(dag)
    done = run_dag(dag, MOMENT)
    assert {"keep": "success", "guard": "success"} == states_of(done)
    (guard,) = (instance for instance in done.get_task_instances() if instance.task_id == "guard")
    assert 20 == guard.xcom_pull(task_ids="guard")["retention_days"]


@on_sqlite
def test_skip_skips_what_comes_after_by_the_default_rule_and_nothing_else(site):
    site.define_connection("nrllm_default")
    add_run(site.engine, "late", made=END - 40 * DAY, writes=[END - 3 * DAY])
    seen = []

    @task(trigger_rule="all_done")
    def always(figures):
        seen.append(figures)

    with DAG("beside_a_guard", start_date=MOMENT - timedelta(days=9), schedule=None) as dag:
        guard = NrLlmPurgeGuardOperator(task_id="guard", on_unanswered="skip")
        first, second, _ = (
            NrLlmPurgeOperator(task_id=name, category="session", command="true")
            for name in ("first", "second", "beside")
        )
        guard >> first >> second
        always(guard.output)
    make_known(dag)
    assert {
        "guard": "skipped",
        "first": "skipped",
        "second": "skipped",
        "beside": "success",
        "always": "success",
    } == states_of(run_dag(dag, MOMENT))
    assert 1 == seen[0]["unanswered_runs"]


@on_sqlite
def test_a_failed_derivation_blocks_the_purges(site, typo3, purges_dag, tmp_path):
    site.define_connection("nrllm_default", host=str(tmp_path / "no_tables.sqlite"))
    states = run_purges(typo3, purges_dag(retries=0))
    assert "failed" == states.pop("derive_outcomes")
    assert {"upstream_failed"} == set(states.values())
    assert [] == typo3.calls


@on_sqlite
@pytest.mark.parametrize(("exit_code", "calls_each"), [(1, 2), (2, 1), (0, 1)])
def test_a_purge_that_fails_is_retried_unless_it_refused_an_option(site, typo3, purges_dag, exit_code, calls_each):
    site.define_connection("nrllm_default")
    typo3.write(exit_code=exit_code)
    states = run_purges(typo3, purges_dag(retries=1, retry_delay=timedelta(0)))
    assert {states[purge] for purge in PURGES} == {"failed" if exit_code else "success"}
    assert len(typo3.calls) == 4 * calls_each


if Version("3.2") <= AIRFLOW:

    @on_sqlite
    def test_run_by_hand_the_partitioned_dags_derive_all_and_hand_on_nothing(site, load_dag):
        # dag.test() knows no partitions; test_backfill.py runs them.
        site.define_connection("nrllm_default")
        add_run(site.engine, "old", made=END - 90 * DAY, writes=[END - 80 * DAY])
        derive, after = (load_dag(name, DAGS / "nrllm_partitioned.py") for name in PARTITIONED)
        assert {"derive_outcomes": "success"} == states_of(run_dag(derive, None))
        assert {"report": "success"} == states_of(run_dag(after, None))
        assert [("old", "accepted_unchanged")] == outcome_rows(site.engine)


@on_sqlite
def test_many_sites_are_derived_each_in_a_task_named_after_it(site, load_dag, tmp_path):
    dag = load_dag("nrllm_many_sites")
    site.define_connection("nrllm_site_a")
    # The other site's database has no tables.
    site.define_connection("nrllm_site_b", host=str(tmp_path / "no_tables.sqlite"))
    add_run(site.engine, "of site a", made=END - 8 * DAY, writes=[END - 7 * DAY - 60])
    for operator in dag.tasks:
        operator.partial_kwargs["retries"] = 0
    states, names = states_of(run_dag(dag, MOMENT)), rendered_names(dag.dag_id)
    assert {"derive_outcomes[0]": "success", "derive_outcomes[1]": "failed"} == states
    assert ["nrllm_site_a", "nrllm_site_b"] == names
    assert [("of site a", "accepted_unchanged")] == outcome_rows(site.engine)


def rendered_names(dag_id):
    """Return the names of a DAG's mapped tasks, as the web interface shows them."""
    from airflow.models.taskinstance import TaskInstance
    from airflow.utils.session import create_session

    with create_session() as session:
        query = select(TaskInstance.rendered_map_index).where(TaskInstance.dag_id == dag_id)
        return list(session.scalars(query.order_by(TaskInstance.map_index)))
