"""The guard in front of a purge, on every engine: runs at the edges, and what it does about them."""

import json
from datetime import UTC, datetime, timedelta

import pytest
import time_machine
from airflow.providers.common.compat.sdk import AirflowFailException, AirflowSkipException
from sqlalchemy import insert, select, update

from airflow_provider_nrllm.exceptions import NrLlmUnansweredError
from airflow_provider_nrllm.hooks.nrllm import NrLlmHook
from airflow_provider_nrllm.operators.outcomes import NrLlmDeriveOutcomesOperator
from airflow_provider_nrllm.operators.purge import NrLlmPurgeGuardOperator
from airflow_provider_nrllm.purge.reading import PurgeReader
from tests.typo3.runs import DAY, add_run, purge_runs
from tests.typo3.tables import backend_user, event, history, outcome_rows, run

NOW = 1_800_000_000
OLD = NOW - 30 * DAY - 1


@pytest.fixture
def logged(caplog, capsys):
    """Return what was logged: Airflow 3 writes it out itself, Airflow 2 by the standard library."""
    return lambda: caplog.text + capsys.readouterr().out


def guard(site, *, now=NOW, on_unanswered="warn", context=None, **arguments):
    """Run the guard at a moment."""
    operator = NrLlmPurgeGuardOperator(
        task_id="guard", nrllm_conn_id=site.conn_id, on_unanswered=on_unanswered, **arguments
    )
    with time_machine.travel(datetime.fromtimestamp(now, UTC), tick=False):
        return operator.execute(context or {})


def risk(site, **arguments):
    """Return the guard's counts: at risk, settled, not settled."""
    figures = guard(site, **arguments)
    return figures["unanswered_runs"], figures["settled"], figures["not_settled"]


def test_an_old_run_with_a_write_and_no_outcome_is_at_risk(site):
    add_run(site.engine, "old", made=OLD, writes=[OLD + 60])
    assert (1, 1, 0) == risk(site)


def test_a_run_made_as_long_ago_as_the_retention_is_not_deleted_yet(site):
    add_run(site.engine, "edge", made=NOW - 30 * DAY, writes=[NOW - 30 * DAY])
    assert (0, 0, 0) == risk(site)


def test_the_margin_counts_what_gets_old_enough_until_the_purge(site):
    add_run(site.engine, "edge", made=NOW - 30 * DAY + 3599, writes=[NOW - 29 * DAY])
    assert (1, 1, 0) == risk(site, margin=timedelta(hours=1))


@pytest.mark.parametrize("outcome", ["accepted_unchanged", "edited", "discarded", "unknown"])
def test_an_answered_run_is_not_at_risk(site, outcome):
    add_run(site.engine, "old", made=OLD, writes=[OLD], answered=outcome)
    assert (0, 0, 0) == risk(site)


@pytest.mark.parametrize("outcome", ["helpful", "of_a_later_version"])
def test_a_rating_or_an_unknown_value_is_no_answer(site, outcome):
    add_run(site.engine, "old", made=OLD, writes=[OLD], answered=outcome)
    assert (1, 1, 0) == risk(site)


def test_a_run_without_a_write_or_without_a_uuid_is_never_answered_and_so_not_at_risk(site):
    add_run(site.engine, "reader", made=OLD)
    add_run(site.engine, "", made=OLD, writes=[OLD])
    assert (0, 0, 0) == risk(site)


def test_a_run_still_waiting_is_not_deleted_and_so_not_at_risk(site):
    add_run(site.engine, "waits", made=OLD, writes=[OLD], status="waiting_for_approval")
    assert (0, 0, 0) == risk(site)


def test_a_run_approved_late_has_not_settled_and_the_date_is_told(site):
    # Made on day 0, its last write on day 25; the purge comes on day 30, the window closes on day 32.
    add_run(site.engine, "late", made=OLD, writes=[OLD, OLD + 25 * DAY])
    figures = guard(site)
    assert (0, 1) == (figures["settled"], figures["not_settled"])
    assert figures["settled_by"] == datetime.fromtimestamp(OLD + 32 * DAY, UTC).isoformat()


def test_with_a_retention_of_window_and_partition_a_run_of_one_moment_has_settled_but_is_not_answered(site):
    # Written at once, closed after 7 days; its partition of a day ends when the purge comes.
    made = NOW - 8 * DAY - 1
    add_run(site.engine, "edge", made=made, writes=[made])
    figures = guard(site, retention=8)
    assert (1, 0) == (figures["settled"], figures["not_settled"])
    assert any("Runs are kept 8 days" in sentence for sentence in figures["settings_to_mend"])


def test_runs_that_share_a_uuid_are_one_and_wait_for_the_one_that_goes_on(site):
    add_run(site.engine, "twice", made=OLD, writes=[OLD])
    add_run(site.engine, "twice", made=OLD - 9, writes=[OLD])
    assert (1, 1, 0) == risk(site)
    add_run(site.engine, "twice", made=OLD, writes=[OLD], status="running")
    figures = guard(site)
    assert (1, 1, None) == (figures["unanswered_runs"], figures["not_settled"], figures["settled_by"])


def test_a_run_without_a_date_is_not_deleted_and_hides_no_run_of_its_uuid(site_to_change):
    add_run(site_to_change.engine, "old", made=OLD, writes=[OLD + 60])
    add_run(site_to_change.engine, "old", made=0, writes=[OLD])
    site_to_change.make_nullable("tx_nrllm_agentrun", "crdate", "INT")
    with site_to_change.engine.begin() as connection:
        connection.execute(update(run).where(run.c.crdate == 0).values(crdate=None))
    assert (1, 1, 0) == risk(site_to_change)


@pytest.mark.parametrize("page_size", [1, 2, 3, 100])
def test_pages_of_any_size_count_every_run_once(site, page_size):
    for number in range(5):
        add_run(site.engine, f"same moment {number}", made=OLD, writes=[OLD])
    add_run(site.engine, "same moment 0", made=OLD, writes=[OLD])
    add_run(site.engine, "answered", made=OLD - 1, writes=[OLD], answered="edited")
    reader = PurgeReader(NrLlmHook(site.conn_id).database, page_size)
    assert 5 == reader.at_risk(made_before=NOW, window=7 * DAY, now=NOW).settled


def test_what_the_guard_counts_is_what_a_purge_would_lose(site):
    add_run(site.engine, "old", made=OLD, writes=[OLD])
    add_run(site.engine, "waits", made=OLD, writes=[OLD], status="waiting_for_input")
    add_run(site.engine, "young", made=OLD + 1, writes=[OLD + 1])
    assert 1 == guard(site)["unanswered_runs"]
    assert 1 == purge_runs(site.engine, made_before=NOW - 30 * DAY)


def test_after_a_derivation_nothing_settled_is_at_risk(site):
    add_run(site.engine, "old", made=OLD, writes=[OLD])
    add_run(site.engine, "late", made=OLD, writes=[OLD + 25 * DAY])
    with time_machine.travel(datetime.fromtimestamp(NOW, UTC), tick=False):
        NrLlmDeriveOutcomesOperator(task_id="derive", nrllm_conn_id=site.conn_id).execute({})
    assert (1, 0, 1) == risk(site)


def test_history_reaches_back_to_the_row_with_the_smallest_uid(site):
    assert PurgeReader(NrLlmHook(site.conn_id).database).oldest_history() is None
    with site.engine.begin() as connection:
        for uid, stamp in ((9, NOW - 3), (7, NOW - 5), (12, NOW)):
            connection.execute(insert(history).values(uid=uid, tstamp=stamp, actiontype=2, tablename="pages", recuid=1))
    assert PurgeReader(NrLlmHook(site.conn_id).database).oldest_history() == NOW - 5


def test_a_history_shorter_than_the_window_is_warned_of(site, logged):
    add_run(site.engine, "young", made=NOW - 3 * DAY, writes=[NOW - 3 * DAY])
    (sentence,) = guard(site)["settings_to_mend"]
    assert sentence.startswith("sys_history reaches back 3 days")
    assert sentence in logged()


def test_fail_fails_with_the_figures_and_is_not_retried(site):
    add_run(site.engine, "old", made=OLD, writes=[OLD])
    add_run(site.engine, "late", made=OLD, writes=[OLD + 25 * DAY])
    with pytest.raises(NrLlmUnansweredError, match=r"2 runs with writes.*1 have settled.*1 .* have not settled yet"):
        guard(site, on_unanswered="fail")
    assert issubclass(NrLlmUnansweredError, AirflowFailException)


def test_warn_says_so_and_goes_on(site, logged):
    add_run(site.engine, "old", made=OLD, writes=[OLD])
    assert 1 == guard(site, on_unanswered="warn")["unanswered_runs"]
    assert "The purge goes on." in logged()


@pytest.mark.parametrize("on_unanswered", ["skip", "fail", "warn"])
def test_with_nothing_at_risk_the_guard_passes(site, on_unanswered):
    assert 0 == guard(site, on_unanswered=on_unanswered)["unanswered_runs"]


def test_skip_leaves_its_figures_where_a_return_value_is(site):
    add_run(site.engine, "old", made=OLD, writes=[OLD])
    pushed = {}

    class TaskInstance:
        @staticmethod
        def xcom_push(key, value):
            pushed[key] = value

    with pytest.raises(AirflowSkipException, match="1 runs with writes"):
        guard(site, on_unanswered="skip", context={"ti": TaskInstance})
    assert 1 == pushed["return_value"]["unanswered_runs"]


@pytest.mark.parametrize(
    "arguments",
    [
        {"retention": 0},
        {"retention": "a month"},
        {"outcome_retention": 0},
        {"window": 0},
        {"on_unanswered": "ignore"},
        {"partition": timedelta(days=-1)},
        {"margin": 60},
    ],
    ids=str,
)
def test_an_argument_that_cannot_be_is_refused_when_the_dag_is_parsed(arguments):
    with pytest.raises(ValueError, match="expected"):
        NrLlmPurgeGuardOperator(task_id="guard", **arguments)


def test_a_template_that_renders_no_retention_is_not_retried(site):
    operator = NrLlmPurgeGuardOperator(task_id="guard", nrllm_conn_id=site.conn_id, retention="{{ days }}")
    with pytest.raises(AirflowFailException, match="expected a whole number of days"):
        operator.execute({})


def test_the_guard_changes_nothing(site):
    add_run(site.engine, "old", made=OLD, writes=[OLD])
    guard(site)
    with site.engine.connect() as connection:
        assert ["old"] == [row.uuid for row in connection.execute(select(run.c.uuid))]


SAME_RECORD = json.dumps({"writeTargetTable": "tt_content", "writeTargetUid": 1})


def shared_record(site, *, first, second, answered="accepted_unchanged"):
    """Let the run ``answered`` create a record and the run ``waiting`` write it too."""
    add_run(site.engine, "answered", made=OLD, writes=[first], answered=answered)
    add_run(site.engine, "waiting", made=NOW - DAY, writes=[second], status="waiting_for_approval")
    with site.engine.begin() as connection:
        connection.execute(update(event).where(event.c.kind == "tool_write").values(payload=SAME_RECORD))
        connection.execute(update(history).values(recuid=1, actiontype=2))


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        pytest.param(OLD + 10, OLD + 5, 1, id="in the window of the run that waits"),
        pytest.param(OLD + 7 * DAY, OLD, 1, id="at its close"),
        pytest.param(OLD + 7 * DAY + 1, OLD, 0, id="after its close"),
        pytest.param(OLD, OLD + 3600, 1, id="an hour before its write"),
        pytest.param(OLD, OLD + 3601, 0, id="before that"),
    ],
)
def test_a_run_with_an_outcome_is_needed_while_another_that_wrote_its_record_has_none(site, first, second, expected):
    shared_record(site, first=first, second=second)
    figures = guard(site)
    assert (expected, 0) == (figures["needed_by_others"], figures["unanswered_runs"])


def test_a_run_that_is_needed_holds_the_purge_back(site):
    shared_record(site, first=OLD + 10, second=OLD + 5)
    with pytest.raises(NrLlmUnansweredError, match="1 have an outcome, but also changed a record of a run"):
        guard(site, on_unanswered="fail")


def test_a_run_whose_own_rows_are_a_named_machines_is_not_needed(site):
    shared_record(site, first=OLD + 10, second=OLD + 5)
    with site.engine.begin() as connection:
        connection.execute(insert(backend_user).values(uid=9, username="_cli_"))
        connection.execute(update(history).values(userid=9))
    assert 1 == guard(site)["needed_by_others"]
    assert 0 == guard(site, machine_users=["_cli_"])["needed_by_others"]


def test_without_what_is_needed_the_answer_would_be_a_false_edit(site):
    add_run(site.engine, "late", made=OLD, writes=[OLD], finished=NOW - DAY)
    add_run(site.engine, "answered", made=OLD, writes=[OLD + DAY], answered="accepted_unchanged")
    with site.engine.begin() as connection:
        connection.execute(update(event).values(payload=SAME_RECORD))
        connection.execute(update(history).values(recuid=1, actiontype=2))
    assert 1 == guard(site)["needed_by_others"]
    with time_machine.travel(datetime.fromtimestamp(NOW, UTC), tick=False):
        NrLlmDeriveOutcomesOperator(task_id="derive", nrllm_conn_id=site.conn_id).execute({})
    assert ("late", "accepted_unchanged") in outcome_rows(site.engine)
    assert 0 == guard(site)["needed_by_others"]


def test_a_status_and_a_kind_are_compared_to_the_letter(site):
    for number, status in enumerate(("COMPLETED", "completed ", "completed")):
        add_run(site.engine, f"run-{number}", made=OLD, writes=[OLD])
        with site.engine.begin() as connection:
            connection.execute(update(run).where(run.c.uuid == f"run-{number}").values(status=status))
    add_run(site.engine, "no-write", made=OLD, writes=[OLD])
    with site.engine.begin() as connection:
        (uid,) = connection.execute(select(run.c.uid).where(run.c.uuid == "no-write")).scalars()
        connection.execute(
            update(event).where(event.c.run == uid, event.c.kind == "tool_write").values(kind="TOOL_WRITE")
        )
    assert (1, 1, 0) == risk(site)


def test_a_write_without_a_date_stops_no_guard(site_to_change):
    add_run(site_to_change.engine, "old", made=OLD, writes=[OLD])
    site_to_change.make_nullable("tx_nrllm_agentrun_event", "crdate", "INT")
    with site_to_change.engine.begin() as connection:
        connection.execute(update(event).values(crdate=None))
    assert (1, 1, 0) == risk(site_to_change)


def test_a_moment_past_the_year_9999_stops_no_guard(make_site):
    site = make_site("sqlite")
    add_run(site.engine, "old", made=OLD, writes=[10**12])
    assert "9999-12-31T23:59:59+00:00" == guard(site)["settled_by"]
