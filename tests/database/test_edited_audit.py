"""The audit of EDITED on each engine: the stories TYPO3 wrote itself, and sites laid by hand."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event

from airflow_provider_nrllm.edits.meanings import IgnoredFields, Meaning
from airflow_provider_nrllm.hooks.audit import NrLlmEditedAuditHook
from airflow_provider_nrllm.readout.counts import RangeOf
from tests.typo3 import tables as tables
from tests.typo3.audits import (
    ADD,
    DELETE,
    MODIFY,
    MOVE,
    PUBLISH,
    STAGECHANGE,
    UNDELETE,
    WEEK,
    T,
    answered,
    changed,
    later,
    lay,
    record,
)
from tests.typo3.loader import load_typo3

DEFAULT_LISTS = IgnoredFields()
DATA: Mapping[str, Any] = json.loads((Path(__file__).parents[1] / "cases" / "typo3_13.4.18.json").read_text())

#: Worked out by hand, from what the rows of each record's history name after the write.
BY_HAND = {
    # MODIFY of bodytext, which the ADD of the run set.
    "02-human-edit": Meaning.RUN_TEXT,
    # MODIFY of hidden, and of l18n_diffsource, which TYPO3 keeps itself.
    "05-unhide-only": Meaning.RELEASE,
    # MODIFY of fe_group ('0' to '') and l18n_diffsource: the first save of a form.
    "06-form-save-no-change": Meaning.NO_CHANGE,
    # MOVE.
    "07-move-only": Meaning.MOVE,
    # Two MODIFY of bodytext, there and back: the last value is the run's.
    "11-edit-and-reverted": Meaning.NO_CHANGE,
    # DELETE, then UNDELETE.
    "12-delete-and-undelete": Meaning.RESTORE,
    # The PUBLISH names tstamp, fe_group, l18n_diffsource, selected_categories and bodytext, which our draft
    # had set, to the text of our draft.
    "23-ws-edit-published(target=live)": Meaning.RELEASE,
    # The PUBLISH names workspaceId, comment and recipients, and no field.
    "26-ws-new-published": Meaning.RELEASE,
    # MODIFY of header; the row of the write itself was trimmed, so the fields it set are not known.
    "29-existing,old-history-trimmed": Meaning.CANNOT_BE_TOLD,
}


def audit(site, *, start=None, end=DATA["now"] + 1, lists=DEFAULT_LISTS, page_size=500, **options):
    hook = NrLlmEditedAuditHook(site.conn_id)
    pages = hook.meanings(start, end, grouping=(), window=WEEK, ignored=lists, page_size=page_size, **options)
    return {uuid: meaning for page in pages for uuid, (_, meaning) in page.items()}


@pytest.fixture
def stories(site):
    """The stories of TYPO3, answered as a derivation answers them."""
    load_typo3(site.engine, DATA)
    answered(site, [(uuid, value) for uuid, value in DATA["expect"].items() if value])
    return site


def test_each_edited_story_is_told_as_by_hand(stories):
    assert set(BY_HAND) == {uuid for uuid, value in DATA["expect"].items() if "edited" == value}
    assert BY_HAND == audit(stories)


def test_pages_tell_the_same_whatever_their_size(stories):
    assert BY_HAND == audit(stories, page_size=1) == audit(stories, page_size=9)


def test_the_audit_changes_no_outcome(stories):
    before = tables.outcome_rows(stories.engine)
    audit(stories)
    assert before == tables.outcome_rows(stories.engine)


def test_field_lists_are_arguments(stories):
    lists = IgnoredFields(release=("bodytext",), automatic=("l18n_*",), place=())
    found = audit(stories, lists=lists)
    assert (Meaning.RELEASE, Meaning.RUN_TEXT) == (found["02-human-edit"], found["05-unhide-only"])


#: Where the audit still differs from what really happened, and why.
TOLD_OTHERWISE = {
    "10-edit-same-second": "counts as the machine's",
    "14-sql-update-only": "leaves no history",
    "15-slow-human-request": "is stamped before the write",
    "16-late-event-crdate": "lies between the machine's row and its event",
    "22-ws-edit-published(target=overlay)": "names a version that is gone",
    "24-ws-edit-discarded(target=live)": "discards a draft, of which the record tells nothing",
    "32-uid-as-string-payload": "names no record that can be read",
}

#: No history, or a write that names no record that is there: nothing tells what happened to these.
LEFT_NOTHING = {"14-sql-update-only", "22-ws-edit-published(target=overlay)", "32-uid-as-string-payload"}


def test_all_other_stories_are_told_as_they_happened(stories):
    accepted = {Meaning.BESIDE, Meaning.RELEASE, Meaning.MOVE, Meaning.RESTORE, Meaning.NO_CHANGE}
    told = {uuid: "accepted" if meaning in accepted else "edited" for uuid, meaning in audit(stories).items()}
    found = {uuid: told.get(uuid, str(value).split("_")[0]) for uuid, value in DATA["expect"].items()}
    happened = {uuid: text.split()[0] for uuid, text in DATA["what_happened"].items()}
    decided = {uuid for uuid, word in happened.items() if word in ("accepted", "edited", "discarded")}
    assert set(TOLD_OTHERWISE) == {uuid for uuid in decided if found[uuid] != happened[uuid]}
    # Of those that left something to tell by.
    decidable = decided - LEFT_NOTHING
    assert (24, 20) == (len(decidable), sum(found[uuid] == happened[uuid] for uuid in decidable))


def test_the_range_is_of_the_outcome_or_of_the_run(stories):
    assert {} == audit(stories, end=DATA["now"])
    by_run = audit(stories, end=1764300000, range_of=RangeOf.RUN)
    assert {"02-human-edit": Meaning.RUN_TEXT} == by_run


def test_of_a_run_that_was_purged_it_cannot_be_told(site):
    answered(site, [("purged", "edited")])
    assert {"purged": Meaning.CANNOT_BE_TOLD} == audit(site)


def test_no_edited_run_is_no_page_of_any(site):
    answered(site, [("r1", "accepted_unchanged")])
    assert {} == audit(site)


#: What the write's own row did, and what later rows did, all of them by hand.
OWN_HEADER = (T, MODIFY, changed("header"))
CREATED = (T, ADD, record(header="b"))
#: The write made a version of a record that an editor had made, and set its bodytext.
DRAFT = (
    (T - 500, ADD, record(header="x")),
    (T, ADD, record(header="x", bodytext="x", t3ver_oid=1), 1),
    (T, MODIFY, changed("bodytext"), 1),
)


WORLDS = {
    "a field our write set is the run's text": (
        [OWN_HEADER, later(MODIFY, "header")], Meaning.RUN_TEXT,
    ),
    "another field is beside the run's text": (
        [OWN_HEADER, later(MODIFY, "bodytext")], Meaning.BESIDE,
    ),
    "a move that also changes the column": (
        [CREATED, later(MOVE), later(MODIFY, "colPos", "l18n_diffsource")], Meaning.MOVE,
    ),
    "a field that the run left empty when it created the record": (
        [(T, ADD, record(header="")), later(MODIFY, "header", old="", new="Welcome")], Meaning.BESIDE,
    ),
    "one empty value for another": (
        [(T, MODIFY, changed("header", "categories", new="")), later(MODIFY, "categories", old="", new="0")],
        Meaning.NO_CHANGE,
    ),
    "the defaults of a form in a field that the run left empty": (
        [(T, ADD, record(pi_flexform="")), later(MODIFY, "pi_flexform", old="", new="<T3FlexForms></T3FlexForms>")],
        Meaning.BESIDE,
    ),
    "the run's text again at the end of the window": (
        [(T, MODIFY, changed("bodytext")), later(MODIFY, "bodytext", at=T + 3), later(MODIFY, "bodytext", new="b")],
        Meaning.NO_CHANGE,
    ),
    "the run's text again in a record that it created": (
        [(T, ADD, record(header="b")), later(MODIFY, "header", at=T + 3), later(MODIFY, "header", new="b")],
        Meaning.NO_CHANGE,
    ),
    "the run's text again after the window": (
        [OWN_HEADER, later(MODIFY, "header"), later(MODIFY, "header", new="b", at=T + WEEK + 1)],
        Meaning.RUN_TEXT,
    ),
    "one field as it was, and another changed": (
        [OWN_HEADER, later(MODIFY, data='{"oldRecord":{"header":1,"a":"x"},"newRecord":{"header":"1","a":"y"}}')],
        Meaning.BESIDE,
    ),
    "a value that differs in case": (
        [OWN_HEADER, later(MODIFY, "header", old="b", new="B")], Meaning.RUN_TEXT,
    ),
    "a value that differs in a blank at its end": (
        [OWN_HEADER, later(MODIFY, "header", old="b", new="b ")], Meaning.RUN_TEXT,
    ),
    "nothing for a text": (
        [OWN_HEADER, later(MODIFY, "header", old="b", new=None)], Meaning.RUN_TEXT,
    ),
    "JSON that differs in white space": (
        [OWN_HEADER, later(MODIFY, "header", old='{"a": [1, 2]}', new='{"a":[1,2]}')], Meaning.NO_CHANGE,
    ),
    "JSON of other elements": (
        [OWN_HEADER, later(MODIFY, "header", old="[1, 2]", new="[2, 1]")], Meaning.RUN_TEXT,
    ),
    "of a record we created all fields are ours, also where the row is cut off": (
        [(T, ADD, '{"header":'), later(MODIFY, "subheader")], Meaning.RUN_TEXT,
    ),
    "a release of a record we created is no edit of it": (
        [CREATED, later(MODIFY, "hidden", "starttime", "endtime")], Meaning.RELEASE,
    ),
    "text beside a release is text": (
        [CREATED, later(MODIFY, "hidden", "header")], Meaning.RUN_TEXT,
    ),
    "what TYPO3 changes by itself is no change": (
        [CREATED, later(MODIFY, "l10n_diffsource", "l10n_state", "t3ver_stage", "tstamp", "SYS_LASTCHANGED")],
        Meaning.NO_CHANGE,
    ),
    "nothing changed is no change": (
        [OWN_HEADER, later(MODIFY, data='{"oldRecord":[],"newRecord":[]}')], Meaning.NO_CHANGE,
    ),
    "an unreadable own row": (
        [(T, MODIFY, 'a:1:{s:1:"a";i:1;}'), later(MODIFY, "header")], Meaning.CANNOT_BE_TOLD,
    ),
    "an own row that names no field": (
        [(T, MODIFY, "[]"), later(MODIFY, "header")], Meaning.CANNOT_BE_TOLD,
    ),
    "a release is one, whatever our row was": (
        [(T, MODIFY, None), later(MODIFY, "hidden")], Meaning.RELEASE,
    ),
    "a later row that is cut off": (
        [CREATED, later(MODIFY, data=changed("header")[:-2])], Meaning.CANNOT_BE_TOLD,
    ),
    "a later row without text": (
        [CREATED, later(MODIFY, data="")], Meaning.CANNOT_BE_TOLD,
    ),
    "an action TYPO3 does not have yet": (
        [CREATED, later(8, "header")], Meaning.CANNOT_BE_TOLD,
    ),
    "the stage of a draft": (
        [CREATED, later(STAGECHANGE, data='{"next":1}')], Meaning.NO_CHANGE,
    ),
    "a publish without field names": (
        [CREATED, later(PUBLISH)], Meaning.RELEASE,
    ),
    "a publish of other fields": (
        [OWN_HEADER, later(PUBLISH, "bodytext")], Meaning.BESIDE,
    ),
    "the strongest of several counts": (
        [OWN_HEADER, later(MOVE, at=T + 3), later(MODIFY, "hidden", at=T + 6), later(MODIFY, "bodytext")],
        Meaning.BESIDE,
    ),
    "the run's text outranks what cannot be told": (
        [OWN_HEADER, later(MODIFY, data="?", at=T + 3), later(MODIFY, "header")], Meaning.RUN_TEXT,
    ),
    "what is restored was deleted by us": (
        [(T - 9, ADD, "{}"), (T, DELETE, None), later(UNDELETE)], Meaning.RUN_TEXT,
    ),
    "the run's own draft, published as it was": (
        [*DRAFT, later(PUBLISH, "bodytext", old="a", new="b")], Meaning.RELEASE,
    ),
    "the run's own draft, edited before it was published": (
        [*DRAFT, (T + 3, MODIFY, changed("bodytext"), 1), later(PUBLISH, "bodytext", old="a", new="c")],
        Meaning.RUN_TEXT,
    ),
    "what a draft only copied from the live record": (
        [*DRAFT, later(PUBLISH, "header", "bodytext", old="a", new="b")], Meaning.BESIDE,
    ),
    "a new draft, edited before it was published": (
        [(T, ADD, record(header="b", t3ver_oid=0), 1), later(PUBLISH, "header")], Meaning.RUN_TEXT,
    ),
    "what happened after the close is not looked at": (
        [CREATED, later(MOVE), later(MODIFY, "header", at=T + WEEK + 1)], Meaning.MOVE,
    ),
}  # fmt: skip


def test_what_an_edit_is_to_run_text(site):
    uuids = {world: f"r{number}" for number, world in enumerate(WORLDS, start=1)}
    for number, (world, (rows, _)) in enumerate(WORLDS.items(), start=1):
        lay(site, *rows, target=("tt_content", number), uuid=uuids[world])
    found = audit(site)
    assert {world: meaning for world, (_, meaning) in WORLDS.items()} == {
        world: found[uuid] for world, uuid in uuids.items()
    }


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param('{"a": 1, "b": 2}', '{"b": 2, "a": 1}', id="order of keys"),
        pytest.param('{"a": 1.0}', '{"a": 1}', id="digits of a number"),
    ],
)
def test_how_json_is_spelled_is_no_change_as_far_as_the_engine_can_tell(site, old, new):
    lay(site, OWN_HEADER, later(MODIFY, "header", old=old, new=new))
    expected = {"sqlite": Meaning.RUN_TEXT, "mariadb": Meaning.NO_CHANGE, "postgres": Meaning.NO_CHANGE}[site.name]
    assert {"r1": expected} == audit(site)


BROKEN = [
    '{"a":',
    '{"a": 1e999999}',
    '{"a": "\\u0000"}',
    "[" * 200,
    "[" * 200 + "]" * 200,
    '{"a": ' + "9" * 500 + "}",
    '{"a": "\\ud83d"}',
    "{'a'}",
]


@pytest.mark.parametrize("text", BROKEN)
def test_a_text_that_an_engine_may_not_read_as_json_is_compared_as_it_is_and_raises_nothing(site, text):
    lay(site, OWN_HEADER, later(MODIFY, "header", old=text, new=text + " "))
    lay(site, OWN_HEADER, later(MODIFY, "header", old=text, new=text + "x"), target=("tt_content", 2), uuid="r2")
    found = audit(site)
    assert Meaning.RUN_TEXT == found["r2"]
    if site.name == "postgres":
        assert Meaning.RUN_TEXT == found["r1"]


SECRET = "a secret of the editor"


def test_no_value_leaves_the_database(site):
    """Asked of every row that the driver hands over, and of every parameter that it is given."""
    own = (T, ADD, record(header=SECRET, bodytext=json.dumps({SECRET: SECRET})))
    lay(site, own, later(MODIFY, "header", "bodytext", old=SECRET, new=SECRET + "!", at=T + 3),
        later(MODIFY, "bodytext", old=json.dumps({SECRET: 1}), new=f'{{"{SECRET}": 1e999999}}'),
        later(MODIFY, "header", old=None, new=f"[{SECRET}"))  # fmt: skip
    hook, handed = NrLlmEditedAuditHook(site.conn_id), []

    @event.listens_for(hook.database.engine, "before_cursor_execute")
    def _keep(_connection, _cursor, statement, parameters, _context, _many):
        handed.append((statement, parameters))

    @event.listens_for(hook.database.engine, "after_cursor_execute")
    def _read(connection, _cursor, statement, parameters, _context, _many):
        if "history_data" in statement:
            with site.engine.connect() as other:
                handed.append(list(other.exec_driver_sql(statement, parameters)))

    meanings = list(hook.meanings(None, DATA["now"] + 1, grouping=(), window=WEEK, ignored=IgnoredFields()))
    assert [{"r1": ((), Meaning.RUN_TEXT)}] == meanings
    assert 2 == sum(isinstance(found, list) for found in handed)
    assert SECRET not in repr(handed)


def test_each_write_of_a_run_is_judged_by_the_fields_it_set_itself(site):
    lay(
        site,
        (T, MODIFY, changed("header")),
        (T + 50, MODIFY, changed("bodytext")),
        later(MODIFY, "bodytext", at=T + 99),
        writes=(T, T + 50),
    )
    # To the first write it is beside, to the second the run's text.
    assert {"r1": Meaning.RUN_TEXT} == audit(site)


def test_a_row_of_another_run_is_no_edit(site):
    lay(site, (T, MODIFY, changed("header")), (T + 60, MOVE, None))
    lay(site, (T + 50, MODIFY, changed("header")), writes=(T + 50,), uuid="r2")
    assert {"r1": Meaning.MOVE, "r2": Meaning.MOVE} == audit(site)


def sent_by(site, **options):
    hook = NrLlmEditedAuditHook(site.conn_id)
    sent = []

    @event.listens_for(hook.database.engine, "before_cursor_execute")
    def _keep(_connection, _cursor, statement, _parameters, _context, _many):
        sent.append(statement)

    list(hook.meanings(None, DATA["now"] + 1, grouping=(), window=WEEK, ignored=IgnoredFields(), **options))
    return sent


def test_a_page_costs_the_same_statements_whatever_is_on_it(site):
    lay(site, (T, ADD, "{}"), (T + 9, MODIFY, changed("header")), uuid="r0")
    one = len(sent_by(site))
    for number in range(1, 12):
        history = [(T, ADD, "{}"), (T + 9, MODIFY, changed("header"))]
        lay(site, *history, target=("pages", number), uuid=f"r{number}")
    assert one == len(sent_by(site))


PERSONAL = re.compile(r"be_user|userid|originaluserid|suspended_state|queued_request|approv|claimed_by")


def test_no_column_of_a_user_or_an_approval_is_read(stories):
    sent = sent_by(stories)
    assert any("history_data" in statement for statement in sent)
    assert [] == [statement for statement in sent if PERSONAL.search(statement)]
