"""Why a run is unknown, in words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_nrllm.outcomes.evidence import LIVE, MISSING, Evidence, HistoryRow, Record
from airflow_provider_nrllm.outcomes.reasons import OTHERWISE, PURGED, Reason, reason_of_write, reasons_in_words
from airflow_provider_nrllm.outcomes.rules import PROMPTLY, ObservedOutcome, aftermath, outcome_of_write

ADD, MODIFY, DELETE = 1, 2, 4
AT, WINDOW = 10_000, 7 * 86400
LATE = AT + WINDOW + PROMPTLY + 1


def seen(*rows, record=LIVE):
    history = [HistoryRow(stamp, uid, action, 0) for uid, (stamp, action) in enumerate(rows, 1)]
    return aftermath(AT, Evidence(history, [AT], record), WINDOW)


@pytest.mark.parametrize(
    ("expected", "write"),
    [
        (Reason.NO_RECORD, None),
        (Reason.TRIMMED, seen()),
        (Reason.TRIMMED, seen((AT + WINDOW + 1, MODIFY))),
        (Reason.GONE, seen((AT, MODIFY), record=MISSING)),
        (Reason.GONE, seen(record=MISSING)),
        (Reason.FIELDS, seen((AT, MODIFY), (AT + 60, MODIFY))),
        (None, seen((AT, MODIFY))),
        (None, seen((AT, MODIFY), (AT + 60, DELETE))),
        (None, seen((AT, MODIFY), record=Record(False, AT + 60))),
    ],
)
def test_a_write_is_unknown_for_one_reason(expected, write):
    assert expected == reason_of_write(write)


histories = st.lists(st.tuples(st.integers(AT - 4000, AT + WINDOW + 100), st.integers(1, 8)), max_size=6)


@given(histories, st.sampled_from([LIVE, MISSING, Record(False, AT + 60), Record(False, AT + WINDOW + 60)]))
def test_a_reason_is_found_where_a_write_that_is_asked_late_is_unknown_and_nowhere_else(rows, record):
    write = seen(*sorted(rows), record=record)
    is_unknown = outcome_of_write(write, now=LATE) is ObservedOutcome.UNKNOWN
    assert is_unknown is (reason_of_write(write) not in (None, Reason.FIELDS))


def test_a_run_has_the_reasons_of_all_its_writes_each_once():
    trimmed, told = seen(), seen((AT, MODIFY))
    assert f"{Reason.NO_RECORD}; {Reason.TRIMMED}" == reasons_in_words([trimmed, None, trimmed, told])


def test_a_run_whose_writes_are_purged_says_so():
    assert PURGED == reasons_in_words([])


def test_where_the_evidence_has_changed_since_it_cannot_be_told_any_more():
    assert OTHERWISE == reasons_in_words([seen((AT, MODIFY))])
