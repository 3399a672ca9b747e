"""The settings of a session are the provider's: what a server or a connection says changes no answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import create_engine, func, text, update
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool

from airflow_provider_nrllm.database.site import SiteDatabase
from airflow_provider_nrllm.hooks.nrllm import NrLlmHook
from airflow_provider_nrllm.operators.outcomes import NrLlmDeriveOutcomesOperator
from tests.typo3 import tables
from tests.typo3.loader import load_case
from tests.typo3.pgbouncer import PgBouncer
from tests.typo3.servers import Postgres
from tests.typo3.sites import Site
from tests.typo3.tables import create_tables, outcome_rows
from tests.typo3.worlds import accepted, many_runs

CASE = many_runs(7)
RATED = "→ 'quoted' \\"

#: For each setting a value that would change an answer or fail a statement.
MARIADB_SETTINGS: dict[str, Any] = {
    "sql_mode": "EMPTY_STRING_IS_NULL,NO_BACKSLASH_ESCAPES,ANSI_QUOTES,PIPES_AS_CONCAT,HIGH_NOT_PRECEDENCE",
    "sql_select_limit": 1,
    "sql_auto_is_null": 1,
    "sql_safe_updates": 1,
    "max_join_size": 1,
    "completion_type": "RELEASE",
    "character_set_client": "latin1",
    "character_set_results": "latin1",
    "collation_connection": "latin1_swedish_ci",
    "time_zone": "+11:00",
    "lc_messages": "de_DE",
}
POSTGRES_SETTINGS = {
    "client_encoding": "LATIN1",
    "timezone": "Pacific/Auckland",
    "standard_conforming_strings": "off",
    "transform_null_equals": "on",
    "default_transaction_isolation": "serializable",
    "datestyle": "German",
    "bytea_output": "escape",
}


def derive(conn_id: str) -> None:
    NrLlmDeriveOutcomesOperator(task_id="derive", nrllm_conn_id=conn_id, page_size=2).execute({})


def lay(site: Site) -> None:
    """Lay the case into the site, with a sign in each payload that LATIN1 does not have."""
    load_case(site.engine, CASE)
    with site.engine.begin() as connection:
        changed = func.replace(tables.event.c.payload, "toolName", "→")
        connection.execute(update(tables.event).values(payload=changed))


def use(conn_id: str) -> None:
    """Derive over the connection, and rate an id that has to be quoted."""
    derive(conn_id)
    hook = NrLlmHook(conn_id)
    for rating in ("not_helpful", "helpful"):
        hook.record_explicit(RATED, rating)
    assert "helpful" == hook.outcomes(RATED).explicit


def assert_answered(site: Site) -> None:
    assert sorted([*accepted(CASE), (RATED, "helpful")]) == outcome_rows(site.engine)


@pytest.mark.parametrize("setting", MARIADB_SETTINGS)
def test_a_setting_of_a_mariadb_server_changes_no_answer(make_site: Callable[[str], Site], setting: str) -> None:
    site = make_site("mariadb")
    lay(site)
    value = MARIADB_SETTINGS[setting]
    if setting == "sql_mode" and site.product == "mysql":
        value = value.replace("EMPTY_STRING_IS_NULL,", "")
    with site.engine.connect() as administrator:
        before = administrator.execute(text(f"SELECT @@GLOBAL.{setting}")).scalar()
        administrator.execute(text(f"SET GLOBAL {setting} = :value"), {"value": value})
        try:
            use(site.conn_id)
        finally:
            administrator.execute(text(f"SET GLOBAL {setting} = :value"), {"value": before})
    assert_answered(site)


@pytest.mark.parametrize("extra", [{"charset": "latin1"}, {"client": "mysql-connector-python"}], ids=str)
def test_the_character_set_of_a_mariadb_connection_changes_no_answer(
    make_site: Callable[[str], Site], extra: dict[str, str]
) -> None:
    site = make_site("mariadb")
    lay(site)
    use(site.define_connection(extra=extra))
    assert_answered(site)


@pytest.mark.parametrize("setting", POSTGRES_SETTINGS)
def test_a_setting_of_a_postgres_connection_changes_no_answer(make_site: Callable[[str], Site], setting: str) -> None:
    site = make_site("postgres")
    lay(site)
    use(site.define_connection(extra={"options": f"-c {setting}={POSTGRES_SETTINGS[setting]}"}))
    assert_answered(site)


@pytest.mark.parametrize("encoding", ["LATIN1", "SQL_ASCII"])
def test_the_encoding_of_a_postgres_connection_changes_no_answer(
    make_site: Callable[[str], Site], encoding: str
) -> None:
    site = make_site("postgres")
    lay(site)
    use(site.define_connection(extra={"client_encoding": encoding}))
    assert_answered(site)


def test_in_a_database_of_any_bytes_a_payload_that_is_no_text_stops_nothing(make_site: Callable[[str], Site]) -> None:
    site, name = make_site("postgres"), "any_bytes"
    engine = create_engine(site.engine.url.set(database=name), poolclass=NullPool)
    with site.engine.execution_options(isolation_level="AUTOCOMMIT").connect() as administrator:
        administrator.execute(text(f"CREATE DATABASE {name} ENCODING 'SQL_ASCII' TEMPLATE template0"))
        try:
            create_tables(engine)
            load_case(engine, CASE)
            with engine.begin() as connection:
                connection.execute(
                    text("UPDATE tx_nrllm_agentrun_event SET payload = replace(payload, 'toolName', E'tool\\xff')")
                )
            derive(site.define_connection("any_bytes", schema=name))
            assert accepted(CASE) == outcome_rows(engine)
        finally:
            administrator.execute(text(f"DROP DATABASE {name}"))


@pytest.fixture
def pooler(make_site: Callable[[str], Site]) -> Iterator[Site]:
    """A site on PostgreSQL whose connection goes through a pooler."""
    site = make_site("postgres")
    assert isinstance(site.server, Postgres)
    pgbouncer = PgBouncer(site.server)
    site.define_connection(port=pgbouncer.port)
    yield site
    pgbouncer.remove()


def test_behind_a_pooler_of_transactions_the_answers_are_the_same(pooler: Site) -> None:
    lay(pooler)
    use(pooler.conn_id)
    assert_answered(pooler)


def long_statement(site: Site) -> str:
    """Return a statement that ends in minutes, or not at all."""
    return {
        "sqlite": "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n",
        # Not SLEEP, which a limit makes return early.
        "mariadb": "SELECT count(*) FROM information_schema.columns a, information_schema.columns b, "
        "information_schema.columns c",
        "postgres": "SELECT pg_sleep(300)",
    }[site.name]


def test_a_statement_ends_when_its_time_is_over(site: Site) -> None:
    database = SiteDatabase(site.conn_id, seconds=0.2)
    over = pytest.raises(DBAPIError, match=r"max_statement_time|statement timeout|interrupted")
    with over, database.snapshot() as connection:
        connection.execute(text(long_statement(site)))
    with database.snapshot() as connection:
        assert 1 == connection.execute(text("SELECT 1")).scalar()


def test_a_hook_gives_its_limit_to_each_statement(site: Site) -> None:
    hook = NrLlmHook(site.conn_id, statement_timeout=timedelta(seconds=0.2))
    with pytest.raises(DBAPIError), hook.database.snapshot() as connection:
        connection.execute(text(long_statement(site)))
