"""The check of outcomes as Airflow runs it."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest
from airflow.providers.common.compat.sdk import AirflowFailException, AirflowSkipException

from airflow_provider_nrllm.exceptions import NrLlmOutcomeCheckError
from airflow_provider_nrllm.operators.checks import NrLlmOutcomeCheckOperator
from tests.typo3.dags import run_dag
from tests.typo3.readouts import DAY, MARCH, calls, outcome

START = datetime.fromtimestamp(MARCH, UTC)
END = START + timedelta(days=10)


def operator(site, **arguments):
    defaults = {"nrllm_conn_id": site.conn_id, "interval_start": START, "interval_end": END}
    return NrLlmOutcomeCheckOperator(task_id="check", **{**defaults, **arguments})


def lay(site, model, values, rated=()):
    """Lay so many outcomes of each value into the site."""
    with site.engine.begin() as connection:
        for value, many in {**values, **dict(rated)}.items():
            for number in range(many):
                correlation_id = f"{model}-{value}-{number}"
                calls(connection, correlation_id, model)
                outcome(connection, correlation_id, value)


def test_it_passes_within_its_bounds_and_returns_plain_json(site):
    lay(site, "a", {"accepted_unchanged": 30, "unknown": 3})
    result = operator(site, max_unknown=0.2, min_accepted=0.9).execute({})
    assert result == json.loads(json.dumps(result))
    found = [(one["bound"], one["count"], one["of"], one["verdict"]) for one in result["findings"]]
    assert [("min_accepted", 30, 30, "within"), ("max_unknown", 3, 33, "within")] == found


def test_it_fails_with_all_reasons_in_one_error(sqlite_site):
    lay(sqlite_site, "a", {"edited": 30, "unknown": 30}, {"not_helpful": 30})
    task = operator(sqlite_site, max_unknown=0.2, max_edited=0.5, min_helpful=0.5)
    with pytest.raises(NrLlmOutcomeCheckError) as failed:
        task.execute({})
    told = str(failed.value)
    assert isinstance(failed.value, AirflowFailException)
    assert [True] * 3 == [f"{bound}: " in told for bound in ("max_unknown", "max_edited", "min_helpful")]
    assert told.index("Observed: ") < told.index("max_edited") < told.index("Explicit: ") < told.index("min_helpful")


def test_a_share_whose_interval_holds_the_bound_does_not_fail_unless_the_share_alone_is_asked_for(sqlite_site):
    # 25 of 100: Wilson's interval is 17.5 to 34.3 %.
    lay(sqlite_site, "a", {"accepted_unchanged": 75, "unknown": 25})
    (found,) = operator(sqlite_site, max_unknown=0.2).execute({})["findings"]
    assert "cannot be told yet" == found["verdict"]
    with pytest.raises(NrLlmOutcomeCheckError, match="25 of 100"):
        operator(sqlite_site, max_unknown=0.2, certain=False).execute({})


def test_by_group_the_one_that_is_past_its_bound_is_named(sqlite_site):
    lay(sqlite_site, "good", {"accepted_unchanged": 60})
    lay(sqlite_site, "bad", {"discarded": 40})
    operator(sqlite_site, max_discarded=0.6).execute({})
    with pytest.raises(NrLlmOutcomeCheckError, match="“bad”: discarded 40 of 40") as failed:
        operator(sqlite_site, max_discarded=0.6, group_by="served_model").execute({})
    assert "good" not in str(failed.value)


def test_many_unknown_name_the_settings_in_the_words_of_the_purge_guard(site):
    lay(site, "a", {"unknown": 40})
    with pytest.raises(NrLlmOutcomeCheckError, match=r"sys_history is empty: .* See docs/how-to/many-unknown\.md"):
        operator(site, max_unknown=0.2).execute({})


class TaskInstance:
    """Keeps what a task pushes before it skips."""

    def xcom_push(self, key, value):
        self.pushed = {key: value}


def test_too_few_cases_skip_and_are_not_a_pass(sqlite_site):
    lay(sqlite_site, "a", {"unknown": 29})
    ti = TaskInstance()
    with pytest.raises(AirflowSkipException, match="fewer than 30 cases"):
        operator(sqlite_site, max_unknown=0.2).execute({"ti": ti})
    assert ["too few cases"] == [one["verdict"] for one in ti.pushed["return_value"]["findings"]]


def test_no_case_at_all_is_too_few(sqlite_site):
    with pytest.raises(AirflowSkipException):
        operator(sqlite_site, max_unknown=0.2, min_cases=1).execute({"ti": TaskInstance()})


def test_too_few_cases_can_fail_or_warn(sqlite_site):
    with pytest.raises(NrLlmOutcomeCheckError, match="fewer than 30 cases"):
        operator(sqlite_site, max_unknown=0.2, on_too_few="fail").execute({})
    (found,) = operator(sqlite_site, max_unknown=0.2, on_too_few="warn").execute({})["findings"]
    assert "too few cases" == found["verdict"]


def test_what_is_past_a_bound_outranks_too_few(sqlite_site):
    lay(sqlite_site, "a", {"unknown": 40})
    with pytest.raises(NrLlmOutcomeCheckError, match="max_unknown"):
        operator(sqlite_site, max_unknown=0.2, min_helpful=0.5).execute({})


def test_only_what_is_asked_for_is_checked(sqlite_site):
    lay(sqlite_site, "a", {"unknown": 40})
    lay(sqlite_site, "b", {"accepted_unchanged": 40})
    (found,) = operator(sqlite_site, max_unknown=0.2, where={"served_model": ["b"]}).execute({})["findings"]
    assert 40 == found["of"]


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"max_unknown": 20},
        {"max_unknown": 0.2, "nrllm_conn_id": ["a", "b"]},
        {"max_unknown": 0.2, "min_cases": 0},
        {"max_unknown": 0.2, "on_too_few": "pass"},
        {"max_unknown": 0.2, "group_by": "be_user"},
        {"max_unknown": 0.2, "range_of": "telemetry"},
        {"max_unknown": 0.2, "where": {"served_model": "a"}},
        {"max_unknown": 0.2, "window": 0},
        {"max_unknown": 0.2, "interval_start": END, "interval_end": START},
    ],
)
def test_an_invalid_argument_is_refused_when_the_dag_is_parsed(sqlite_site, arguments):
    with pytest.raises(ValueError):  # noqa: PT011
        operator(sqlite_site, **arguments)


DAG = """
import pendulum
from airflow.providers.common.compat.sdk import DAG
from airflow_provider_nrllm.operators.checks import NrLlmOutcomeCheckOperator

def called(context):
    open({told!r}, "a").write(str(context["exception"]))

with DAG(dag_id="alarm", schedule=None, start_date=pendulum.datetime(2026, 1, 1, tz="UTC")):
    NrLlmOutcomeCheckOperator(task_id="check", max_unknown=0.2, on_failure_callback=called, retries=2)
"""


def test_with_a_callback_it_is_an_alarm_and_is_not_retried(sqlite_site, load_dag, tmp_path, monkeypatch):
    monkeypatch.setattr("airflow.settings.DAGS_FOLDER", str(tmp_path))
    told = tmp_path / "told.txt"
    (tmp_path / "alarm.py").write_text(DAG.format(told=str(told)))
    sqlite_site.define_connection("nrllm_default")
    lay(sqlite_site, "a", {"unknown": 40})
    done = run_dag(load_dag("alarm", tmp_path / "alarm.py"), datetime.fromtimestamp(MARCH + 20 * DAY, UTC))
    assert "failed" == done.state
    assert 1 == told.read_text().count("max_unknown: unknown 40 of 40")
