"""Ids, outcome values, statuses and kinds of events are compared to the letter, on every engine, in every collation."""

from __future__ import annotations

import pytest
from sqlalchemy import insert, text, update

from airflow_provider_nrllm.edits.meanings import IgnoredFields
from airflow_provider_nrllm.hooks.audit import NrLlmEditedAuditHook
from airflow_provider_nrllm.hooks.nrllm import NrLlmHook
from airflow_provider_nrllm.hooks.readout import NrLlmReadoutHook
from airflow_provider_nrllm.operators.outcomes import NrLlmDeriveOutcomesOperator
from airflow_provider_nrllm.purge.reading import PurgeReader
from airflow_provider_nrllm.readout.counts import RangeOf
from airflow_provider_nrllm.readout.groups import Dimension
from tests.typo3 import tables
from tests.typo3.loader import load_case
from tests.typo3.readouts import MARCH, calls, counts, outcome
from tests.typo3.readouts import run as lay_run
from tests.typo3.tables import outcome_rows
from tests.typo3.worlds import DAY, START, accepted, run, world

BY_MODEL = (Dimension.SERVED_MODEL,)
END = MARCH + 10 * DAY
ONE_HELPFUL = {"a": ((1, 0), (0, 0, 0, 0))}

OTHER_COLLATIONS = [
    "ALTER TABLE tx_nrllm_call_outcome CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci",
    "ALTER TABLE tx_nrllm_telemetry CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
]
OTHER_CHARACTER_SETS = [
    "ALTER TABLE tx_nrllm_call_outcome CONVERT TO CHARACTER SET latin1 COLLATE latin1_german1_ci",
    "ALTER TABLE tx_nrllm_telemetry CONVERT TO CHARACTER SET latin1 COLLATE latin1_swedish_ci",
    "ALTER TABLE tx_nrllm_agentrun CONVERT TO CHARACTER SET utf8mb3 COLLATE utf8mb3_general_ci",
]


def read(site, range_of):
    return NrLlmReadoutHook(site.conn_id).readout(MARCH, END, grouping=BY_MODEL, range_of=range_of)


@pytest.mark.parametrize("range_of", RangeOf)
@pytest.mark.parametrize("statements", [OTHER_COLLATIONS, OTHER_CHARACTER_SETS], ids=["collations", "character sets"])
def test_a_readout_compares_tables_of_several_collations(make_site_to_change, statements, range_of):
    site = make_site_to_change("mariadb")
    with site.engine.begin() as connection:
        for statement in statements:
            connection.execute(text(statement))
    for uuid in ("r1", "R1"):
        lay_run(site.engine, uuid, MARCH)
        calls(site.engine, uuid, "a" if uuid == "r1" else "b")
    outcome(site.engine, "r1", "helpful")
    outcome(site.engine, "r2", "helpful", MARCH - 1)
    assert ONE_HELPFUL == counts(read(site, range_of))


@pytest.mark.parametrize("range_of", RangeOf)
@pytest.mark.parametrize("statements", [OTHER_COLLATIONS, OTHER_CHARACTER_SETS], ids=["collations", "character sets"])
def test_an_audit_compares_tables_of_several_collations(make_site_to_change, statements, range_of):
    site = make_site_to_change("mariadb")
    with site.engine.begin() as connection:
        for statement in statements:
            connection.execute(text(statement))
    lay_run(site.engine, "r1", MARCH)
    outcome(site.engine, "r1", "edited")
    pages = NrLlmEditedAuditHook(site.conn_id).meanings(
        MARCH, END, grouping=BY_MODEL, window=DAY, ignored=IgnoredFields.of((), ()), range_of=range_of
    )
    assert [["r1"]] == [list(page) for page in pages]


@pytest.mark.parametrize("range_of", RangeOf)
def test_a_readout_skips_values_that_are_not_the_known_ones_to_the_letter(site, range_of):
    calls(site.engine, "r1", "a")
    lay_run(site.engine, "r1", MARCH)
    for value in ("helpful", "Edited", "edited ", "HELPFUL", "HELPFUL"):
        outcome(site.engine, "r1", value)
    outcome(site.engine, "without run", "Helpful")
    found = read(site, range_of)
    assert (ONE_HELPFUL, 0) == (counts(found), found.without_run)


def test_a_rating_whose_run_differs_in_case_is_one_without_a_run(site):
    for uuid in ("abc", "def"):
        lay_run(site.engine, uuid, MARCH)
    for correlation_id in ("abc", "ABC", "abc ", "DEF", "def"):
        outcome(site.engine, correlation_id, "helpful")
    assert 3 == read(site, RangeOf.RUN).without_run


def test_the_calls_of_ids_that_differ_in_case_are_told_apart(site):
    for correlation_id in ("abc", "ABC", "abc "):
        calls(site.engine, correlation_id, "a" if correlation_id == "ABC" else "b")
    outcome(site.engine, "ABC", "helpful")
    (group,) = read(site, RangeOf.OUTCOME).groups
    assert 1 == group.explicit.usage.calls


def test_of_ids_that_differ_in_case_the_one_that_ended_late_is_answered(site):
    late = START + 60 * DAY
    case = world([run(1, uuid="abc", finished_at=late), run(2, uuid="ABC", at=START + 55 * DAY, finished_at=late)])
    load_case(site.engine, case)
    hook = NrLlmHook(site.conn_id)
    pages = hook.pages(late, late + DAY, window=7 * DAY, page_size=10)
    assert ["abc"] == [run.uuid for page in pages for run in page.runs]


def test_an_event_whose_kind_differs_in_case_is_no_write(site):
    case = world([run(1), run(2, at=START + 60)])
    load_case(site.engine, case)
    with site.engine.begin() as connection:
        of_first = tables.event.c.crdate == START
        connection.execute(
            update(tables.event).where(tables.event.c.kind == "tool_write", of_first).values(kind="TOOL_WRITE")
        )
    NrLlmDeriveOutcomesOperator(task_id="derive", nrllm_conn_id=site.conn_id).execute({})
    assert accepted(case)[1:] == outcome_rows(site.engine)


@pytest.mark.parametrize("status", ["COMPLETED", "completed "])
def test_a_run_whose_status_is_not_an_end_to_the_letter_is_not_at_risk(site, status):
    load_case(site.engine, world([run(1)]))
    with site.engine.begin() as connection:
        connection.execute(update(tables.run).values(status=status))
    reader = PurgeReader(NrLlmHook(site.conn_id).database)
    at_risk = reader.at_risk(made_before=START + 30 * DAY, window=7 * DAY, now=START + 30 * DAY)
    assert (0, 0) == (at_risk.settled, at_risk.unsettled)


def test_an_id_beyond_ascii_is_found_in_a_table_of_another_character_set(make_site_to_change):
    site = make_site_to_change("mariadb")
    with site.engine.begin() as connection:
        connection.execute(text("ALTER TABLE tx_nrllm_call_outcome CONVERT TO CHARACTER SET latin1"))
    calls(site.engine, "é", "a")
    calls(site.engine, "e", "b")
    with site.engine.begin() as connection:
        connection.execute(
            insert(tables.outcome), [{"correlation_id": "é", "outcome": "helpful", "crdate": MARCH, "tstamp": MARCH}]
        )
    assert ONE_HELPFUL == counts(read(site, RangeOf.OUTCOME))
