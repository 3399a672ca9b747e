"""Settings of servers, schemas and connections that sites have: none of them changes an answer."""

from __future__ import annotations

import json

import pytest
from sqlalchemy import text

from airflow_provider_nrllm.exceptions import NrLlmSchemaError
from airflow_provider_nrllm.hooks.nrllm import NrLlmHook
from airflow_provider_nrllm.operators.outcomes import NrLlmDeriveOutcomesOperator
from tests.typo3.loader import load_case
from tests.typo3.servers import MariaDB
from tests.typo3.tables import INDEXES, create_tables, outcome_rows
from tests.typo3.worlds import accepted, many_runs

CASE = many_runs(5)


def derive(conn_id):
    return NrLlmDeriveOutcomesOperator(task_id="derive", nrllm_conn_id=conn_id, page_size=2).execute({})


def execute(engine, *statements):
    with engine.begin() as connection:
        for statement in statements:
            connection.execute(text(statement))


class StatementLog(MariaDB):
    """A server that replicates statements, and takes no write from a transaction with READ COMMITTED."""

    def _command(self):
        command = [argument for argument in super()._command() if argument != "--skip-log-bin"]
        return [*command, "--log-bin=log", "--server-id=1", "--binlog-format=STATEMENT"]


class OtherNames(MariaDB):
    """A server that keeps table names in lower case, and takes a double quote for that of a name."""

    def _command(self):
        return [*super()._command(), "--lower-case-table-names=1", "--sql-mode=ANSI,TRADITIONAL,NO_BACKSLASH_ESCAPES"]


@pytest.mark.parametrize("kind", [StatementLog, OtherNames])
def test_the_settings_of_a_server_change_no_answer(monkeypatch, kind):
    server = kind()
    try:
        create_tables(server.engine())
        load_case(server.engine(), CASE)
        monkeypatch.setenv("AIRFLOW_CONN_OTHER", json.dumps(server.connection))
        derive("other")
        NrLlmHook("other").record_explicit("run-00001", "helpful")
        assert outcome_rows(server.engine()) == sorted([*accepted(CASE), ("run-00001", "helpful")])
    finally:
        server.remove()


@pytest.mark.parametrize(
    "statement",
    [
        "ALTER TABLE tx_nrllm_call_outcome CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci",
        "ALTER TABLE tx_nrllm_agentrun CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
        "ALTER TABLE tx_nrllm_call_outcome CONVERT TO CHARACTER SET utf8mb3 COLLATE utf8mb3_general_ci",
        "ALTER TABLE tx_nrllm_agentrun CONVERT TO CHARACTER SET latin1",
        "ALTER TABLE sys_history CONVERT TO CHARACTER SET latin1",
    ],
)
def test_tables_of_different_collations_are_compared_all_the_same(make_site_to_change, statement):
    site = make_site_to_change("mariadb")
    execute(site.engine, statement)
    load_case(site.engine, {**CASE, "outcomes": [{"correlation_id": "run-00001", "outcome": "edited"}]})
    derive(site.conn_id)
    assert outcome_rows(site.engine) == [("run-00001", "edited"), *accepted(CASE)[1:]]


def test_a_site_without_the_indexes_gets_the_same_answers(site_to_change):
    for table, indexes in INDEXES.items():
        for name in indexes:
            on_mariadb = site_to_change.name == "mariadb"
            execute(
                site_to_change.engine,
                f"ALTER TABLE {table} DROP INDEX {name}" if on_mariadb else f"DROP INDEX {table}_{name}",
            )
    load_case(site_to_change.engine, CASE)
    derive(site_to_change.conn_id)
    assert outcome_rows(site_to_change.engine) == accepted(CASE)


def test_a_default_isolation_level_changes_no_answer(make_site):
    site = make_site("postgres")
    load_case(site.engine, CASE)
    derive(site.define_connection(extra={"options": "-c default_transaction_isolation=serializable"}))
    assert outcome_rows(site.engine) == accepted(CASE)


def test_tables_are_those_of_the_search_path(make_site_to_change):
    site = make_site_to_change("postgres")
    load_case(site.engine, CASE)
    execute(
        site.engine,
        "DROP SCHEMA IF EXISTS typo3 CASCADE",
        "ALTER SCHEMA public RENAME TO typo3",
        "CREATE SCHEMA public",
        "CREATE TABLE public.tt_content (uid TEXT)",
    )
    derive(site.define_connection(extra={"options": "-c search_path=typo3,public"}))
    execute(site.engine, "DROP SCHEMA public CASCADE", "ALTER SCHEMA typo3 RENAME TO public")
    assert outcome_rows(site.engine) == accepted(CASE)


def test_a_connection_that_names_no_database_is_told_so(make_site):
    site = make_site("mariadb")
    with pytest.raises(NrLlmSchemaError, match="check that the connection names the TYPO3 database"):
        derive(site.define_connection(schema=""))
