"""A database user that may only do what docs/how-to/database-user.md grants."""

from __future__ import annotations

import re

import pytest
import time_machine
from sqlalchemy import create_engine, select, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool

from airflow_provider_nrllm.exceptions import NrLlmPrivilegeError
from airflow_provider_nrllm.hooks.nrllm import NrLlmHook
from airflow_provider_nrllm.operators.outcomes import NrLlmDeriveOutcomesOperator
from airflow_provider_nrllm.operators.purge import NrLlmPurgeGuardOperator
from airflow_provider_nrllm.outcomes.payloads import target_of
from tests.typo3.grants import PAGE, TYPO3, USER, documented_grants, run_as_admin
from tests.typo3.loader import load_typo3
from tests.typo3.tables import event, outcome_rows, run


@pytest.fixture
def restricted(server_site):
    """A site whose connection is that of the documented user; ``revoke`` takes privileges from it."""
    run_as_admin(server_site, *documented_grants(server_site.name))
    server_site.define_connection(login=USER, password="change-me")
    load_typo3(server_site.engine, TYPO3)
    yield server_site
    if server_site.name == "postgres":
        run_as_admin(server_site, f"DROP OWNED BY {USER}")
    run_as_admin(server_site, f"DROP USER {USER}")


def written_tables(engine):
    """Return the tables that the runs of each uuid wrote."""
    query = select(run.c.uuid, event.c.payload).where(run.c.uid == event.c.run, event.c.kind == "tool_write")
    written = {}
    with engine.connect() as connection:
        for uuid, payload in connection.execute(query):
            if target := target_of(payload):
                written.setdefault(uuid, set()).add(target.table)
    return written


def derive(site, **arguments):
    with time_machine.travel(TYPO3["now"], tick=False):
        return NrLlmDeriveOutcomesOperator(task_id="derive", nrllm_conn_id=site.conn_id, **arguments).execute({})


def test_the_documented_user_derives_all_outcomes(restricted):
    derive(restricted)
    assert outcome_rows(restricted.engine) == sorted(TYPO3["expect"].items())


def test_the_documented_user_may_ask_what_a_purge_would_take(restricted):
    with time_machine.travel(TYPO3["now"], tick=False):
        guard = NrLlmPurgeGuardOperator(task_id="guard", nrllm_conn_id=restricted.conn_id, on_unanswered="warn")
        assert guard.execute({})["settled"] > 0


@pytest.mark.parametrize("column", ["history_data", "userid"])
def test_the_documented_user_may_not_read_content_or_users(restricted, column):
    url = restricted.engine.url.set(username=USER, password="change-me")
    with create_engine(url, poolclass=NullPool).connect() as connection, pytest.raises(DBAPIError, match="denied"):
        connection.execute(text(f"SELECT {column} FROM sys_history"))


def test_a_history_that_may_not_be_read_is_an_error_that_names_the_grant(restricted):
    columns = "uid, tstamp, actiontype, recuid, tablename, usertype, workspace"
    run_as_admin(restricted, f"REVOKE SELECT ({columns}) ON sys_history FROM {USER}")
    with pytest.raises(NrLlmPrivilegeError, match=r"GRANT SELECT.* ON sys_history"):
        derive(restricted)
    assert [] == outcome_rows(restricted.engine)


@pytest.mark.parametrize("columns", ["uid, tstamp, deleted, t3ver_wsid", "deleted"])
def test_a_written_table_that_may_not_be_read_stops_none_of_the_others(restricted, columns):
    """And what may not be read is never taken for gone, nor for a column that the table does not have."""
    wrote_content = {
        uuid for uuid, writes in written_tables(restricted.engine).items() if "tt_content" in writes
    }  # fmt: skip
    others = sorted((uuid, value) for uuid, value in TYPO3["expect"].items() if uuid not in wrote_content)
    run_as_admin(restricted, f"REVOKE SELECT ({columns}) ON tt_content FROM {USER}")
    with pytest.raises(NrLlmPrivilegeError) as raised:
        derive(restricted)
    assert others == outcome_rows(restricted.engine)
    assert "GRANT SELECT (uid, tstamp, deleted, t3ver_wsid) ON tt_content" in str(raised.value)
    assert f"{len(TYPO3['expect']) - len(others)} runs have no outcome" in str(raised.value)

    run_as_admin(restricted, f"GRANT SELECT ({columns}) ON tt_content TO {USER}")
    derive(restricted)
    assert sorted(TYPO3["expect"].items()) == outcome_rows(restricted.engine)


def test_outcomes_that_may_not_be_inserted_are_an_error_that_names_the_grant(restricted):
    run_as_admin(
        restricted,
        f"REVOKE INSERT (pid, correlation_id, outcome, crdate, tstamp) ON tx_nrllm_call_outcome FROM {USER}",
    )
    with pytest.raises(NrLlmPrivilegeError, match=r"GRANT .* ON tx_nrllm_call_outcome"):
        derive(restricted)


def test_users_that_are_machines_need_the_grants_that_are_documented_for_them(restricted):
    with pytest.raises(NrLlmPrivilegeError, match=r"GRANT SELECT .*ON (sys_history|be_users)"):
        derive(restricted, machine_users=["_cli_"])
    block = re.search(r"## Users that are machines\n.*?```sql\n(.*?)```", PAGE, re.DOTALL)[1]
    grants = block if restricted.name == "mariadb" else block.replace("typo3.", "")
    run_as_admin(restricted, *filter(None, map(str.strip, grants.split(";"))))
    assert NrLlmHook(restricted.conn_id, machine_users=["_cli_"]).test_connection()[0]
    derive(restricted, machine_users=["_cli_"])
    assert sorted(TYPO3["expect"].items()) == outcome_rows(restricted.engine)


def test_the_documented_user_passes_the_test_of_the_connection(restricted):
    assert NrLlmHook(restricted.conn_id).test_connection()[0]


def test_the_documented_user_rates_only_with_the_grant_for_it(restricted):
    with pytest.raises(NrLlmPrivilegeError, match=r"Missing: GRANT (SELECT, )?DELETE"):
        NrLlmHook(restricted.conn_id).record_explicit("a", "helpful")
    grant = re.search(r"## Ratings\n.*?```sql\n(.*?);\n```", PAGE, re.DOTALL)[1]
    run_as_admin(restricted, grant if restricted.name == "mariadb" else grant.replace("typo3.", ""))
    NrLlmHook(restricted.conn_id).record_explicit("a", "helpful")
    assert [("a", "helpful")] == outcome_rows(restricted.engine)
