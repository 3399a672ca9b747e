"""NrLlmDeriveOutcomesOperator: which partition it takes, what it returns, and what bad input gets."""

from __future__ import annotations

import gc
import logging
import re
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest
import time_machine
from airflow.providers.common.compat.sdk import DAG, AirflowException, AirflowFailException

from airflow_provider_nrllm.exceptions import NrLlmPartitionError, NrLlmSettingError
from airflow_provider_nrllm.operators.outcomes import NrLlmDeriveOutcomesOperator
from tests.typo3.loader import load_case
from tests.typo3.tables import outcome_rows
from tests.typo3.worlds import DAY, START, many_runs, run, world

NOW = START + 30 * DAY


def day(number):
    return datetime(2026, 1, number, tzinfo=UTC)


@pytest.fixture
def logged(caplog, capsys):
    """Return a function that tells what was logged: Airflow 3 prints it, Airflow 2 hands it to logging."""
    caplog.set_level(logging.DEBUG)
    return lambda: caplog.text + capsys.readouterr().out


def derive(site, context=None, **arguments):
    with time_machine.travel(NOW, tick=False):
        task = NrLlmDeriveOutcomesOperator(task_id="derive", nrllm_conn_id=site.conn_id, **arguments)
        return task.execute(context or {})


def test_it_returns_plain_counts(site):
    load_case(site.engine, world([run(1), run(2, writes=[{"payload": None, "at": START}])]))
    assert {
        "interval_start": "2026-01-08T00:00:00+00:00",
        "interval_end": "2026-01-09T00:00:00+00:00",
        "window_days": 7,
        "edited_means": "any change",
        "runs_answered": 2,
        "outcomes": {"accepted_unchanged": 1, "edited": 0, "discarded": 0, "unknown": 1},
        "unreadable_writes": 1,
        "several_records": {"runs": 0, "in_several_ways": 0, "ways": {}},
    } == derive(site, interval_start="2026-01-08", interval_end=day(9))


def test_it_counts_the_runs_whose_records_ended_in_more_than_one_way(site, logged):
    both = [{"target": "tt_content:1", "at": START}, {"target": "pages:1", "at": START}]
    alike = [{"target": "tt_content:2", "at": START}, {"target": "pages:2", "at": START}]
    twice = [{"target": "tt_content:3", "at": START}, {"target": "tt_content:3", "at": START + 60}]
    case = world([run(1, writes=both), run(2, writes=alike), run(3, writes=twice)])
    case["history"].append({"uid": 99, "record": "pages:1", "at": START + 600, "action": 2, "workspace": 0})
    load_case(site.engine, case)
    counts = derive(site, interval_start="2026-01-08", interval_end=day(9))["several_records"]
    assert {"runs": 2, "in_several_ways": 1, "ways": {"edited + accepted_unchanged": 1}} == counts
    assert "2 of the runs wrote several records, and 1 of these ended in more than one way" in logged()


@pytest.mark.parametrize(
    ("context", "expected"),
    [
        ({"data_interval_start": day(8), "data_interval_end": day(9)}, (day(8), day(9))),
        ({"data_interval_start": day(9), "data_interval_end": day(9)}, (None, day(9))),
        ({"partition_date": day(8)}, (day(8), day(9))),
        ({"partition_key": "2026-01-08T00:00:00"}, (day(8), day(9))),
        ({}, (None, datetime.fromtimestamp(NOW, UTC))),
    ],
    ids=["interval", "interval without width", "partition date", "partition key", "nothing"],
)
def test_the_context_of_a_run_tells_its_partition(site, context, expected):
    load_case(site.engine, many_runs(1))
    result = derive(site, context)
    assert (result["interval_start"], result["interval_end"]) == tuple(end and end.isoformat() for end in expected)


def test_the_log_says_the_partition_in_utc_and_a_line_a_page(site, logged):
    load_case(site.engine, many_runs(5))
    derive(site, interval_start="2026-01-08T01:00+01:00", interval_end="2026-01-09", page_size=2)
    log = logged()
    assert "Partition [2026-01-08T00:00:00Z, 2026-01-09T00:00:00Z), from the operator's arguments; window 7 days" in log
    # Airflow 2 may hand a line to two handlers, both of which are read here.
    assert [
        "Page 1: 2 runs answered, 2 in all, up to 2026-01-08T00:02:00Z",
        "Page 2: 2 runs answered, 4 in all, up to 2026-01-08T00:04:00Z",
        "Page 3: 1 runs answered, 5 in all, up to 2026-01-08T00:05:00Z",
    ] == list(dict.fromkeys(re.findall(r"Page .*?Z", log)))


def test_an_end_in_the_future_is_refused_and_not_retried(site):
    load_case(site.engine, many_runs(1))
    with pytest.raises(NrLlmPartitionError, match="expected an end in the past") as refused:
        derive(site, interval_start=day(8), interval_end=datetime.fromtimestamp(NOW + 2 * 3600, UTC))
    assert isinstance(refused.value, AirflowFailException)
    assert [] == outcome_rows(site.engine)


@pytest.mark.parametrize(
    "context",
    [{"partition_key": "europe"}, {"partition_key": "2026-02-30"}],
    ids=lambda context: context["partition_key"],
)
def test_a_partition_key_that_is_no_date_is_refused_and_not_retried(site, context):
    with pytest.raises(NrLlmPartitionError, match="expected an ISO 8601"):
        derive(site, context)


@pytest.mark.parametrize(
    "arguments",
    [
        {"window": 0},
        {"window": -7},
        {"window": "7"},
        {"window": 1.5},
        {"window": timedelta(hours=36)},
        {"page_size": 0},
        {"page_size": 5001},
        {"page_size": True},
        {"partition_width": timedelta(0)},
        {"partition_width": timedelta.max},
        {"partition_width": "fortnight"},
        {"partition_width": timedelta(hours=6), "partition_timezone": "Europe/Berlin"},
        {"partition_timezone": "Europe/Netphen"},
        {"window": 1_000_000},
        {"interval_start": "2026-01-02", "interval_end": "2026-01-01"},
        {"interval_start": "2026-01-02"},
        {"interval_end": "yesterday"},
    ],
    ids=str,
)
def test_what_cannot_be_is_refused_when_the_dag_is_parsed(arguments):
    with pytest.raises(ValueError, match="expected"):
        NrLlmDeriveOutcomesOperator(task_id="derive", **arguments)


@pytest.mark.parametrize(
    ("start", "end"), [("2026-01-02", "2026-01-01"), ("tomorrow", "2026-01-01"), ("2026-01-01", "")]
)
def test_a_template_that_renders_what_cannot_be_is_refused_and_not_retried(site, start, end):
    task = NrLlmDeriveOutcomesOperator(
        task_id="derive", nrllm_conn_id=site.conn_id, interval_start="{{ params.a }}", interval_end="{{ params.b }}"
    )
    task.render_template_fields({"params": {"a": start, "b": end}})
    with pytest.raises(NrLlmSettingError, match="expected"):
        task.execute({})


def test_a_run_without_an_interval_renders_no_template_of_one(site):
    # A template of data_interval_start as a default would fail here.
    task = NrLlmDeriveOutcomesOperator(task_id="derive", nrllm_conn_id=site.conn_id)
    task.render_template_fields({})
    assert task.execute({})["interval_start"] is None


def test_no_content_is_in_the_log(site, logged):
    secret = "s3cret text of an editor"
    payload = f'{{"writeTargetTable": "{secret}", "writeTargetUid": 1, "toolName": "{secret}"}}'
    load_case(site.engine, world([run(1, writes=[{"payload": payload, "at": START}])]))
    derive(site)
    log = logged()
    assert (True, False) == ("1 runs answered" in log, secret in log)


def test_a_partition_that_ends_a_little_after_now_is_waited_for(site):
    end = datetime.now(UTC) + timedelta(seconds=1.5)
    task = NrLlmDeriveOutcomesOperator(task_id="derive", nrllm_conn_id=site.conn_id, interval_end=end)
    assert task.execute({})["interval_end"] == end.isoformat()


def test_a_partition_that_ends_some_minutes_after_now_is_retried(site):
    with pytest.raises(AirflowException, match="compare the clocks") as early:
        derive(site, interval_end=datetime.fromtimestamp(NOW + 600, UTC))
    assert not isinstance(early.value, AirflowFailException)


def test_a_partition_is_as_long_as_the_clocks_of_the_timetables_zone_say(site):
    timetable = SimpleNamespace(timezone="Europe/Berlin")
    context = {"partition_date": datetime(2025, 10, 25, 22, tzinfo=UTC), "dag": SimpleNamespace(timetable=timetable)}
    assert "2025-10-26T23:00:00+00:00" == derive(site, context)["interval_end"]


def test_ends_that_airflow_resolves_later_are_checked_later():
    with DAG(dag_id="later", params={"end": "2026-01-02"}) as dag:
        NrLlmDeriveOutcomesOperator(task_id="derive", interval_end=dag.param("end"))
    assert ["derive"] == dag.task_ids


def test_the_collector_is_as_it_was_after_a_derivation(sqlite_site):
    before = gc.get_threshold()
    load_case(sqlite_site.engine, many_runs(3))
    derive(sqlite_site, interval_end=day(30))
    assert before == gc.get_threshold()


def test_what_settled_before_the_newest_partition_and_has_no_outcome_is_said_with_the_cure(sqlite_site, logged):
    load_case(sqlite_site.engine, world([run(1, at=START + 17 * DAY), run(2, at=START + 18 * DAY)]))
    derive(sqlite_site, interval_start=day(30), interval_end=day(31))
    told = " ".join(logged().split())
    assert "2 runs settled before this partition and have no outcome, the first at 2026-01-25T00:00:00Z" in told
    assert "`airflow dags trigger adhoc_airflow`, without a date" in told


def test_a_partition_of_a_catch_up_leaves_it_to_the_newest(sqlite_site, logged):
    load_case(sqlite_site.engine, world([run(1), run(2)]))
    derive(sqlite_site, interval_start=day(9), interval_end=day(10))
    assert "settled before this partition" not in logged()


def test_without_a_gap_nothing_is_said_of_one(sqlite_site, logged):
    load_case(sqlite_site.engine, world([run(1, at=START + 17 * DAY), run(2, at=START + 18 * DAY)]))
    derive(sqlite_site, interval_start=day(1), interval_end=day(30))
    derive(sqlite_site, interval_start=day(30), interval_end=day(31))
    assert "settled before this partition" not in logged()
