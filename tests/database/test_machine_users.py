"""Changes of TYPO3 users who are named as machines are no edits; without a name no user is looked at."""

from __future__ import annotations

import re

import pytest
import time_machine
from sqlalchemy import event, insert

from airflow_provider_nrllm.operators.outcomes import NrLlmDeriveOutcomesOperator
from tests.typo3.loader import load_case
from tests.typo3.tables import backend_user, history, outcome_rows
from tests.typo3.worlds import DAY, START, run, world


@pytest.fixture
def changed_site(site):
    """A run each whose record ``_cli_``, an importer, a person, and a person of a similar name changed."""
    names = {1: "_cli_", 2: "importer", 3: "editor", 4: "Importer", 5: "importer ", 6: "imp\u00f3rter"}
    load_case(site.engine, world([run(number, at=START + number) for number in names]))
    with site.engine.begin() as connection:
        connection.execute(insert(backend_user), [{"uid": uid, "username": name} for uid, name in names.items()])
        rows = [
            {"uid": 100 + uid, "tstamp": START + DAY, "actiontype": 2, "userid": uid, "tablename": "tt_content",
             "recuid": uid, "usertype": "BE"}
            for uid in names
        ]  # fmt: skip
        connection.execute(insert(history), rows)
    return site


def derive(site, **arguments):
    with time_machine.travel(START + 30 * DAY, tick=False):
        NrLlmDeriveOutcomesOperator(task_id="derive", nrllm_conn_id=site.conn_id, **arguments).execute({})
    return [outcome for _, outcome in outcome_rows(site.engine)]


def test_without_names_every_user_is_a_person(changed_site):
    assert ["edited"] * 6 == derive(changed_site)


def test_a_named_user_is_compared_to_the_letter(changed_site):
    expected = ["accepted_unchanged", "accepted_unchanged", "edited", "edited", "edited", "edited"]
    assert expected == derive(changed_site, machine_users=["_cli_", "importer"])


def test_a_row_without_a_user_is_a_persons(changed_site):
    with changed_site.engine.begin() as connection:
        connection.execute(history.update().values(userid=None))
    assert ["edited"] * 6 == derive(changed_site, machine_users=["_cli_"])


def test_a_name_that_no_user_has_is_logged_without_the_name(changed_site, caplog, capsys):
    derive(changed_site, machine_users=["_cli_", "nobody-of-that-name"])
    logged = caplog.text + capsys.readouterr().out
    assert "machine_users names 2 TYPO3 users, of which be_users has 1" in logged
    assert "nobody-of-that-name" not in logged


@pytest.mark.parametrize(("arguments", "expected"), [({}, False), ({"machine_users": ["_cli_"]}, True)])
def test_users_are_compared_inside_the_database_and_only_if_one_is_named(changed_site, arguments, expected):
    sent = []
    operator = NrLlmDeriveOutcomesOperator(task_id="derive", nrllm_conn_id=changed_site.conn_id, **arguments)
    event.listen(operator.hook.database.engine, "before_cursor_execute", lambda *args: sent.append(args[2]))
    with time_machine.travel(START + 30 * DAY, tick=False):
        operator.execute({})
    assert expected == any("userid" in statement or "be_users" in statement for statement in sent)
    selected = [re.split(r"\bFROM\b", statement)[0] for statement in sent if not statement.startswith("SELECT count")]
    assert not any(word in columns for columns in selected for word in ("originaluserid", "username "))


@pytest.mark.parametrize("names", ["_cli_", [""], [1], [None]])
def test_what_is_no_list_of_names_is_refused_when_the_dag_is_parsed(names):
    with pytest.raises(ValueError, match="expected a list of names of TYPO3 users"):
        NrLlmDeriveOutcomesOperator(task_id="derive", machine_users=names)
