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
from airflow_provider_nrllm.readout.coverage import Coverage
from airflow_provider_nrllm.readout.groups import Dimension, Kind, Label
from airflow_provider_nrllm.readout.periods import PeriodWidth
from airflow_provider_nrllm.readout.reading import read_answered
from airflow_provider_nrllm.readout.statements import ReadoutStatements
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
    payload,
    run,
    write,
)

END = MARCH + 10 * DAY
BY_MODEL = (Dimension.SERVED_MODEL,)


def read(site, *, start=MARCH, end=END, grouping=BY_MODEL, **asked):
    return NrLlmReadoutHook(site.conn_id).readout(start, end, grouping=grouping, **asked)


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
    found = group(read(site), "a")
    usage = found.observed.usage
    assert Usage(calls=3, cost=0.75, cost_known=2, latency_ms=900, latency_known=3) == usage
    assert (0.375, 300) == (usage.cost_per_call, usage.latency_per_call)
    # Each source for itself: only r1 is rated.
    assert Usage(calls=2, cost=0.5, cost_known=1, latency_ms=300, latency_known=2) == found.explicit.usage


def test_cost_that_was_never_measured_is_not_zero(site):
    calls(site.engine, "r1", "a", "a", actual_cost=None)
    outcome(site.engine, "r1", "helpful")
    usage = group(read(site), "a").explicit.usage
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
    assert (
        found.width, weeks,
    ) == (PeriodWidth.WEEK, [(date(2026, 2, 23), 1), (date(2026, 3, 2), 2), (date(2026, 3, 9), 1)])  # fmt: skip


def test_a_range_of_more_than_two_years_is_counted_by_the_month(site):
    for correlation_id, at in [("r0", 0), ("r1", MARCH - 1), ("r2", MARCH), ("r3", MARCH + 31 * DAY - 1)]:
        outcome(site.engine, correlation_id, "helpful", at)
    found = read(site, start=None, end=MARCH + 57 * DAY)
    months = [(month.first, month.explicit.total) for month in found.periods]
    assert (
        found.width, months,
    ) == (PeriodWidth.MONTH, [(date(1970, 1, 1), 1), (date(2026, 2, 1), 1), (date(2026, 3, 1), 2)])  # fmt: skip


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
        for range_of in RangeOf:
            for grouping in [BY_MODEL, (Dimension.ROUTING_MODE, Dimension.OPERATION)]:
                hook.readout(MARCH, END, grouping=grouping, range_of=range_of)
            where = {Dimension.TABLE: ["pages"], Dimension.SERVED_MODEL: ["a"]}
            hook.readout(None, END, grouping=(Dimension.TOOL, Dimension.TABLE), where=where, range_of=range_of)

    sent = emitted(site, act)
    assert len(sent) >= 20
    assert [] == [sql for sql in sent if PERSONAL.search(sql) or "*" in sql.replace("count(*)", "")]


def test_what_the_test_above_looks_for_is_there_to_be_read():
    columns = {column.name for table in tables.metadata.tables.values() for column in table.c}
    assert {"be_user", "userid", "originaluserid", "usertype", "suspended_state"} == columns & {
        "be_user", "userid", "originaluserid", "usertype", "suspended_state",
    }  # fmt: skip


def answered(site, limit, **asked):
    """Return all pages of the observed outcomes that count, by their ids."""
    pages, last = [], 0
    while last is not None:
        with NrLlmReadoutHook(site.conn_id).database.snapshot() as connection:
            statements = ReadoutStatements(connection.dialect.name, MARCH, END, RangeOf.OUTCOME, BY_MODEL, **asked)
            page, last = read_answered(connection, statements, last, limit, ["edited", "unknown"])
            pages.append([(each.correlation_id, each.outcome, each.key[0].name) for each in page])
    return pages


def test_the_outcomes_come_page_by_page_with_their_groups(site):
    for number, value in enumerate(["edited", "unknown", "accepted_unchanged", "edited"]):
        calls(site.engine, f"r{number}", "a" if number else "b")
        outcome(site.engine, f"r{number}", value)
    assert [[("r0", "edited", "b"), ("r1", "unknown", "a")], [("r3", "edited", "a")]] == answered(site, 2)
    only_a = {"where": {Dimension.SERVED_MODEL: ["a"]}}
    assert [[("r1", "unknown", "a")], [("r3", "edited", "a")]] == answered(site, 2, **only_a)


WEEK = 7 * DAY


def test_an_observed_outcome_counts_when_its_run_settled_and_not_when_a_backfill_recorded_it(site):
    run(site.engine, "old", MARCH - WEEK - 1)
    run(site.engine, "first", MARCH - WEEK)
    run(site.engine, "last", END - WEEK - 1)
    run(site.engine, "late", END - WEEK)
    for uuid in ("old", "first", "last", "late"):
        outcome(site.engine, uuid, "edited", END + 90 * DAY)
    assert {"no telemetry": ((0, 0), (0, 2, 0, 0))} == counts(read(site))
    recorded = read(site, start=END + 90 * DAY, end=END + 91 * DAY, range_of=RangeOf.RECORDED)
    assert {"no telemetry": ((0, 0), (0, 4, 0, 0))} == counts(recorded)


def test_a_run_settles_by_the_window_it_was_derived_with(site):
    run(site.engine, "r1", MARCH - DAY)
    outcome(site.engine, "r1", "edited", END + DAY)
    assert [1, 0] == [len(read(site, window=days * DAY).groups) for days in (1, 30)]


def test_what_was_recorded_had_settled(site):
    # Its last write was long before it ended.
    run(site.engine, "r1", MARCH - DAY, ended=END - 1)
    outcome(site.engine, "r1", "edited", END - 1)
    assert 1 == len(read(site).groups)


def test_the_outcome_of_a_purged_run_counts_when_it_was_recorded(site):
    outcome(site.engine, "purged", "edited", MARCH)
    assert 1 == len(read(site).groups)


def test_a_rating_counts_when_it_was_given(site):
    run(site.engine, "r1", MARCH - 60 * DAY)
    outcome(site.engine, "r1", "helpful", MARCH)
    assert 1 == len(read(site).groups)


@pytest.fixture
def written(site):
    """A site whose runs wrote with several tools."""
    run(site.engine, "one", MARCH, uid=1)
    write(site.engine, 1, MARCH, "edit_text", "tt_content")
    write(site.engine, 1, MARCH, "edit_text", "pages")
    run(site.engine, "two", MARCH, uid=2)
    write(site.engine, 2, MARCH, "create_page_draft", "pages")
    run(site.engine, "broken", MARCH, uid=3)
    payload(site.engine, 3, MARCH, '{"toolName": "edit_text"')
    run(site.engine, "untold", MARCH, uid=4)
    payload(site.engine, 4, MARCH, '{"toolName": 7, "writeTargetTable": ["pages"]}')
    payload(site.engine, 4, MARCH, '{"toolName": "read_page"}', "tool")
    for uuid in ("one", "two", "broken", "untold", "purged"):
        calls(site.engine, uuid, "a")
        outcome(site.engine, uuid, "edited")
    return site


def test_outcomes_are_counted_by_the_tool_that_wrote(written):
    found = counts(read(written, grouping=(Dimension.TOOL,)))
    assert {
        "edit_text": ((0, 0), (0, 1, 0, 0)),
        "create_page_draft": ((0, 0), (0, 1, 0, 0)),
        "not recorded": ((0, 0), (0, 2, 0, 0)),
        "writes purged, or none made": ((0, 0), (0, 1, 0, 0)),
    } == found


def test_outcomes_are_counted_by_the_table_that_was_written_with_a_model(written):
    found = counts(read(written, grouping=(Dimension.TABLE, Dimension.SERVED_MODEL)))
    assert {
        "several tables · a": ((0, 0), (0, 1, 0, 0)),
        "pages · a": ((0, 0), (0, 1, 0, 0)),
        "not recorded · a": ((0, 0), (0, 2, 0, 0)),
        "writes purged, or none made · a": ((0, 0), (0, 1, 0, 0)),
    } == found


def test_only_the_named_names_count(written):
    calls(written.engine, "three", "b")
    outcome(written.engine, "three", "helpful")
    only = read(written, where={Dimension.TABLE: ["pages", "tt_content"], Dimension.SERVED_MODEL: ["a", "A"]})
    assert {"a": ((0, 0), (0, 1, 0, 0))} == counts(only)
    assert {} == counts(read(written, where={Dimension.SERVED_MODEL: ["A"]}))


def test_no_automatic_selection_can_be_asked_for(site):
    for correlation_id, mode in [("r1", ""), ("r2", "cheapest")]:
        calls(site.engine, correlation_id, "a", routing_policy_mode=mode)
        outcome(site.engine, correlation_id, "helpful")
    assert {"a": ((1, 0), (0, 0, 0, 0))} == counts(read(site, where={Dimension.ROUTING_MODE: [""]}))


def test_every_run_that_wrote_is_answered_watched_or_overdue(site):
    now = MARCH + 20 * DAY
    for uid, (uuid, at, ended, wrote, value) in enumerate(
        [
            ("answered", MARCH, MARCH, True, "edited"),
            ("ANSWERED", MARCH, MARCH, True, None),
            ("read only", MARCH, MARCH, False, None),
            ("rated only", MARCH, MARCH, True, "helpful"),
            ("goes on", MARCH, 0, True, None),
            ("watched", MARCH + 9 * DAY, MARCH + 13 * DAY, True, None),
            ("just settled", MARCH + 9 * DAY, MARCH + 19 * DAY, True, None),
            ("before", MARCH - 1, MARCH - 1, True, None),
            ("", MARCH, MARCH, True, None),
        ],
        start=1,
    ):
        run(site.engine, uuid, at, uid=uid, ended=ended)
        if wrote:
            write(site.engine, uid, at + (4 * DAY if uuid == "watched" else 0))
        if value:
            outcome(site.engine, uuid, value)
    # ANSWERED and the one that is only rated are overdue: they settled on the 8th.
    assert Coverage(made=7, written=6, answered=1, watched=3) == read(site, now=now).coverage
    assert 2 == read(site, now=now).coverage.overdue
    assert Coverage() == read(site, start=END + DAY, end=END + 2 * DAY, now=now).coverage


def test_missing_telemetry_columns_are_named(site_to_change):
    with site_to_change.engine.begin() as connection:
        tables.telemetry.drop(connection)
    with pytest.raises(NrLlmSchemaError, match="tx_nrllm_telemetry"):
        read(site_to_change)
