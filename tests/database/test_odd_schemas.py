"""Views, columns of other types, values that are no numbers, packets that are small: what sites also have."""

from __future__ import annotations

import logging
from collections.abc import Callable

import pytest
from sqlalchemy import text

from airflow_provider_nrllm.operators.outcomes import NrLlmDeriveOutcomesOperator
from tests.typo3.loader import load_case
from tests.typo3.sites import Site
from tests.typo3.tables import outcome_rows
from tests.typo3.worlds import DAY, START, accepted, many_runs, run, world


def derive(site: Site) -> None:
    NrLlmDeriveOutcomesOperator(task_id="derive", nrllm_conn_id=site.conn_id).execute({})


def execute(site: Site, *statements: str) -> None:
    with site.engine.begin() as connection:
        for statement in statements:
            connection.execute(text(statement))


def test_a_view_is_a_table_of_records(site_to_change: Site) -> None:
    case = many_runs(2)
    load_case(site_to_change.engine, case)
    execute(
        site_to_change,
        "ALTER TABLE tt_content RENAME TO stored_rows",
        "CREATE VIEW tt_content AS SELECT uid, tstamp, deleted FROM stored_rows",
    )
    derive(site_to_change)
    assert accepted(case) == outcome_rows(site_to_change.engine)


def test_a_view_of_a_table_that_is_gone_is_gone_and_stops_nothing(make_site_to_change: Callable[[str], Site]) -> None:
    site = make_site_to_change("sqlite")
    lost = run(1, writes=[{"target": "tx_lost:1", "at": START}])
    load_case(site.engine, world([lost, run(2)], records={"tt_content:2": {"state": "live"}}))
    execute(site, "CREATE TABLE gone (uid INTEGER)", "CREATE VIEW tx_lost AS SELECT uid FROM gone", "DROP TABLE gone")
    derive(site)
    assert [("run-00001", "unknown"), ("run-00002", "accepted_unchanged")] == outcome_rows(site.engine)


def test_columns_that_do_not_count_are_named_once(site_to_change: Site, caplog: pytest.LogCaptureFixture) -> None:
    case = world([run(1, writes=[{"target": "tx_odd:1", "at": START}])], records={})
    load_case(site_to_change.engine, case)
    execute(
        site_to_change, "CREATE TABLE tx_odd (uid INTEGER, deleted VARCHAR(3))", "INSERT INTO tx_odd VALUES (1, 'no')"
    )
    caplog.set_level(logging.WARNING)
    derive(site_to_change)
    said = [record.getMessage() for record in caplog.records if "tx_odd" in record.getMessage()]
    assert [True] == ["as TYPO3 makes them: deleted." in message for message in said]
    assert accepted(case) == outcome_rows(site_to_change.engine)


@pytest.mark.parametrize("value", ["'a text'", "1.5", "x'00'", "''"])
@pytest.mark.parametrize(
    ("table", "column"),
    [
        ("sys_history", "tstamp"),
        ("sys_history", "workspace"),
        ("tt_content", "tstamp"),
        ("tt_content", "deleted"),
        ("tx_nrllm_agentrun", "crdate"),
        ("tx_nrllm_agentrun", "finished_at"),
    ],
)
def test_what_is_no_number_in_an_integer_column_of_sqlite_stops_nothing(
    make_site: Callable[[str], Site], table: str, column: str, value: str
) -> None:
    site = make_site("sqlite")
    load_case(site.engine, world([run(1), run(2, at=START + 60)]))
    of_first = {"sys_history": "recuid = 1", "tt_content": "uid = 1", "tx_nrllm_agentrun": "uuid = 'run-00001'"}[table]
    execute(site, f"UPDATE {table} SET {column} = {value} WHERE {of_first}")
    derive(site)
    assert ("run-00002", "accepted_unchanged") in outcome_rows(site.engine)


def test_a_page_of_many_writes_fits_into_a_small_packet(make_site: Callable[[str], Site]) -> None:
    site, first = make_site("mariadb"), 1_000_000_000
    writes = [{"target": f"tt_content:{first + number}", "at": START} for number in range(45_000)]
    runs = [run(number, writes=writes[number::100]) for number in range(100)]
    load_case(site.engine, {**world(runs), "history": [], "records": {}})
    with site.engine.connect() as administrator:
        before = administrator.execute(text("SELECT @@GLOBAL.max_allowed_packet")).scalar()
        # Less than the uids of the page take.
        administrator.execute(text(f"SET GLOBAL max_allowed_packet = {400 * 1024}"))
        try:
            derive(site)
        finally:
            administrator.execute(text(f"SET GLOBAL max_allowed_packet = {before}"))
    assert {"unknown"} == {outcome for _, outcome in outcome_rows(site.engine)}
    assert 100 == len(outcome_rows(site.engine))


def test_a_table_like_sys_redirect_dates_its_end_in_updatedon(site_to_change: Site) -> None:
    runs = [run(number, writes=[{"target": f"sys_redirect:{number}", "at": START}]) for number in (1, 2)]
    load_case(site_to_change.engine, world(runs, records={}))
    execute(
        site_to_change,
        "CREATE TABLE sys_redirect (uid INTEGER, updatedon INTEGER, deleted SMALLINT, disabled SMALLINT)",
        f"INSERT INTO sys_redirect VALUES (1, {START + DAY}, 1, 0), (2, {START + 8 * DAY}, 1, 0)",
    )
    derive(site_to_change)
    # Both are asked late, and only a date tells which was gone at its close.
    assert [("run-00001", "discarded"), ("run-00002", "accepted_unchanged")] == outcome_rows(site_to_change.engine)


def test_where_a_table_has_both_its_end_is_dated_in_tstamp(site_to_change: Site) -> None:
    case = world([run(1, writes=[{"target": "tx_both:1", "at": START}])], records={})
    load_case(site_to_change.engine, case)
    execute(
        site_to_change,
        "CREATE TABLE tx_both (uid INTEGER, tstamp INTEGER, updatedon INTEGER, deleted SMALLINT)",
        f"INSERT INTO tx_both VALUES (1, {START + 8 * DAY}, {START + DAY}, 1)",
    )
    derive(site_to_change)
    assert accepted(case) == outcome_rows(site_to_change.engine)
