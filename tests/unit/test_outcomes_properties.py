"""What holds for every history, whatever is in it."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_provider_nrllm.outcomes.evidence import LIVE, MISSING, Evidence, HistoryRow, Record, Write
from airflow_provider_nrllm.outcomes.rules import (
    PRECEDENCE,
    PROMPTLY,
    ObservedOutcome,
    Run,
    aftermath,
    outcome_of_run,
    outcome_of_write,
    settled_at,
)
from tests.typo3 import model

DAY = 86400
WINDOW = DAY
AT = 100 * DAY
CLOSE = AT + WINDOW
LATE = CLOSE + PROMPTLY + 1

# Around the edges of the rules: the write, an hour before it, the close.
times = st.one_of(
    st.integers(AT - 2 * DAY, CLOSE + 2 * DAY),
    *(st.integers(edge - 2, edge + 2) for edge in (AT - 7200, AT - 3600, AT, CLOSE - 3600, CLOSE)),
)
actions = st.integers(1, 8)
workspaces = st.sampled_from([0, 0, 0, 3])
records = st.one_of(st.just(LIVE), st.just(MISSING), st.builds(Record, st.just(False), times))


@st.composite
def histories(draw, stamps=times):
    """Rows in the order TYPO3 writes them: uids ascend, stamps almost do."""
    rows = draw(st.lists(st.tuples(stamps, actions, workspaces, st.booleans()), max_size=8))
    return [HistoryRow(*row[:1], uid, *row[1:]) for uid, row in enumerate(rows, 1)]


events = st.lists(times, max_size=4).map(lambda ats: sorted([AT, *ats]))


def ask(rows, wrote, record, now):
    return outcome_of_write(aftermath(AT, Evidence(rows, wrote, record), WINDOW), now=now)


outcomes = st.lists(st.sampled_from(ObservedOutcome), min_size=1)


@given(outcomes.flatmap(lambda values: st.tuples(st.just(values), st.permutations(values))))
def test_the_order_of_a_runs_writes_does_not_matter(both):
    assert outcome_of_run(both[0]) == outcome_of_run(both[1])


@given(outcomes, st.sampled_from(ObservedOutcome))
def test_another_write_never_makes_a_runs_outcome_better(values, another):
    before, after = outcome_of_run(values), outcome_of_run([*values, another])
    assert PRECEDENCE.index(after) <= PRECEDENCE.index(before)


@given(st.data(), events, records, st.integers(CLOSE, LATE + DAY))
def test_the_order_in_which_history_is_read_does_not_matter(data, wrote, record, now):
    rows = data.draw(histories())
    assert ask(rows, wrote, record, now) == ask(data.draw(st.permutations(rows)), wrote, record, now)


@given(histories(), events, st.lists(st.tuples(st.integers(CLOSE + 1, CLOSE + 90 * DAY), actions), max_size=4))
def test_rows_after_the_close_change_no_answer_of_a_record_that_is_there(rows, wrote, later):
    # A PUBLISH is left out: it turns rows before the close into drafts, as it moved them onto the record.
    more = [HistoryRow(at, 100 + uid, action, 0) for uid, (at, action) in enumerate(later) if action != 7]
    before = [row for row in rows if row.stamp <= CLOSE]
    assert ask(before, wrote, LIVE, CLOSE) == ask(before + more, wrote, LIVE, LATE)


@given(histories(), events, st.lists(st.integers(CLOSE + 1, CLOSE + DAY), max_size=4), records)
def test_events_after_the_close_change_no_answer(rows, wrote, later, record):
    more = sorted([*wrote, *later])
    assert ask(rows, wrote, record, LATE) == ask(rows, more, record, LATE)


@given(histories(st.integers(AT - DAY, CLOSE)), events, records)
def test_asked_late_the_answer_is_that_of_the_close_or_unknown(rows, wrote, record):
    undated = not record.present and record.end is None
    at_the_close = [LIVE, record] if undated else [LIVE if record.end and record.end > CLOSE else record]
    expected = {ask(rows, wrote, state, CLOSE) for state in at_the_close} | {ObservedOutcome.UNKNOWN}
    assert ask(rows, wrote, record, LATE) in expected


@given(histories(), events, records, st.integers(CLOSE, LATE))
def test_there_is_always_an_answer(rows, wrote, record, now):
    assert ask(rows, wrote, record, now) in ObservedOutcome


@given(
    st.lists(st.integers(AT, AT + 30 * DAY), min_size=1, max_size=4),
    st.integers(0, AT + 60 * DAY),
    st.lists(st.integers(AT, AT + 70 * DAY), max_size=10, unique=True),
)
def test_every_run_falls_into_exactly_one_of_any_partitions_that_tile_the_time_line(ats, finished_at, cuts):
    runs = [Run(1, "a", "completed", finished_at)]
    settled = settled_at(runs, [Write(at, 1, 1, None) for at in ats], WINDOW)
    ends = [float("-inf"), *sorted(cuts), float("inf")]
    assert 1 == sum(start <= settled < end for start, end in pairwise(ends))


@settings(max_examples=2000)
@given(histories(), events, records, st.integers(CLOSE, LATE + DAY))
def test_the_answer_is_that_of_the_rules_as_they_are_worded(rows, wrote, record, now):
    model_rows = [model.Row(row.uid, row.stamp, row.action, row.workspace, row.by_editor) for row in rows]
    state = model.State(record.present, record.end is not None, record.end)
    assert model.outcome(AT, model_rows, wrote, state, window=WINDOW, now=now) == ask(rows, wrote, record, now)
