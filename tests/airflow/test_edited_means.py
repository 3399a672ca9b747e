"""The opt-in of the derivation: only a change of our own fields makes a run EDITED."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
import time_machine
from sqlalchemy import event

from airflow_provider_nrllm.operators.outcomes import NrLlmDeriveOutcomesOperator
from tests.typo3.loader import load_case, load_typo3
from tests.typo3.tables import empty_tables, outcome_rows

CASES = Path(__file__).parent.parent / "cases"
OBSERVED_OUTCOMES = json.loads((CASES / "observed_outcomes.json").read_text())
TYPO3 = json.loads((CASES / "typo3_13.4.18.json").read_text())

#: What is not EDITED any more, by hand: see tests/database/test_edited_audit.py for what each edit is.
OTHERWISE = {
    "05-unhide-only": "accepted_unchanged",
    "06-form-save-no-change": "accepted_unchanged",
    "07-move-only": "accepted_unchanged",
    "11-edit-and-reverted": "accepted_unchanged",
    "12-delete-and-undelete": "accepted_unchanged",
    # The published draft holds the run's own text.
    "23-ws-edit-published(target=live)": "accepted_unchanged",
    # The draft's row is no row of the live record, but shows that the history reaches back to the write.
    "26-ws-new-published": "accepted_unchanged",
    # The fields that the write set are not known.
    "29-existing,old-history-trimmed": "unknown",
}


def operator(site, **arguments):
    return NrLlmDeriveOutcomesOperator(task_id="derive", nrllm_conn_id=site.conn_id, **arguments)


def derive(site, now=TYPO3["now"], **arguments):
    with time_machine.travel(now, tick=False):
        return operator(site, **arguments).execute({})


@pytest.mark.parametrize("page_size", [3, 500])
def test_only_a_change_of_our_fields_is_edited_where_that_is_asked_for(site, page_size):
    load_typo3(site.engine, TYPO3)
    result = derive(site, edited_means="our fields", page_size=page_size)
    expected = {uuid: value for uuid, value in TYPO3["expect"].items() if value} | OTHERWISE
    assert sorted(expected.items()) == outcome_rows(site.engine)
    assert "our fields" == result["edited_means"]


def test_any_change_is_edited_by_default_and_the_result_says_so(site):
    load_typo3(site.engine, TYPO3)
    result = derive(site)
    assert sorted(TYPO3["expect"].items()) == outcome_rows(site.engine)
    assert "any change" == result["edited_means"]


def test_what_is_no_edit_keeps_its_outcome_in_every_case(site):
    """Each case answers the same, but that an EDITED may become unknown or accepted_unchanged."""
    for case in OBSERVED_OUTCOMES[::12]:
        empty_tables(site.engine)
        load_case(site.engine, case)
        start, end = (None if second is None else datetime.fromtimestamp(second, UTC) for second in case["interval"])
        ends = {"interval_start": start, "interval_end": end}
        derive(site, now=case["now"], window=case["window_days"], edited_means="our fields", **ends)
        found = dict(outcome_rows(site.engine))
        for uuid, value in case["expect"].items():
            allowed = {"edited", "unknown", "accepted_unchanged"} if value == "edited" else {value}
            assert found[uuid] in allowed, (case["name"], uuid)


@pytest.mark.parametrize("means", ["any change", "our fields"])
def test_record_content_is_looked_into_only_where_that_is_asked_for(site, means):
    load_typo3(site.engine, TYPO3)
    task = operator(site, edited_means=means)
    sent = []

    @event.listens_for(task.hook.database.engine, "before_cursor_execute")
    def _keep(_connection, _cursor, statement, _parameters, _context, _many):
        sent.append(statement)

    with time_machine.travel(TYPO3["now"], tick=False):
        task.execute({})
    assert ("our fields" == means) is any("history_data" in statement for statement in sent)


@pytest.mark.parametrize(
    "arguments", [{"edited_means": "the run's text"}, {"edited_means": None}, {"automatic_fields": "tstamp"}]
)
def test_another_meaning_is_refused_when_the_dag_is_parsed(arguments):
    with pytest.raises(ValueError):  # noqa: PT011
        NrLlmDeriveOutcomesOperator(task_id="derive", **arguments)
