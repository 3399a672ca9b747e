"""The outcomes of a partition as they are read to be handed on, on every engine."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from sqlalchemy import event

from airflow_provider_nrllm.hooks.scores import NrLlmScoresHook
from airflow_provider_nrllm.scores.reading import read_pages
from tests.typo3.grants import USER, documented_grants, run_as_admin
from tests.typo3.scored import AT, add_answered, add_outcome, uuid_of

PAGE = (Path(__file__).parents[2] / "docs/how-to/hand-on-scores.md").read_text()


def database(site):
    return NrLlmScoresHook(site.conn_id, scores_conn_id="target", target="langfuse").database


def read(site, start=AT, end=AT + 1, page_size=100):
    return list(read_pages(database(site), start, end, page_size))


def words(pages):
    return sorted((score.correlation_id, score.value) for page in pages for score in page.scores)


@pytest.mark.parametrize("page_size", [1, 3, 100])
def test_each_outcome_is_read_once_whatever_the_page_size(site, page_size):
    add_answered(site.engine, 13)
    pages = read(site, page_size=page_size)
    assert 13 + 4 == len(words(pages)) == len(set(words(pages)))
    assert page_size >= max(len(page.scores) for page in pages)


def test_a_partition_has_its_start_and_not_its_end(site):
    for second in (-1, 0, 9, 10):
        add_outcome(site.engine, uuid_of(second + 20), "edited", AT + second)
    assert sorted([uuid_of(20), uuid_of(29)]) == [each for each, _ in words(read(site, AT, AT + 10))]


def test_without_a_start_all_before_the_end_is_read(site):
    add_outcome(site.engine, uuid_of(1), "edited", 1)
    assert [(uuid_of(1), "edited")] == words(read(site, None))


def test_of_two_ratings_the_last_holds_and_of_two_observed_outcomes_the_first(site):
    for value in ("not_helpful", "helpful", "discarded", "edited"):
        add_outcome(site.engine, uuid_of(1), value)
    assert [(uuid_of(1), "discarded"), (uuid_of(1), "helpful")] == words(read(site))


def test_a_value_that_this_version_does_not_know_is_left_out(site):
    for value in ("Edited", "edited ", "improved"):
        add_outcome(site.engine, uuid_of(1), value)
    assert [] == words(read(site))


def test_a_run_whose_uuid_only_looks_alike_makes_no_trace(site):
    (uid,) = add_answered(site.engine, 1)
    add_outcome(site.engine, uid.upper(), "discarded")
    (alone,) = [page for page in read(site) if [uid.upper()] == [score.correlation_id for score in page.scores]]
    assert () == tuple(alone.traces)


def test_a_trace_has_what_the_run_and_its_calls_say(site):
    (uid,) = add_answered(site.engine, 1)
    (trace,) = read(site)[0].traces
    assert (uid, 900, 120, 0.01) == (
        trace.correlation_id, trace.runs[0].input_tokens, trace.runs[0].output_tokens, trace.runs[0].cost,
    )  # fmt: skip
    assert [("asked", "model-1", 450, 60, 0.005, 1800)] * 2 == [
        (call.model, call.served_model, call.input_tokens, call.output_tokens, call.cost, call.latency_ms)
        for call in trace.calls
    ]


def test_an_outcome_whose_id_is_no_uuid_is_counted_and_no_score(site):
    add_outcome(site.engine, "task-42", "helpful")
    assert [(1, [])] == [(page.without_trace_id, page.scores) for page in read(site)]


def test_no_statement_names_a_user_or_content(site):
    add_answered(site.engine, 1)
    said = []
    found = database(site)
    event.listen(found.engine, "before_cursor_execute", lambda *arguments: said.append(arguments[2]))
    list(read_pages(found, None, AT + 1, 100))
    assert any("tx_nrllm_telemetry" in statement for statement in said)
    assert [] == [each for each in said if any(word in each for word in ("be_user", "payload", "suspended_state"))]


def test_a_trace_is_read_once_also_for_two_outcomes(site):
    uuids = add_answered(site.engine, 6)
    assert sorted(uuids) == sorted(trace.correlation_id for page in read(site, page_size=2) for trace in page.traces)


def test_a_page_takes_at_most_four_statements_however_many_outcomes_it_has(sqlite_site):
    add_answered(sqlite_site.engine, 40)
    said = []
    found = database(sqlite_site)
    event.listen(found.engine, "before_cursor_execute", lambda *arguments: said.append(arguments[2]))
    pages = list(read_pages(found, None, AT + 1, 100))
    # Six words are asked for; of what has an outcome, runs and calls; of ratings, also what was observed.
    assert 6 + 2 * len(pages) + 1 == len([each for each in said if each.startswith("SELECT")])


def test_the_connection_test_names_the_column_that_is_missing(site_to_change):
    with site_to_change.engine.begin() as connection:
        connection.exec_driver_sql("ALTER TABLE tx_nrllm_telemetry DROP COLUMN served_provider")
    hook = NrLlmScoresHook(site_to_change.conn_id, scores_conn_id="target", target="mlflow")
    good, message = hook.test_connection()
    assert not good
    assert "tx_nrllm_telemetry.served_provider" in message


@pytest.fixture
def restricted(server_site):
    """A site whose connection is that of a user who may do what the how-to grants, beside a derivation."""
    blocks = re.findall(r"```sql\n(.*?)```", PAGE, re.DOTALL)
    prefix = "" if server_site.name == "postgres" else "typo3."
    grants = [each.strip().replace("typo3.", prefix) for block in blocks for each in block.split(";") if each.strip()]
    run_as_admin(server_site, *documented_grants(server_site.name), *grants)
    server_site.define_connection(login=USER, password="change-me")
    yield server_site
    if server_site.name == "postgres":
        run_as_admin(server_site, f"DROP OWNED BY {USER}")
    run_as_admin(server_site, f"DROP USER {USER}")


def test_the_documented_user_reads_what_is_handed_on(restricted):
    uuids = add_answered(restricted.engine, 3)
    hook = NrLlmScoresHook(restricted.conn_id, scores_conn_id="target", target="mlflow")
    assert hook.test_connection()[0]
    assert sorted(uuids) == sorted(trace.correlation_id for page in read(restricted) for trace in page.traces)


def test_no_grant_of_the_page_is_of_a_person_or_of_content():
    assert not re.search(r"be_user|userid|suspended_state|queued_request|payload|approv", PAGE.partition("```sql")[2])
