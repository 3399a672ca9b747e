"""What docs/how-to/connection.md says is run here, where no test of sessions, connections or schemas says the same."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest
from sqlalchemy import text

from airflow_provider_nrllm.hooks.nrllm import NrLlmHook
from airflow_provider_nrllm.operators.checks import NrLlmOutcomeCheckOperator
from airflow_provider_nrllm.operators.outcomes import NrLlmDeriveOutcomesOperator
from tests.typo3.loader import load_case
from tests.typo3.pgbouncer import PgBouncer
from tests.typo3.servers import USER, Postgres
from tests.typo3.sites import Site
from tests.typo3.tables import outcome_rows
from tests.typo3.worlds import accepted, many_runs

PAGE = (Path(__file__).parents[2] / "docs/how-to/connection.md").read_text()
CASE = many_runs(3)


def block(section: str, language: str) -> str:
    """Return the code of a section of the page."""
    found = re.search(rf"## {section}\n.*?```{language}\n(.*?)```", PAGE, re.DOTALL)
    assert found
    return found[1]


def execute(site: Site, *statements: str) -> None:
    with site.engine.begin() as connection:
        for statement in statements:
            connection.execute(text(statement))


def derive(site: Site) -> None:
    NrLlmDeriveOutcomesOperator(task_id="derive", nrllm_conn_id=site.conn_id).execute({})


@pytest.mark.parametrize("lost", [None, "tx_nrllm_call_outcome"])
def test_the_command_line_tests_the_connection(site_to_change: Site, lost: str | None) -> None:
    if lost:
        execute(site_to_change, f"DROP TABLE {lost}")
    environment = {**os.environ, "AIRFLOW_CONN_NRLLM_DEFAULT": json.dumps(site_to_change.connection)}
    command = ["sh", "-c", block("Test it", "sh")]
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(command, env={**environment, "PATH": path}, capture_output=True, text=True, check=True)
    assert f"({lost is None}, " in done.stdout
    assert (lost or "may be used") in done.stdout


def test_the_extra_names_the_schema(make_site_to_change: Callable[[str], Site]) -> None:
    site = make_site_to_change("postgres")
    load_case(site.engine, CASE)
    execute(site, "DROP SCHEMA IF EXISTS typo3 CASCADE", "ALTER SCHEMA public RENAME TO typo3", "CREATE SCHEMA public")
    site.define_connection(extra=json.loads(block("TYPO3 in another schema of PostgreSQL", "json")))
    derive(site)
    execute(site, "DROP SCHEMA public CASCADE", "ALTER SCHEMA typo3 RENAME TO public")
    assert accepted(CASE) == outcome_rows(site.engine)


def test_behind_a_pooler_the_user_has_the_search_path(make_site_to_change: Callable[[str], Site]) -> None:
    site = make_site_to_change("postgres")
    load_case(site.engine, CASE)
    execute(site, "DROP SCHEMA IF EXISTS typo3 CASCADE", "ALTER SCHEMA public RENAME TO typo3", "CREATE SCHEMA public")
    execute(site, block("Poolers", "sql").replace("nrllm_airflow", USER))
    assert isinstance(site.server, Postgres)
    pgbouncer = PgBouncer(site.server)
    try:
        site.define_connection(port=pgbouncer.port)
        derive(site)
    finally:
        pgbouncer.remove()
        execute(
            site,
            f"ALTER ROLE {USER} RESET search_path",
            "DROP SCHEMA public CASCADE",
            "ALTER SCHEMA typo3 RENAME TO public",
        )
    assert accepted(CASE) == outcome_rows(site.engine)


def test_tables_get_row_locks(make_site_to_change: Callable[[str], Site]) -> None:
    site = make_site_to_change("mariadb")
    load_case(site.engine, CASE)
    execute(
        site,
        "ALTER TABLE tx_nrllm_agentrun ENGINE=MyISAM",
        f"ALTER TABLE tx_nrllm_call_outcome ENGINE={'MyISAM' if site.product == 'mysql' else 'Aria'}",
        *filter(str.strip, block("Engines of tables, and clusters", "sql").split(";")),
    )
    derive(site)
    assert accepted(CASE) == outcome_rows(site.engine)


@pytest.mark.parametrize(
    "operator",
    [NrLlmDeriveOutcomesOperator, partial(NrLlmOutcomeCheckOperator, max_unknown=0.5)],
    ids=["derive", "check"],
)
def test_a_statement_may_take_as_long_as_the_task(
    site: Site, operator: Callable[..., NrLlmDeriveOutcomesOperator]
) -> None:
    task = operator(task_id="task", nrllm_conn_id=site.conn_id, execution_timeout=timedelta(seconds=90))
    limits = {
        "mariadb": ("SELECT @@max_statement_time", 90),
        "mysql": ("SELECT @@max_execution_time", 90_000),
        "postgres": ("SELECT setting FROM pg_settings WHERE name = 'statement_timeout'", "90000"),
    }
    assert timedelta(seconds=90) == task.hook.statement_timeout
    if site.product in limits:
        query, expected = limits[site.product]
        with task.hook.database.snapshot() as connection:
            assert expected == connection.execute(text(query)).scalar()


def test_without_a_limit_a_statement_takes_as_long_as_the_server_lets_it(server_site: Site) -> None:
    if server_site.name == "postgres":
        server_site.define_connection(extra={"options": "-c statement_timeout=70000"})
    query, expected = {
        "mariadb": ("SELECT @@max_statement_time = @@GLOBAL.max_statement_time", 1),
        "mysql": ("SELECT @@max_execution_time = @@GLOBAL.max_execution_time", 1),
        "postgres": ("SELECT setting FROM pg_settings WHERE name = 'statement_timeout'", "70000"),
    }[server_site.product]
    with NrLlmHook(server_site.conn_id).database.snapshot() as connection:
        assert expected == connection.execute(text(query)).scalar()
