"""The audit of ACCEPTED UNCHANGED on each engine, and the runs that end in more than one way."""

from __future__ import annotations

import json

import pytest
from sqlalchemy import event, text

from airflow_provider_nrllm.edits.acceptance import Acceptance
from airflow_provider_nrllm.edits.meanings import EditedMeans, IgnoredFields, Meaning
from airflow_provider_nrllm.hooks.audit import NrLlmEditedAuditHook
from airflow_provider_nrllm.outcomes.rules import ObservedOutcome
from airflow_provider_nrllm.readout.audited import AuditedRuns
from tests.typo3.audits import (
    ADD,
    ANSWERED,
    DELETE,
    MODIFY,
    PUBLISH,
    WEEK,
    T,
    answered,
    changed,
    later,
    lay,
    lay_history,
    lay_record,
    lay_run,
    record,
)

#: The write created the record, hidden or visible.
DRAFT = (T, ADD, record(header="b", hidden=1))
VISIBLE = (T, ADD, record(header="b", hidden=0))
AFTER = T + WEEK + 5


def shown(at=AFTER, column="hidden"):
    return later(MODIFY, column, old=1, new=0, at=at)


def hid(at=AFTER, column="hidden"):
    return later(MODIFY, column, old=0, new=1, at=at)


def audit(site, **options):
    hook = NrLlmEditedAuditHook(site.conn_id)
    groups = hook.audited_by_group(None, ANSWERED + 1, grouping=(), window=WEEK, ignored=IgnoredFields(), **options)
    return AuditedRuns.together(groups.values())


def acceptances(site, uuids):
    hook = NrLlmEditedAuditHook(site.conn_id)
    found = hook.audited(dict.fromkeys(uuids, "accepted_unchanged"), window=WEEK, ignored=IgnoredFields())
    return {uuid: run.acceptance for uuid, run in found.items()}


#: The history of a record, whether it is hidden now (None: it has no row), and what became of it.
RECORDS = {
    "a draft that nobody took up": ([DRAFT], 1, Acceptance.STILL_HIDDEN),
    "a record that was visible when it was made": ([VISIBLE], 0, Acceptance.VISIBLE_ALREADY),
    "a draft that a person released": ([DRAFT, shown(T + 9)], 0, Acceptance.RELEASED),
    "a draft that a person published": ([DRAFT, later(PUBLISH, "header")], 0, Acceptance.RELEASED),
    "a draft that was released and hidden again": ([DRAFT, shown(T + 9), hid(T + 99)], 1, Acceptance.STILL_HIDDEN),
    "a draft that was released after its window": ([DRAFT, shown()], 0, Acceptance.STILL_HIDDEN),
    "a draft that was released in the last second of its window": (
        [DRAFT, shown(T + WEEK)], 0, Acceptance.RELEASED,
    ),
    "a record that was hidden after its window": ([VISIBLE, hid()], 1, Acceptance.VISIBLE_ALREADY),
    "a released draft that was hidden after its window": (
        [DRAFT, shown(T + 9), hid()], 1, Acceptance.RELEASED,
    ),
    "a draft that was released and hidden after its window": (
        [DRAFT, shown(), hid(AFTER + 9)], 1, Acceptance.STILL_HIDDEN,
    ),
    "a record that was changed after its window": (
        [VISIBLE, later(MODIFY, "header", at=AFTER)], 0, Acceptance.VISIBLE_ALREADY,
    ),
    "a row after the window that speaks of the column and cannot be read": (
        [VISIBLE, later(MODIFY, data='{"newRecord":{"hidden":', at=AFTER)], 0, Acceptance.CANNOT_BE_TOLD,
    ),
    "a uid that was given to another record after the window": (
        [DRAFT, later(ADD, data=record(hidden=0), at=AFTER)], 0, Acceptance.CANNOT_BE_TOLD,
    ),
    "a record of which no history as old is left": ([shown()], 0, Acceptance.CANNOT_BE_TOLD),
    "a record that is gone since": ([DRAFT], None, Acceptance.CANNOT_BE_TOLD),
    "a record that the write deleted": (
        [(T - 99, ADD, record(hidden=1)), (T, DELETE, None)], 1, Acceptance.VISIBLE_ALREADY,
    ),
    "a save that changed nothing of the column": (
        [DRAFT, later(MODIFY, "hidden", old="1", new=1, at=AFTER)], 1, Acceptance.STILL_HIDDEN,
    ),
    "a draft of a workspace that was published as hidden": (
        [(T, ADD, record(hidden=1), 1), later(PUBLISH, data='{"comment":""}')], 1, Acceptance.STILL_HIDDEN,
    ),
}  # fmt: skip


def test_what_became_of_a_record(site):
    uuids = {name: f"r{number}" for number, name in enumerate(RECORDS, start=1)}
    for number, (name, (rows, hidden, _)) in enumerate(RECORDS.items(), start=1):
        lay(site, *rows, target=("tt_content", number), uuid=uuids[name], outcome="accepted_unchanged")
        if hidden is not None:
            lay_record(site, ("tt_content", number), hidden=hidden)
    found = acceptances(site, uuids.values())
    assert {name: kind for name, (_, _, kind) in RECORDS.items()} == {name: found[uuids[name]] for name in RECORDS}


def test_a_run_is_the_weakest_of_its_records(site):
    states = {1: (DRAFT, 1), 2: (VISIBLE, 0), 3: (DRAFT, 0), 4: (VISIBLE, 0)}
    for uid, (own, hidden) in states.items():
        lay_history(site, ("tt_content", uid), own, *([shown(T + 9)] if uid == 3 else []))
        lay_record(site, ("tt_content", uid), hidden=hidden)
    runs = {"all": (1, 2, 3), "shown": (2, 3), "released": (3,), "one lost": (2, 99), "hidden and lost": (1, 99)}
    for uuid, uids in runs.items():
        lay_run(site, [(T, ("tt_content", uid)) for uid in uids], uuid=uuid, outcome="accepted_unchanged")
    assert {
        "all": Acceptance.STILL_HIDDEN,
        "shown": Acceptance.VISIBLE_ALREADY,
        "released": Acceptance.RELEASED,
        "one lost": Acceptance.CANNOT_BE_TOLD,
        "hidden and lost": Acceptance.STILL_HIDDEN,
        "purged": Acceptance.CANNOT_BE_TOLD,
    } == acceptances(site, [*runs, "purged"])


def test_a_table_without_a_column_that_hides_has_no_drafts(site):
    target = ("sys_file_metadata", 1)
    lay(site, (T, MODIFY, changed("title")), target=target, outcome="accepted_unchanged")
    lay_record(site, target)
    assert {"r1": Acceptance.VISIBLE_ALREADY} == acceptances(site, ["r1"])


@pytest.mark.parametrize(
    ("columns", "column"),
    [("disabled", "disabled"), ("disable", "disable"), ("disabled SMALLINT, hidden", "hidden")],
)
def test_disabled_and_disable_hide_as_hidden_does_where_a_table_has_no_such_column(site_to_change, columns, column):
    site = site_to_change
    states = {1: 1, 2: 0, 3: 0, 4: 1}
    histories = {1: [], 2: [], 3: [shown(T + 9, column)], 4: [hid(AFTER, column)]}
    with site.engine.begin() as connection:
        connection.execute(text(f"CREATE TABLE tx_odd (uid INTEGER, tstamp INTEGER, {columns} SMALLINT)"))
        for uid, state in states.items():
            connection.execute(text(f"INSERT INTO tx_odd (uid, tstamp, {column}) VALUES ({uid}, {T}, {state})"))
    for uid, rows in histories.items():
        own = (T, ADD, record(header="b"))
        lay(site, own, *rows, target=("tx_odd", uid), uuid=f"r{uid}", outcome="accepted_unchanged")
    hidden, visible, released = Acceptance.STILL_HIDDEN, Acceptance.VISIBLE_ALREADY, Acceptance.RELEASED
    assert {"r1": hidden, "r2": visible, "r3": released, "r4": visible} == acceptances(site, ["r1", "r2", "r3", "r4"])


def test_an_audit_counts_each_outcome_in_its_own_table(site):
    lay(site, DRAFT, uuid="draft", outcome="accepted_unchanged")
    lay_record(site, ("tt_content", 1), hidden=1)
    lay(site, VISIBLE, later(MODIFY, "header"), target=("tt_content", 2), uuid="edited")
    lay(site, (T, DELETE, None), target=("tt_content", 3), uuid="gone", outcome="discarded")
    answered(site, [("never", "unknown")])
    found = audit(site)
    assert (4, {Meaning.RUN_TEXT: 1}, {Acceptance.STILL_HIDDEN: 1}) == (found.runs, found.meanings, found.acceptances)


ACCEPTED, EDITED, DISCARDED = (
    ObservedOutcome.ACCEPTED_UNCHANGED,
    ObservedOutcome.EDITED,
    ObservedOutcome.DISCARDED,
)


@pytest.fixture
def in_several_ways(site):
    """Records that end in each way, and runs that wrote some of them."""
    histories = {1: [], 2: [], 3: [later(MODIFY, "header")], 4: [later(DELETE)], 5: [later(MODIFY, "subheader")]}
    for uid, rows in histories.items():
        lay_history(site, ("tt_content", uid), (T, ADD, record(header="b", subheader="")), *rows)
        lay_record(site, ("tt_content", uid))
    runs = {
        "one record": ((1,), "accepted_unchanged"),
        "twice the same": ((1, 1), "accepted_unchanged"),
        "alike": ((1, 2), "accepted_unchanged"),
        "two ways": ((1, 3), "edited"),
        "three ways": ((1, 3, 4), "discarded"),
        "answered otherwise": ((1, 2), "discarded"),
        "a field beside": ((1, 5), "edited"),
    }
    for uuid, (uids, outcome) in runs.items():
        writes = [(T + number, ("tt_content", uid)) for number, uid in enumerate(uids)]
        lay_run(site, writes, uuid=uuid, outcome=outcome)
    answered(site, [("purged", "edited")])
    return site


def test_runs_with_several_records_are_counted_by_the_ways_in_which_these_ended(in_several_ways):
    several = audit(in_several_ways).several
    assert (5, 1, 3) == (several.runs, several.untold, several.in_several_ways)
    assert {(EDITED, ACCEPTED): 2, (DISCARDED, EDITED, ACCEPTED): 1} == several.ways


def test_the_ways_are_told_by_what_made_a_run_edited(in_several_ways):
    several = audit(in_several_ways, edited_means=EditedMeans.OUR_FIELDS).several
    # By our fields, "a field beside" was never edited.
    assert (5, 2) == (several.runs, several.untold)
    assert {(EDITED, ACCEPTED): 1, (DISCARDED, EDITED, ACCEPTED): 1} == several.ways


SECRET = "a secret of the editor"


def test_of_a_record_only_the_column_that_hides_it_is_read_and_no_value_of_the_history(site):
    lay(site, (T, ADD, record(header=SECRET, hidden=1)), (AFTER, MODIFY, json.dumps(
        {"oldRecord": {"hidden": 1, "header": SECRET}, "newRecord": {"hidden": 0, "header": SECRET + "!"}}
    )), outcome="accepted_unchanged")  # fmt: skip
    lay_record(site, ("tt_content", 1), hidden=0)
    hook, handed = NrLlmEditedAuditHook(site.conn_id), []

    @event.listens_for(hook.database.engine, "after_cursor_execute")
    def _read(_connection, _cursor, statement, parameters, _context, _many):
        handed.append((statement, parameters))
        if statement.lstrip().startswith("SELECT"):
            with site.engine.connect() as other:
                handed.append(list(other.exec_driver_sql(statement, parameters)))

    found = hook.audited({"r1": "accepted_unchanged"}, window=WEEK, ignored=IgnoredFields())
    assert Acceptance.STILL_HIDDEN == found["r1"].acceptance
    assert SECRET not in repr(handed)
    of_records = [one[0] for one in handed if isinstance(one, tuple) and "FROM tt_content" in one[0].replace('"', "")]
    assert of_records
    assert [] == [statement for statement in of_records if "header" in statement or "bodytext" in statement]


def statements_of(site):
    hook, sent = NrLlmEditedAuditHook(site.conn_id), []

    @event.listens_for(hook.database.engine, "before_cursor_execute")
    def _keep(_connection, _cursor, statement, _parameters, _context, _many):
        sent.append(statement)

    hook.audited_by_group(None, ANSWERED + 1, grouping=(), window=WEEK, ignored=IgnoredFields())
    return len(sent)


def test_a_page_of_the_audit_costs_the_same_statements_whatever_is_on_it(site):
    def lay_both(number):
        lay(site, DRAFT, shown(), target=("tt_content", number), uuid=f"a{number}", outcome="accepted_unchanged")
        lay_record(site, ("tt_content", number), hidden=0)
        lay(site, VISIBLE, later(MODIFY, "header"), target=("pages", number), uuid=f"e{number}")

    lay_both(1)
    one = statements_of(site)
    for number in range(2, 14):
        lay_both(number)
    assert one == statements_of(site)
