"""The audit of EDITED on each engine: the stories TYPO3 wrote itself, and sites laid by hand."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event, insert

from airflow_provider_nrllm.edits.meanings import IgnoredFields, Meaning
from airflow_provider_nrllm.hooks.audit import NrLlmEditedAuditHook
from airflow_provider_nrllm.readout.counts import RangeOf
from tests.typo3 import tables as tables
from tests.typo3.loader import load_typo3

WEEK = 7 * 86400
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
    # Two MODIFY of bodytext, there and back; that the text is the same in the end no name tells.
    "11-edit-and-reverted": Meaning.RUN_TEXT,
    # DELETE, then UNDELETE.
    "12-delete-and-undelete": Meaning.RESTORE,
    # The PUBLISH names tstamp, fe_group, l18n_diffsource, selected_categories and bodytext, which our draft
    # had set: whether the published text is ours or was edited in the workspace, no name tells.
    "23-ws-edit-published(target=live)": Meaning.RUN_TEXT,
    # The PUBLISH names workspaceId, comment and recipients, and no field.
    "26-ws-new-published": Meaning.RELEASE,
    # MODIFY of header; the row of the write itself was trimmed, so the fields it set are not known.
    "29-existing,old-history-trimmed": Meaning.CANNOT_BE_TOLD,
}


def audit(site, *, start=None, end=DATA["now"] + 1, lists=DEFAULT_LISTS, page_size=500, **options):
    hook = NrLlmEditedAuditHook(site.conn_id)
    pages = hook.meanings(start, end, grouping=(), window=WEEK, ignored=lists, page_size=page_size, **options)
    return {uuid: meaning for page in pages for uuid, (_, meaning) in page.items()}


def answered(site, outcomes, at=DATA["now"]):
    with site.engine.begin() as connection:
        rows = [{"correlation_id": uuid, "outcome": value, "crdate": at, "tstamp": at} for uuid, value in outcomes]
        connection.execute(insert(tables.outcome), rows)


@pytest.fixture
def stories(site):
    """The stories of TYPO3, answered as a derivation answers them."""
    load_typo3(site.engine, DATA)
    answered(site, [(uuid, value) for uuid, value in DATA["expect"].items() if value])
    return site


def test_each_edited_story_is_told_as_by_hand(stories):
    assert set(BY_HAND) == {uuid for uuid, value in DATA["expect"].items() if value == "edited"}
    assert BY_HAND == audit(stories)


def test_pages_tell_the_same_whatever_their_size(stories):
    assert BY_HAND == audit(stories, page_size=1) == audit(stories, page_size=9)


def test_the_audit_changes_no_outcome(stories):
    before = tables.outcome_rows(stories.engine)
    audit(stories)
    assert before == tables.outcome_rows(stories.engine)


def test_field_lists_are_arguments(stories):
    lists = IgnoredFields(release=("hidden", "bodytext"), automatic=("l18n_*",))
    found = audit(stories, lists=lists)
    assert (Meaning.RELEASE, Meaning.RUN_TEXT) == (found["02-human-edit"], found["06-form-save-no-change"])


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


T = 1770000000


def lay(site, *rows, target=("tt_content", 1), writes=(T,), uuid="r1"):
    """Lay a run that wrote a record at ``writes``, answered edited, and history ``(stamp, action, data)``."""
    payload = json.dumps({"writeTargetTable": target[0], "writeTargetUid": target[1]})
    with site.engine.begin() as connection:
        run_uid = connection.execute(
            insert(tables.run).values(uuid=uuid, status="completed", finished_at=T, crdate=T)
        ).inserted_primary_key[0]
        for at in writes:
            row = {"run": run_uid, "kind": "tool_write", "payload": payload, "crdate": at}
            connection.execute(insert(tables.event).values(**row))
        for stamp, action, data in rows:
            connection.execute(
                insert(tables.history).values(
                    tstamp=stamp, actiontype=action, history_data=data, tablename=target[0], recuid=target[1]
                )
            )
    answered(site, [(uuid, "edited")])


def changed(*fields):
    return json.dumps({"oldRecord": dict.fromkeys(fields, "a"), "newRecord": dict.fromkeys(fields, "b")})


ADD, MODIFY, MOVE, DELETE, UNDELETE, STAGECHANGE, PUBLISH = range(1, 8)

#: What the write's own row did, and what later rows did, all of them by hand.
OWN_HEADER = (T, MODIFY, changed("header"))
CREATED = (T, ADD, "{}")


def later(action, *fields, at=T + 9, data=None):
    """Return a later row; MODIFY and PUBLISH name the fields."""
    return (at, action, changed(*fields) if fields else data)


WORLDS = {
    "a field our write set is the run's text": (
        [OWN_HEADER, later(MODIFY, "header")], Meaning.RUN_TEXT,
    ),
    "another field is beside the run's text": (
        [OWN_HEADER, later(MODIFY, "bodytext")], Meaning.BESIDE,
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


def test_each_write_of_a_run_is_judged_by_the_fields_it_set_itself(site):
    lay(
        site,
        (T, MODIFY, changed("header")),
        (T + 50, MODIFY, changed("bodytext")),
        (T + 99, MODIFY, changed("bodytext")),
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
