"""What a later row is to the text of a write, by the names of fields alone."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_nrllm.edits.field_names import fields_by_row
from airflow_provider_nrllm.edits.meanings import (
    STRENGTH,
    Change,
    FieldsWritten,
    IgnoredFields,
    Meaning,
    fields_written,
    meaning_of_change,
    strongest,
)
from airflow_provider_nrllm.outcomes.evidence import Action
from airflow_provider_nrllm.readout.audited import EditedRuns

LISTS = IgnoredFields()
HEADER = FieldsWritten(frozenset({"header"}))
ALL = FieldsWritten(None)
UNTOLD = FieldsWritten(known=False)


def meaning(action, *fields, write=HEADER, **options):
    return meaning_of_change(Change(action, frozenset(fields)), write, LISTS, **options)


def test_a_field_that_our_write_set_is_run_text():
    assert Meaning.RUN_TEXT == meaning(Action.MODIFY, "header", "layout", "hidden")


def test_only_other_fields_are_beside_run_text():
    assert Meaning.BESIDE == meaning(Action.MODIFY, "layout", "hidden")


def test_what_releases_a_record_is_a_release_also_where_our_write_set_it():
    assert Meaning.RELEASE == meaning(Action.MODIFY, "hidden", "endtime", "tstamp", write=ALL)


@pytest.mark.parametrize(
    "field",
    ["l10n_diffsource", "l18n_diffsource", "l10n_state", "fe_group", "t3ver_state", "tstamp", "SYS_LASTCHANGED"],
)
def test_what_typo3_changes_by_itself_is_no_change(field):
    assert Meaning.NO_CHANGE == meaning(Action.MODIFY, field, write=ALL)


def test_a_name_that_only_begins_like_one_is_text():
    assert Meaning.RUN_TEXT == meaning(Action.MODIFY, "hidden_text", write=ALL)


def test_a_modify_of_nothing_is_no_change():
    assert Meaning.NO_CHANGE == meaning(Action.MODIFY)


def test_a_publish_of_no_text_is_a_release():
    assert [Meaning.RELEASE] * 2 == [meaning(Action.PUBLISH), meaning(Action.PUBLISH, "tstamp")]


def test_a_move_is_a_move_and_an_undelete_a_restore():
    assert (Meaning.MOVE, Meaning.RESTORE) == (meaning(Action.MOVE), meaning(Action.UNDELETE))


def test_to_restore_what_our_write_deleted_is_to_undo_it():
    assert Meaning.RUN_TEXT == meaning(Action.UNDELETE, undoes_deletion=True)


def test_without_the_own_fields_only_what_is_about_text_cannot_be_told():
    assert Meaning.CANNOT_BE_TOLD == meaning(Action.MODIFY, "header", write=UNTOLD)
    assert Meaning.RELEASE == meaning(Action.MODIFY, "hidden", write=UNTOLD)


def test_a_row_that_cannot_be_read_cannot_be_told():
    assert Meaning.CANNOT_BE_TOLD == meaning_of_change(Change(Action.MODIFY, None), ALL, LISTS)


@pytest.mark.parametrize("told", [None, frozenset()])
def test_where_the_row_that_made_a_record_tells_no_field_all_are_the_runs(told):
    assert ALL == fields_written([Change(Action.ADD, told), Change(Action.MODIFY, frozenset({"a"}))])


def test_the_fields_of_several_own_rows_are_pooled():
    assert FieldsWritten(frozenset({"a", "b"})) == fields_written(
        [Change(Action.MODIFY, frozenset("a")), Change(2, frozenset("b"))]
    )


def test_a_write_that_only_moved_set_no_text_and_that_is_known():
    assert FieldsWritten(frozenset()) == fields_written([Change(Action.MOVE)])


@pytest.mark.parametrize("own", [[], [Change(Action.MODIFY, None)], [Change(Action.MODIFY)]])
def test_a_trimmed_unreadable_or_empty_own_row_tells_no_field(own):
    assert not fields_written(own).known


def test_the_strongest_meaning_counts():
    for stronger, weaker in itertools.combinations(STRENGTH, 2):
        assert stronger == strongest([weaker, stronger])


def test_of_nothing_it_cannot_be_told():
    assert Meaning.CANNOT_BE_TOLD == strongest([])


@given(st.lists(st.sampled_from(Meaning), min_size=1), st.sampled_from(Meaning))
def test_another_change_never_makes_a_meaning_weaker(meanings, another):
    assert STRENGTH.index(strongest([*meanings, another])) <= STRENGTH.index(strongest(meanings))


def test_what_cannot_be_told_is_not_counted_as_over_report():
    runs = EditedRuns({Meaning.RUN_TEXT: 2, Meaning.CANNOT_BE_TOLD: 3, Meaning.BESIDE: 1, Meaning.MOVE: 4})
    assert (5, 10) == (runs.over_report.count, runs.over_report.of)


@pytest.mark.parametrize("lists", [("hidden", []), ([], "tstamp"), ([1], [])])
def test_a_field_list_is_a_list_of_names(lists):
    with pytest.raises(ValueError, match="expected a list of field names"):
        IgnoredFields.of(*lists)


def test_the_parts_of_a_row_tell_its_fields():
    # uid, action, blank, type of the whole, type of newRecord, names: as the engines answer.
    rows = [
        (1, 2, 0, "OBJECT", "OBJECT", '["a", "b"]'),
        (2, 2, 0, "object", "object", None),
        (3, 2, 1, None, None, None),
        (4, 7, 1, None, None, None),
        (5, 2, 0, "ARRAY", None, None),
    ]
    expected = {1: frozenset("ab"), 2: frozenset(), 3: None, 4: frozenset(), 5: frozenset()}
    assert expected == fields_by_row(rows)
