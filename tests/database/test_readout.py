"""The readout counted by each engine, on sites whose figures are worked out by hand."""

from __future__ import annotations

import re
from datetime import date

import pytest
from sqlalchemy import event

from airflow_provider_nrllm.exceptions import NrLlmSchemaError
from airflow_provider_nrllm.hooks.readout import NrLlmReadoutHook
from airflow_provider_nrllm.outcomes.rules import ObservedOutcome
from airflow_provider_nrllm.readout.counts import RangeOf, Usage
from airflow_provider_nrllm.readout.groups import Dimension, Kind, Label
from airflow_provider_nrllm.readout.periods import PeriodWidth
from airflow_provider_nrllm.readout.reading import keys_of
from tests.typo3 import tables as tables
from tests.typo3.readouts import (
    CRAB,
    DAY,
    FORMULA,
    LONG,
    MARCH,
    QUOTES,
    ROCKET,
    SCRIPT,
    calls,
    counts,
    group,
    outcome,
    run,
)

END = MARCH + 10 * DAY
BY_MODEL = (Dimension.SERVED_MODEL,)


def read(site, *, start=MARCH, end=END, grouping=BY_MODEL, range_of=RangeOf.OUTCOME):
    return NrLlmReadoutHook(site.conn_id).readout(start, end, grouping=grouping, range_of=range_of)


def test_each_source_is_counted_by_model(site):
    for correlation_id, model, values in [
        ("r1", "a", ["helpful", "edited"]),
        ("r2", "a", ["helpful", "accepted_unchanged"]),
        ("r3", "a", ["not_helpful", "unknown"]),
        ("r4", "b", ["discarded"]),
        ("r5", "b", ["not_helpful"]),
    ]:
        calls(site.engine, correlation_id, model)
        for value in values:
            outcome(site.engine, correlation_id, value)
    # a: helpful r1 r2, not r3; unchanged r2, edited r1, unknown r3. b: not r5; discarded r4.
    assert {"a": ((2, 1), (1, 1, 0, 1)), "b": ((0, 1), (0, 0, 1, 0))} == counts(read(site))


def test_a_correlation_id_counts_once_however_many_calls_it_made(site):
    calls(site.engine, "r1", "a", "a", "a", "a", "a")
    outcome(site.engine, "r1", "edited")
    outcome(site.engine, "r1", "helpful")
    assert {"a": ((1, 0), (0, 1, 0, 0))} == counts(read(site))


def test_a_run_of_several_models_is_in_none_of_them(site):
    calls(site.engine, "r1", "a", "b", "a")
    calls(site.engine, "r2", "a")
    outcome(site.engine, "r1", "edited")
    outcome(site.engine, "r2", "edited")
    assert {"a": ((0, 0), (0, 1, 0, 0)), "several served models": ((0, 0), (0, 1, 0, 0))} == counts(read(site))


def test_an_outcome_without_telemetry_is_counted_under_no_telemetry(site):
    outcome(site.engine, "purged", "edited")
    outcome(site.engine, "task", "helpful")
    assert {"no telemetry": ((1, 0), (0, 1, 0, 0))} == counts(read(site))


def test_a_call_that_names_no_model_does_not_make_two_of_one(site):
    calls(site.engine, "r1", "a", "", "a")
    calls(site.engine, "old", "", "")
    outcome(site.engine, "r1", "unknown")
    outcome(site.engine, "old", "unknown")
    assert {"a": ((0, 0), (0, 0, 0, 1)), "not recorded": ((0, 0), (0, 0, 0, 1))} == counts(read(site))


def test_no_routing_mode_is_a_mode_of_its_own(site):
    calls(site.engine, "r1", "a", routing_policy_mode="")
    calls(site.engine, "r2", "a", routing_policy_mode="cheapest")
    calls(site.engine, "r3", "a", routing_policy_mode="")
    calls(site.engine, "r3", "a", routing_policy_mode="cheapest")
    for correlation_id in ("r1", "r2", "r3"):
        outcome(site.engine, correlation_id, "helpful")
    found = counts(read(site, grouping=(Dimension.ROUTING_MODE,)))
    assert {"no automatic selection", "cheapest", "several routing modes"} == set(found)


def test_a_newer_outcome_value_is_skipped(site):
    calls(site.engine, "r1", "a")
    outcome(site.engine, "r1", "superseded_by_human")
    outcome(site.engine, "r1", "helpful")
    assert {"a": ((1, 0), (0, 0, 0, 0))} == counts(read(site))


def test_only_newer_values_are_no_group(site):
    calls(site.engine, "r1", "a")
    outcome(site.engine, "r1", "superseded_by_human")
    assert {} == counts(read(site))


def test_of_two_ratings_the_last_counts_and_of_two_observed_outcomes_the_first(site):
    calls(site.engine, "r1", "a")
    for value in ("not_helpful", "edited", "helpful", "discarded"):
        outcome(site.engine, "r1", value)
    assert {"a": ((1, 0), (0, 1, 0, 0))} == counts(read(site))


def test_an_empty_correlation_id_is_not_counted(site):
    outcome(site.engine, "", "helpful")
    calls(site.engine, "", "a")
    assert {} == counts(read(site))


def test_the_range_holds_its_start_and_not_its_end(site):
    for correlation_id, at in [("before", MARCH - 1), ("first", MARCH), ("last", END - 1), ("after", END)]:
        outcome(site.engine, correlation_id, "helpful", at)
    assert {"no telemetry": ((2, 0), (0, 0, 0, 0))} == counts(read(site))


def test_without_a_start_all_before_the_end_is_counted(site):
    outcome(site.engine, "old", "helpful", 1)
    assert {"no telemetry": ((1, 0), (0, 0, 0, 0))} == counts(read(site, start=None))


def test_by_the_time_of_the_run_it_does_not_matter_when_the_outcome_was_recorded(site):
    run(site.engine, "inside", MARCH + 5)
    run(site.engine, "outside", END)
    outcome(site.engine, "inside", "edited", END + 8 * DAY)
    outcome(site.engine, "outside", "edited", MARCH)
    assert {"no telemetry": ((0, 0), (0, 1, 0, 0))} == counts(read(site, range_of=RangeOf.RUN))


def test_by_the_time_of_the_run_ratings_without_a_run_are_left_out_and_said(site):
    run(site.engine, "r1", MARCH)
    outcome(site.engine, "r1", "helpful")
    outcome(site.engine, "task-1", "helpful")
    outcome(site.engine, "task-2", "not_helpful")
    found = read(site, range_of=RangeOf.RUN)
    assert (2, {"no telemetry": ((1, 0), (0, 0, 0, 0))}) == (found.without_run, counts(found))


def test_runs_that_share_a_uuid_count_once_at_the_time_of_the_first(site):
    run(site.engine, "shared", MARCH + 1)
    run(site.engine, "shared", END + 1)
    outcome(site.engine, "shared", "edited")
    inside = read(site, range_of=RangeOf.RUN)
    later = read(site, start=END, end=END + DAY, range_of=RangeOf.RUN)
    assert ({"no telemetry": ((0, 0), (0, 1, 0, 0))}, {}) == (counts(inside), counts(later))


def test_an_arm_is_a_pair(site):
    calls(site.engine, "r1", "a", configuration_identifier="blog")
    calls(site.engine, "r2", "a", configuration_identifier="news")
    calls(site.engine, "r3", "a", "b", configuration_identifier="news")
    outcome(site.engine, "r1", "helpful")
    outcome(site.engine, "r2", "helpful")
    outcome(site.engine, "r3", "helpful")
    outcome(site.engine, "gone", "helpful")
    found = read(site, grouping=(Dimension.SERVED_MODEL, Dimension.CONFIGURATION))
    assert {
        (Label(Kind.NAMED, "a"), Label(Kind.NAMED, "blog")),
        (Label(Kind.NAMED, "a"), Label(Kind.NAMED, "news")),
        (Label(Kind.SEVERAL), Label(Kind.NAMED, "news")),
        (Label(Kind.NO_TELEMETRY), Label(Kind.NO_TELEMETRY)),
    } == {g.key for g in found.groups}


@pytest.mark.parametrize(
    ("dimension", "column"),
    [
        (Dimension.SERVED_MODEL, "served_model"),
        (Dimension.REQUESTED_MODEL, "model"),
        (Dimension.RESPONSE_MODEL, "response_model"),
        (Dimension.CONFIGURATION, "configuration_identifier"),
        (Dimension.SERVED_CONFIGURATION, "served_configuration_identifier"),
        (Dimension.ROUTING_MODE, "routing_policy_mode"),
        (Dimension.SOURCE_EXTENSION, "source_extension"),
        (Dimension.OPERATION, "operation"),
    ],
)
def test_each_dimension_is_its_column_of_telemetry(site, dimension, column):
    calls(site.engine, "r1", "served", **({} if column == "served_model" else {column: "it"}))
    outcome(site.engine, "r1", "helpful")
    name = "served" if column == "served_model" else "it"
    assert {name: ((1, 0), (0, 0, 0, 0))} == counts(read(site, grouping=(dimension,)))


def test_names_are_told_apart_to_the_letter(site):
    names = [QUOTES, SCRIPT, ROCKET, CRAB, LONG, FORMULA, "GPT", "gpt", "gpé", "gpe"]
    for number, name in enumerate(names):
        calls(site.engine, f"r{number}", name)
        outcome(site.engine, f"r{number}", "helpful")
    assert dict.fromkeys(names, ((1, 0), (0, 0, 0, 0))) == counts(read(site))


def test_two_emoji_are_two_models(site):
    calls(site.engine, "r1", ROCKET, CRAB)
    outcome(site.engine, "r1", "helpful")
    assert ["several served models"] == list(counts(read(site)))


def test_correlation_ids_are_told_apart_to_the_letter(site):
    calls(site.engine, "ab", "a")
    calls(site.engine, "AB", "b", "c")
    outcome(site.engine, "ab", "helpful")
    assert {"a": ((1, 0), (0, 0, 0, 0))} == counts(read(site))


def test_cost_is_of_the_calls_whose_cost_is_known(site):
    calls(site.engine, "r1", "a", actual_cost=0.5, latency_ms=100)
    calls(site.engine, "r1", "a", actual_cost=None, latency_ms=200)
    calls(site.engine, "r2", "a", actual_cost=0.25, latency_ms=600)
    calls(site.engine, "not rated", "a", actual_cost=100, latency_ms=100)
    outcome(site.engine, "r1", "helpful")
    outcome(site.engine, "r1", "edited")
    outcome(site.engine, "r2", "edited")
    usage = group(read(site), "a").usage
    assert Usage(calls=3, cost=0.75, cost_known=2, latency_ms=900, latency_known=3) == usage
    assert (0.375, 300) == (usage.cost_per_call, usage.latency_per_call)


def test_cost_that_was_never_measured_is_not_zero(site):
    calls(site.engine, "r1", "a", "a", actual_cost=None)
    outcome(site.engine, "r1", "helpful")
    usage = group(read(site), "a").usage
    assert (2, 0, None) == (usage.calls, usage.cost_known, usage.cost_per_call)


def test_outcomes_are_counted_by_the_day_in_utc(site):
    for correlation_id, at, value in [
        ("r1", MARCH, "helpful"),
        ("r2", MARCH + DAY - 1, "edited"),
        ("r3", MARCH + DAY, "edited"),
        ("r4", MARCH + 5 * DAY, "unknown"),
    ]:
        outcome(site.engine, correlation_id, value, at)
    days = [(day.first, day.explicit.total, day.observed.total) for day in read(site).periods]
    assert [(date(2026, 3, 1), 1, 1), (date(2026, 3, 2), 0, 1), (date(2026, 3, 6), 0, 1)] == days


def test_a_range_of_more_than_eight_weeks_is_counted_by_the_week_from_monday(site):
    # 2026-03-01 is a Sunday.
    for correlation_id, at in [
        ("r1", MARCH),
        ("r2", MARCH + DAY),
        ("r3", MARCH + 8 * DAY - 1),
        ("r4", MARCH + 8 * DAY),
    ]:
        outcome(site.engine, correlation_id, "edited", at)
    found = read(site, end=MARCH + 57 * DAY)
    weeks = [(week.first, week.observed.total) for week in found.periods]
    assert (PeriodWidth.WEEK, [(date(2026, 2, 23), 1), (date(2026, 3, 2), 2), (date(2026, 3, 9), 1)]) == (
        found.width, weeks,
    )  # fmt: skip


def test_a_range_of_more_than_two_years_is_counted_by_the_month(site):
    for correlation_id, at in [("r0", 0), ("r1", MARCH - 1), ("r2", MARCH), ("r3", MARCH + 31 * DAY - 1)]:
        outcome(site.engine, correlation_id, "helpful", at)
    found = read(site, start=None, end=MARCH + 57 * DAY)
    months = [(month.first, month.explicit.total) for month in found.periods]
    assert (PeriodWidth.MONTH, [(date(1970, 1, 1), 1), (date(2026, 2, 1), 1), (date(2026, 3, 1), 2)]) == (
        found.width, months,
    )  # fmt: skip


def test_without_a_start_the_range_is_as_long_as_there_are_outcomes(site):
    outcome(site.engine, "r1", "helpful")
    assert PeriodWidth.DAY == read(site, start=None).width


def test_each_group_has_its_share_over_time(site):
    for number, (model, day, value) in enumerate(
        [
            ("a", 0, "edited"),
            ("a", 0, "accepted_unchanged"),
            ("a", 2, "edited"),
            ("a", 3, "unknown"),
            ("b", 1, "edited"),
        ]
    ):
        calls(site.engine, f"r{number}", model)
        outcome(site.engine, f"r{number}", value, MARCH + day * DAY)
    found = group(read(site), "a").over_time(ObservedOutcome.EDITED)
    # On the fourth only one was answered, and that is unknown: no share of the decided.
    assert [(date(2026, 3, 1), 1, 2), (date(2026, 3, 3), 1, 1)] == [(p.first, p.share.count, p.share.of) for p in found]


def test_groups_come_by_size_and_those_of_no_one_name_last(site):
    for number, model in enumerate(["small", "large", "large", "", "x", "x", "x"]):
        calls(site.engine, f"r{number}", *(["p", "q"] if model == "x" else [model]))
        outcome(site.engine, f"r{number}", "helpful")
    assert ["large", "small", "several served models", "not recorded"] == list(counts(read(site)))


def emitted(site, act):
    """Return the SQL that the code under test sends."""
    hook = NrLlmReadoutHook(site.conn_id)
    statements = []

    @event.listens_for(hook.database.engine, "before_cursor_execute")
    def _keep(_connection, _cursor, statement, _parameters, _context, _many):
        statements.append(statement)

    act(hook)
    return statements


def test_the_number_of_statements_does_not_depend_on_the_number_of_outcomes(site):
    def act(hook):
        hook.readout(MARCH, END, grouping=BY_MODEL)

    def number():
        return len([sql for sql in emitted(site, act) if "tx_nrllm" in sql])

    none = number()
    for place in range(20):
        calls(site.engine, f"r{place}", f"m{place % 7}", "m1")
        outcome(site.engine, f"r{place}", "helpful", MARCH + place * DAY)
    assert (2, 2) == (none, number())


#: Every column that names a person or tells of an approval, in the site's own tables.
PERSONAL = re.compile(
    r"be_user|userid|originaluserid|usertype|suspended_state|queued_request|approv|claimed_by|\bstatus\b"
)


def test_no_column_of_a_user_or_an_approval_is_read(site):
    def act(hook):
        for grouping in [BY_MODEL, (Dimension.ROUTING_MODE, Dimension.OPERATION)]:
            for range_of in RangeOf:
                hook.readout(MARCH, END, grouping=grouping, range_of=range_of)
        with hook.database.snapshot() as connection:
            keys_of(connection, ["r1"], BY_MODEL)

    sent = emitted(site, act)
    assert len(sent) >= 11
    assert [] == [sql for sql in sent if PERSONAL.search(sql) or "*" in sql.replace("count(*)", "")]


def test_what_the_test_above_looks_for_is_there_to_be_read():
    columns = {column.name for table in tables.metadata.tables.values() for column in table.c}
    assert {"be_user", "userid", "originaluserid", "usertype", "suspended_state"} == columns & {
        "be_user", "userid", "originaluserid", "usertype", "suspended_state",
    }  # fmt: skip


def test_the_group_of_each_correlation_id_can_be_asked_for(site):
    calls(site.engine, "r1", "a")
    calls(site.engine, "r2", "a", "b")
    with NrLlmReadoutHook(site.conn_id).database.snapshot() as connection:
        found = keys_of(connection, ["r1", "r2", "gone"], BY_MODEL)
    assert {
        "r1": (Label(Kind.NAMED, "a"),),
        "r2": (Label(Kind.SEVERAL),),
        "gone": (Label(Kind.NO_TELEMETRY),),
    } == found


def test_missing_telemetry_columns_are_named(site_to_change):
    with site_to_change.engine.begin() as connection:
        tables.telemetry.drop(connection)
    with pytest.raises(NrLlmSchemaError, match="tx_nrllm_telemetry"):
        read(site_to_change)
