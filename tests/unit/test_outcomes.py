"""The rules of ADR-176 and ADR-185, a sentence each."""

from __future__ import annotations

import pytest

from airflow_provider_nrllm.outcomes.evidence import (
    LIVE,
    MISSING,
    OWN_ROW_AGE,
    Evidence,
    HistoryRow,
    Record,
    Target,
    Write,
    record_of,
)
from airflow_provider_nrllm.outcomes.payloads import target_of
from airflow_provider_nrllm.outcomes.rules import (
    PROMPTLY,
    ObservedOutcome,
    Run,
    aftermath,
    outcome_of_run,
    outcome_of_write,
    settled_at,
)

ACCEPTED, EDITED, DISCARDED, UNKNOWN = (
    ObservedOutcome.ACCEPTED_UNCHANGED,
    ObservedOutcome.EDITED,
    ObservedOutcome.DISCARDED,
    ObservedOutcome.UNKNOWN,
)
ADD, MODIFY, MOVE, DELETE, UNDELETE, STAGECHANGE, PUBLISH = range(1, 8)
DAY = 86400
WINDOW = 7 * DAY
AT = 100 * DAY
CLOSE = AT + WINDOW
OWN = (AT - 1, ADD)


def answer(*rows, record=LIVE, events=(), now=CLOSE + DAY):
    """
    Ask after the window what became of a write at ``AT``.

    :param rows: ``(stamp, action[, workspace[, by_editor]])`` in uid order
    """
    history = [HistoryRow(stamp, uid, action, *(more or [0])) for uid, (stamp, action, *more) in enumerate(rows, 1)]
    evidence = Evidence(history, sorted([AT, *events]), record)
    return outcome_of_write(aftermath(AT, evidence, WINDOW), now=now)


def test_a_record_nobody_touched_is_accepted_unchanged():
    assert answer(OWN) == ACCEPTED


@pytest.mark.parametrize("action", [MODIFY, MOVE, STAGECHANGE, PUBLISH, 23])
def test_any_later_row_is_an_edit_whatever_its_action(action):
    assert answer(OWN, (AT + DAY, action)) == EDITED


@pytest.mark.parametrize(("at", "expected"), [(AT, ACCEPTED), (AT + 1, EDITED), (CLOSE, EDITED), (CLOSE + 1, ACCEPTED)])
def test_the_window_begins_after_the_write_and_includes_its_close(at, expected):
    assert answer(OWN, (at, MODIFY)) == expected


def test_the_last_of_delete_and_undelete_in_the_window_decides():
    assert answer(OWN, (AT + 1, DELETE), (AT + 2, UNDELETE)) == EDITED
    assert answer(OWN, (AT + 1, DELETE), (AT + 2, UNDELETE), (AT + 3, DELETE), record=MISSING) == DISCARDED


def test_of_rows_with_one_time_the_greater_uid_is_the_later():
    assert answer(OWN, (AT + 1, DELETE), (AT + 1, UNDELETE)) == EDITED
    assert answer(OWN, (AT + 1, UNDELETE), (AT + 1, DELETE)) == DISCARDED


def test_a_deletion_counts_whoever_did_it():
    assert answer(OWN, (AT + DAY - 1, DELETE), record=MISSING, events=[AT + DAY]) == DISCARDED


def test_a_record_that_is_gone_was_discarded_if_it_is_asked_promptly():
    assert answer(OWN, record=MISSING, now=CLOSE + PROMPTLY) == DISCARDED


def test_a_record_that_is_gone_is_unknown_if_its_end_is_undated_and_it_is_asked_late():
    assert answer(OWN, record=MISSING, now=CLOSE + PROMPTLY + 1) == UNKNOWN


def test_a_soft_deleted_record_dates_its_own_end():
    late = CLOSE + 90 * DAY
    assert answer(record=Record(False, end=CLOSE), now=late) == DISCARDED
    assert answer(OWN, record=Record(False, end=CLOSE + 1), now=late) == ACCEPTED


def test_a_record_restored_or_deleted_after_the_close_outlived_its_window():
    assert answer(OWN, (CLOSE + 1, DELETE), record=MISSING) == ACCEPTED
    assert answer(OWN, (CLOSE + 1, UNDELETE), record=MISSING) == ACCEPTED


def test_a_proven_edit_outranks_an_undated_end_and_a_trimmed_history():
    assert answer((AT + 1, MODIFY), record=MISSING, now=CLOSE + 90 * DAY) == EDITED
    assert answer((AT + 1, MODIFY)) == EDITED


def test_a_trimmed_history_is_unknown():
    assert answer() == UNKNOWN
    assert answer((CLOSE + 1, MODIFY)) == UNKNOWN


def test_a_row_at_or_before_the_write_proves_that_the_history_reaches_back():
    assert answer((AT, MODIFY)) == ACCEPTED
    assert answer((AT - 90 * DAY, ADD)) == ACCEPTED


def test_a_write_that_was_the_deletion_is_accepted_while_it_stands():
    assert answer((AT - DAY, ADD), (AT - 1, DELETE), record=MISSING) == ACCEPTED


def test_a_delete_of_what_was_deleted_already_is_only_the_recycler():
    assert answer((AT - DAY, ADD), (AT - 1, DELETE), (AT + DAY, DELETE), record=MISSING) == ACCEPTED


def test_a_restore_of_what_was_deleted_already_is_an_edit():
    assert answer((AT - DAY, ADD), (AT - 1, DELETE), (AT + DAY, UNDELETE)) == EDITED


def test_the_records_own_stamp_tells_that_it_was_deleted_already_only_where_no_deletion_is_retained():
    deleted_before = Record(False, end=AT)
    assert answer(OWN, record=deleted_before) == ACCEPTED
    assert answer(OWN, (AT - 1, UNDELETE), record=deleted_before) == DISCARDED


def test_a_row_of_a_workspace_is_a_draft_once_a_later_publish_is_there():
    assert answer(OWN, (AT + DAY, MODIFY, 3), (CLOSE + 1, PUBLISH)) == ACCEPTED
    assert answer(OWN, (AT + DAY, MODIFY, 3)) == EDITED
    assert answer(OWN, (AT + DAY, PUBLISH), (AT + DAY, MODIFY, 3)) == EDITED


def test_a_draft_does_not_show_that_the_history_reaches_back():
    assert answer((AT - DAY, MODIFY, 3), (CLOSE + 1, PUBLISH)) == UNKNOWN


def test_a_publish_is_never_a_draft():
    assert answer(OWN, (AT + DAY, PUBLISH, 3), (CLOSE + 1, PUBLISH)) == EDITED


def test_a_machines_row_is_no_edit():
    assert answer(OWN, (AT + DAY - 1, MODIFY), events=[AT + DAY]) == ACCEPTED


def test_a_machines_row_is_at_most_an_hour_older_than_its_event():
    assert answer(OWN, (AT + DAY - OWN_ROW_AGE, MODIFY), events=[AT + DAY]) == ACCEPTED
    assert answer(OWN, (AT + DAY - OWN_ROW_AGE - 1, MODIFY), events=[AT + DAY]) == EDITED


def test_only_the_rows_with_the_latest_stamp_are_a_machines_own():
    assert answer(OWN, (AT + DAY - 2, MODIFY), (AT + DAY - 1, MODIFY), events=[AT + DAY]) == EDITED


def test_an_event_after_the_close_is_not_of_account():
    assert answer(OWN, (CLOSE, MODIFY), events=[CLOSE]) == ACCEPTED
    assert answer(OWN, (CLOSE, MODIFY), events=[CLOSE + 1]) == EDITED


def test_a_machines_row_happened_at_its_event():
    assert answer((AT - 1, ADD), (AT - 1, DELETE), record=MISSING, events=[AT + 60]) == DISCARDED


@pytest.mark.parametrize(
    ("rows", "events", "expected"),
    [
        (1, [10], {10: [1]}),
        (2, [10, 20], {10: [1], 20: [2]}),
        (3, [10, 20], {10: [1, 2], 20: [3]}),
        (1, [10, 20], {10: [1], 20: []}),
        (1, [9], {9: []}),
    ],
)
def test_events_that_own_one_stamp_share_its_rows_in_order(rows, events, expected):
    evidence = Evidence([HistoryRow(10, uid, MODIFY, 0) for uid in range(1, rows + 1)], events, LIVE)
    assert expected == {at: [row.uid for row in evidence.own_rows(at, WINDOW)] for at in events}


def test_a_uid_that_is_used_again_in_the_window_discards_the_record():
    assert DISCARDED == answer((AT - 1, MODIFY), (AT + DAY, ADD))
    assert DISCARDED == answer((AT - 1, MODIFY), (AT + DAY, ADD, 0, False))
    assert DISCARDED == answer((AT - 1, MODIFY), (AT + DAY - 1, ADD), events=[AT + DAY])
    assert ACCEPTED == answer((AT - 1, MODIFY), (CLOSE + 1, ADD))


@pytest.mark.parametrize("action", [ADD, MODIFY, MOVE])
def test_a_record_that_took_a_change_after_its_deletion_was_there_again_at_the_write(action):
    assert DISCARDED == answer((AT - 9, DELETE), (AT - 8, action, 0, False), (AT + DAY, DELETE), record=MISSING)
    assert ACCEPTED == answer((AT - 9, action), (AT - 8, DELETE), (AT + DAY, DELETE), record=MISSING)


@pytest.mark.parametrize("action", [STAGECHANGE, PUBLISH])
def test_a_deleted_record_takes_no_other_change_that_would_show_it_was_there(action):
    assert ACCEPTED == answer((AT - DAY, ADD), (AT - 9, DELETE), (AT - 8, action), record=MISSING)


def test_a_record_soft_deleted_past_the_datahandler_keeps_the_stamp_of_the_write_and_is_discarded():
    assert DISCARDED == answer((AT - 1, MODIFY), record=Record(False, end=AT - 1), now=CLOSE + 90 * DAY)
    assert ACCEPTED == answer((AT - DAY, MODIFY), record=Record(False, end=AT - 1), now=CLOSE + 90 * DAY)


def test_a_row_that_no_editor_made_is_no_edit():
    assert ACCEPTED == answer(OWN, (AT + DAY, MODIFY, 0, False))
    assert DISCARDED == answer(OWN, (AT + DAY, DELETE, 0, False))
    assert EDITED == answer(OWN, (AT + DAY, DELETE, 0, False), (AT + DAY, UNDELETE))


def test_a_row_that_no_editor_made_shows_that_the_history_reaches_back():
    assert ACCEPTED == answer((AT - DAY, MODIFY, 0, False))


@pytest.mark.parametrize(
    ("outcomes", "expected"),
    [
        ([ACCEPTED, UNKNOWN, EDITED, DISCARDED], DISCARDED),
        ([ACCEPTED, UNKNOWN, EDITED], EDITED),
        ([ACCEPTED, UNKNOWN], UNKNOWN),
        ([ACCEPTED, ACCEPTED], ACCEPTED),
    ],
)
def test_a_runs_outcome_is_the_strongest_of_its_writes(outcomes, expected):
    assert outcome_of_run(outcomes) == expected


def run(status="completed", finished_at=AT):
    return Run(1, "a", status, finished_at)


def write(at):
    return Write(at, 1, 1, None)


def test_a_run_settles_at_the_close_of_its_last_write():
    assert settled_at([run()], [write(AT), write(AT - DAY)], WINDOW) == CLOSE


def test_a_run_that_ended_after_all_its_writes_closed_settles_when_it_ended():
    assert settled_at([run(finished_at=CLOSE + 1)], [write(AT)], WINDOW) == CLOSE + 1


@pytest.mark.parametrize("status", ["queued", "running", "waiting_for_approval", "waiting_for_input", "new_state"])
def test_a_run_that_goes_on_is_not_settled(status):
    assert settled_at([run(), run(status)], [write(AT)], WINDOW) is None


def test_a_run_that_wrote_nothing_never_settles():
    assert settled_at([run()], [], WINDOW) is None


def test_a_payload_names_its_record():
    assert target_of('{"writeTargetTable": "tt_content", "writeTargetUid": 42, "more": []}') == Target("tt_content", 42)


@pytest.mark.parametrize("uid", ["0", "-1", "2147483648", "42.0", "4e1", "true", "null", '"42"', "[42]", "NaN"])
def test_a_uid_that_is_no_integer_in_range_is_unreadable(uid):
    assert target_of(f'{{"writeTargetTable": "tt_content", "writeTargetUid": {uid}}}') is None


@pytest.mark.parametrize(
    "table",
    [
        "",
        "tt_content; DROP TABLE pages",
        "tt_content\\n",
        'a\\"b',
        "a'b",
        "`pages`",
        "pägés",
        "x" * 65,
        "a.b",
        "a b",
        "x" * 300,
    ],
)
def test_a_table_name_of_other_characters_is_unreadable(table):
    assert target_of(f'{{"writeTargetTable": "{table}", "writeTargetUid": 42}}') is None


@pytest.mark.parametrize(
    "payload",
    [None, "", "not json", "[]", "{}", '"text"', "1", "null", '{"writeTargetTable": ["pages"], "writeTargetUid": 1}',
     '{"writeTargetUid": 1}', "[" * 100_000, b"\xff\xfe", 7,
     '{"writeTargetTable": "pages", "writeTargetUid": ' + "9" * 5000 + "}",
     '{"writeTargetTable": "pages", "writeTargetUid": 1, "more": NaN}',
     '{"writeTargetTable": "pages", "writeTargetUid": 1, "more": [-Infinity]}'],
)  # fmt: skip
def test_a_payload_that_is_no_such_object_is_unreadable(payload):
    assert target_of(payload) is None


def test_an_integer_of_any_length_is_json():
    payload = '{"writeTargetTable": "pages", "writeTargetUid": 1, "more": ' + "9" * 5000 + "}"
    assert Target("pages", 1) == target_of(payload)


def test_a_record_is_gone_when_soft_deleted_or_only_a_workspace_version():
    assert record_of(deleted=0, tstamp=5, workspace=0) == LIVE
    assert record_of(deleted=None, tstamp=None, workspace=None) == LIVE
    assert record_of(deleted=1, tstamp=5, workspace=0) == Record(False, end=5)
    assert record_of(deleted=0, tstamp=5, workspace=3) == MISSING


def test_a_stamp_of_0_dates_nothing():
    assert record_of(deleted=1, tstamp=0, workspace=0) == MISSING
