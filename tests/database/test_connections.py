"""Connections that are defined wrongly, users that lack a privilege, tables without locks: what is said of them."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator

import pytest
from sqlalchemy import insert, text
from sqlalchemy.exc import DBAPIError

from airflow_provider_nrllm.exceptions import NrLlmConnectionError, NrLlmPrivilegeError, NrLlmSchemaError
from airflow_provider_nrllm.hooks.audit import NrLlmEditedAuditHook
from airflow_provider_nrllm.hooks.nrllm import NrLlmHook
from airflow_provider_nrllm.hooks.readout import NrLlmReadoutHook
from tests.typo3 import tables
from tests.typo3.loader import load_case
from tests.typo3.sites import Site
from tests.typo3.tables import outcome_rows
from tests.typo3.worlds import DAY, START, many_runs

USER = "nrllm_test"
CASE = many_runs(3)


def run_as_admin(site: Site, *statements: str) -> None:
    with site.engine.begin() as connection:
        for statement in statements:
            connection.execute(text(statement))


@pytest.mark.parametrize(
    ("name", "extra"),
    [
        ("mariadb", {"client": "no such client"}),
        ("mariadb", {"ssl": "{no json"}),
        ("mariadb", {"client": "mysql-connector-python", "ssl_no_such": "option"}),
        ("postgres", {"no_such": "option"}),
        ("postgres", {"cursor": "no such cursor"}),
    ],
    ids=str,
)
def test_an_extra_that_the_driver_does_not_know_is_not_retried(
    make_site: Callable[[str], Site], name: str, extra: dict[str, str]
) -> None:
    conn_id = make_site(name).define_connection(extra=extra)
    with pytest.raises(NrLlmConnectionError, match=rf"{conn_id}.* Check its extra"):
        next(NrLlmHook(conn_id).pages(None, START, window=DAY, page_size=1))


def test_the_advice_on_a_refused_connection_is_logged(server_site: Site, caplog: pytest.LogCaptureFixture) -> None:
    conn_id = server_site.define_connection(password="not the password")
    caplog.set_level(logging.ERROR)
    with pytest.raises(Exception, match=r"Access denied|authentication failed"):
        next(NrLlmHook(conn_id).pages(None, START, window=DAY, page_size=1))
    assert f"Connection {conn_id!r} cannot be opened. Check its host" in caplog.text


@pytest.fixture
def restricted(server_site: Site) -> Iterator[Site]:
    """A site whose connection is that of a user who may read what a derivation reads, and do nothing else."""
    on_mariadb = server_site.name == "mariadb"
    run_as_admin(
        server_site,
        f"CREATE USER {USER} IDENTIFIED BY 'secret'" if on_mariadb else f"CREATE ROLE {USER} LOGIN PASSWORD 'secret'",
        *([f"GRANT REFERENCES ON typo3.* TO {USER}"] if on_mariadb else []),
        *(
            f"GRANT SELECT ON {table} TO {USER}"
            for table in ("sys_history", "tx_nrllm_agentrun", "tx_nrllm_agentrun_event", "tx_nrllm_call_outcome")
        ),
        f"GRANT SELECT ON tt_content TO {USER}",
    )
    load_case(server_site.engine, CASE)
    server_site.define_connection(login=USER, password="secret")
    yield server_site
    run_as_admin(server_site, *([] if on_mariadb else [f"DROP OWNED BY {USER}"]), f"DROP USER {USER}")


INSERT = "GRANT INSERT (pid, correlation_id, outcome, crdate, tstamp) ON tx_nrllm_call_outcome"


def test_the_test_of_a_connection_names_the_grants_that_its_user_lacks(restricted: Site) -> None:
    ok, message = NrLlmHook(restricted.conn_id).test_connection()
    lacking = {
        "mariadb": INSERT,
        "mysql": f"{INSERT}; GRANT LOCK TABLES ON typo3.*",
        "postgres": f"{INSERT}; GRANT USAGE ON SEQUENCE tx_nrllm_call_outcome_uid_seq; "
        "GRANT UPDATE (uid) ON tx_nrllm_agentrun",
    }[restricted.product]
    assert (False, True) == (ok, f"Missing: {lacking}. All the statements are in docs/how-to/database" in message)
    assert [] == outcome_rows(restricted.engine)


def test_the_grants_that_are_named_are_sql_and_enough(restricted: Site) -> None:
    _, message = NrLlmHook(restricted.conn_id).test_connection()
    found = re.search(r"Missing: (.*?)\. All", message)
    assert found
    run_as_admin(restricted, *(f"{grant} TO {USER}" for grant in found[1].split("; ")))
    assert NrLlmHook(restricted.conn_id).test_connection()[0]


def test_a_refusal_names_what_is_missing_and_the_page_of_its_hook(restricted: Site) -> None:
    hook = NrLlmHook(restricted.conn_id)
    (page,) = hook.pages(None, START + 30 * DAY, window=7 * DAY, page_size=10)
    with pytest.raises(NrLlmPrivilegeError, match=re.escape(INSERT)) as caught:
        hook.record_observed(page.runs, page.outcomes(START + 30 * DAY))
    assert caught.value.__suppress_context__
    run_as_admin(restricted, f"REVOKE SELECT ON tx_nrllm_call_outcome FROM {USER}")
    columns = r"GRANT SELECT \(.*correlation_id.*\) ON tx_nrllm_call_outcome.*docs/how-to/read-outcomes-by-model.md"
    run_as_admin(restricted, f"GRANT SELECT ON tx_nrllm_telemetry TO {USER}")
    with pytest.raises(NrLlmPrivilegeError, match=columns):
        NrLlmReadoutHook(restricted.conn_id).readout(None, START, grouping=())


def test_a_rating_that_may_not_be_replaced_is_an_error_whose_grant_is_sql(restricted: Site) -> None:
    with pytest.raises(NrLlmPrivilegeError, match=r"Missing: ") as caught:
        NrLlmHook(restricted.conn_id).record_explicit("run-00001", "helpful")
    assert "GRANT DELETE (" not in str(caught.value)


def test_a_record_that_may_not_be_read_asks_for_four_columns_and_not_for_the_table(restricted: Site) -> None:
    database = NrLlmHook(restricted.conn_id).database
    columns = r"GRANT SELECT \(uid, tstamp, deleted, t3ver_wsid\) ON pages"
    with pytest.raises(NrLlmPrivilegeError, match=columns), database.snapshot() as connection:
        connection.execute(text("SELECT uid FROM pages"))


def test_a_file_that_may_only_be_read_fails_the_test_of_the_connection(make_site: Callable[[str], Site]) -> None:
    site = make_site("sqlite")
    conn_id = site.define_connection(extra={"mode": "ro"})
    ok, message = NrLlmHook(conn_id).test_connection()
    assert (False, True) == (ok, "readonly" in message)
    assert NrLlmReadoutHook(conn_id).test_connection()[0]


def test_a_missing_column_is_named_once(site_to_change: Site) -> None:
    run_as_admin(site_to_change, "ALTER TABLE sys_history RENAME COLUMN actiontype TO action")
    _, message = NrLlmEditedAuditHook(site_to_change.conn_id).test_connection()
    assert 1 == message.count("sys_history.actiontype")


def test_tables_in_a_schema_that_is_not_searched_are_named_with_the_extra_that_helps(
    make_site_to_change: Callable[[str], Site],
) -> None:
    site = make_site_to_change("postgres")
    run_as_admin(
        site,
        "DROP SCHEMA IF EXISTS elsewhere CASCADE",
        "ALTER SCHEMA public RENAME TO elsewhere",
        "CREATE SCHEMA public",
    )
    ok, message = NrLlmHook(site.conn_id).test_connection()
    with_extra = NrLlmHook(site.define_connection("found", extra={"options": "-c search_path=elsewhere"}))
    found = with_extra.test_connection()[0]
    run_as_admin(site, "DROP SCHEMA public CASCADE", "ALTER SCHEMA elsewhere RENAME TO public")
    assert (False, True, True) == (ok, '{"options": "-c search_path=elsewhere"}' in message, found)


@pytest.mark.parametrize("table", ["tx_nrllm_agentrun", "tx_nrllm_call_outcome"])
def test_a_table_of_an_engine_without_row_locks_is_named(
    make_site_to_change: Callable[[str], Site], table: str
) -> None:
    site = make_site_to_change("mariadb")
    load_case(site.engine, CASE)
    run_as_admin(site, f"ALTER TABLE {table} ENGINE=MyISAM")
    hook = NrLlmHook(site.conn_id)
    with pytest.raises(NrLlmSchemaError, match=rf"{table} \(MyISAM\).* Expected InnoDB"):
        next(hook.pages(None, START + 30 * DAY, window=7 * DAY, page_size=10))
    ok, message = hook.test_connection()
    assert (False, True) == (ok, f"{table} (MyISAM)" in message)


def test_work_that_lost_against_another_transaction_is_done_again(make_site: Callable[[str], Site]) -> None:
    site = make_site("postgres")
    hook = NrLlmHook(site.conn_id)
    done: list[int] = []

    def work(connection):
        count = connection.execute(text("SELECT count(*) FROM tx_nrllm_call_outcome")).scalar_one()
        if not done:
            # Reads and writes what this transaction reads and writes, and commits first.
            with hook.database.transaction("SERIALIZABLE") as other:
                other.execute(text("SELECT count(*) FROM tx_nrllm_call_outcome")).scalar_one()
                other.execute(insert(tables.outcome), [{"correlation_id": "other", "outcome": "helpful"}])
        done.append(count)
        connection.execute(insert(tables.outcome), [{"correlation_id": "this", "outcome": "helpful"}])
        return count

    assert 1 == hook.database.write(work, "SERIALIZABLE")
    assert ([0, 1], [("other", "helpful"), ("this", "helpful")]) == (done, outcome_rows(site.engine))


def test_a_row_that_changed_since_it_was_read_is_read_again(make_site: Callable[[str], Site]) -> None:
    site = make_site("mariadb")
    if site.product == "mysql":
        pytest.skip("MySQL has no innodb_snapshot_isolation")
    load_case(site.engine, CASE)
    hook = NrLlmHook(site.conn_id)
    seen: list[str] = []

    def work(connection):
        seen.append(connection.execute(text("SELECT min(status) FROM tx_nrllm_agentrun")).scalar_one())
        if len(seen) == 1:
            run_as_admin(site, "UPDATE tx_nrllm_agentrun SET status = 'failed'")
        connection.execute(text("SELECT uid FROM tx_nrllm_agentrun FOR UPDATE")).fetchall()

    with site.engine.connect() as administrator:
        # The default from MariaDB 11.6 on.
        before = administrator.execute(text("SELECT @@GLOBAL.innodb_snapshot_isolation")).scalar_one()
        administrator.execute(text("SET GLOBAL innodb_snapshot_isolation = ON"))
        try:
            hook.database.write(work, "REPEATABLE READ")
        finally:
            administrator.execute(text("SET GLOBAL innodb_snapshot_isolation = :value"), {"value": before})
    assert ["completed", "failed"] == seen


def test_work_that_loses_again_and_again_is_left_to_airflow(make_site: Callable[[str], Site]) -> None:
    site = make_site("postgres")
    done: list[int] = []

    def work(connection):
        done.append(1)
        connection.execute(text("DO $$ BEGIN RAISE EXCEPTION SQLSTATE '40001'; END $$"))

    with pytest.raises(DBAPIError):
        NrLlmHook(site.conn_id).database.write(work)
    assert 6 == len(done)
