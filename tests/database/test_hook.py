"""NrLlmHook on every engine: what it reads and records, and what bad input gets."""

from __future__ import annotations

import pytest
from sqlalchemy import event, text

from airflow_provider_nrllm.exceptions import NrLlmConnectionError, NrLlmSchemaError
from airflow_provider_nrllm.hooks.nrllm import NrLlmHook, Outcomes
from airflow_provider_nrllm.operators.outcomes import NrLlmDeriveOutcomesOperator
from tests.typo3.loader import load_case
from tests.typo3.tables import outcome_rows
from tests.typo3.worlds import DAY, START, accepted, many_runs, run, world


def derive(conn_id, **arguments):
    return NrLlmDeriveOutcomesOperator(task_id="derive", nrllm_conn_id=conn_id, **arguments).execute({})


def execute(site, statement):
    with site.engine.begin() as connection:
        connection.execute(text(statement))


def test_a_new_rating_replaces_the_old_one_and_leaves_the_observed_outcome_alone(site):
    load_case(site.engine, world([], outcomes=[{"correlation_id": "a", "outcome": "edited"}]))
    hook = NrLlmHook(site.conn_id)
    hook.record_explicit("a", "helpful")
    hook.record_explicit("a", "not_helpful")
    assert [("a", "edited"), ("a", "not_helpful")] == outcome_rows(site.engine)


def test_a_rating_of_one_correlation_id_leaves_all_others_alone(site):
    hook = NrLlmHook(site.conn_id)
    for correlation_id in ("abc", "ABC", "abc "):
        hook.record_explicit(correlation_id, "helpful")
    assert [("ABC", "helpful"), ("abc", "helpful"), ("abc ", "helpful")] == outcome_rows(site.engine)


@pytest.mark.parametrize(
    ("correlation_id", "outcome"),
    [
        ("", "helpful"),
        (None, "helpful"),
        ("a" * 37, "helpful"),
        ("a", "edited"),
        ("a", "great"),
        ("a", ""),
        ("a", None),
    ],
)
def test_a_rating_without_an_id_or_with_another_value_is_refused(site, correlation_id, outcome):
    with pytest.raises(ValueError, match="expected"):
        NrLlmHook(site.conn_id).record_explicit(correlation_id, outcome)
    assert [] == outcome_rows(site.engine)


def test_outcomes_are_read_by_source_and_unknown_values_skipped(site):
    values = ["from_a_newer_version", "helpful", "discarded"]
    load_case(site.engine, world([], outcomes=[{"correlation_id": "a", "outcome": value} for value in values]))
    hook = NrLlmHook(site.conn_id)
    assert hook.outcomes("a") == Outcomes(explicit="helpful", observed="discarded")
    assert hook.outcomes("b") == Outcomes(explicit=None, observed=None)


def test_runs_with_unreadable_writes_in_front_do_not_stop_the_queue(site):
    bad = [run(number, writes=[{"payload": "{", "at": START}]) for number in range(1, 501)]
    good = [run(number, at=START + 60) for number in range(501, 551)]
    case = world(bad + good)
    load_case(site.engine, case)
    result = derive(site.conn_id, page_size=50)
    assert outcome_rows(site.engine) == sorted(
        [(bad_run["uuid"], "unknown") for bad_run in bad]
        + [(good_run["uuid"], "accepted_unchanged") for good_run in good]
    )
    assert 500 == result["unreadable_writes"]


@pytest.mark.parametrize(
    "writes",
    [
        [{"target": f"tx_{number}:1", "at": START - number} for number in range(1500)],
        [{"target": "tt_content:1", "at": START - number * 9 * DAY} for number in range(1500)],
    ],
    ids=["of many tables", "far apart"],
)
def test_any_number_of_writes_of_a_run_is_answered(site, writes):
    load_case(site.engine, world([run(1, writes=writes), run(2)], records={"tt_content:2": {"state": "live"}}))
    derive(site.conn_id)
    assert [("run-00001", "unknown"), ("run-00002", "accepted_unchanged")] == outcome_rows(site.engine)


def test_any_number_of_written_tables_is_looked_up(site_to_change):
    writes = [{"target": f"tx_{number}:1", "at": START} for number in range(600)]
    with site_to_change.engine.begin() as connection:
        for number in range(600):
            connection.execute(text(f"CREATE TABLE tx_{number} (uid INT)"))
            connection.execute(text(f"INSERT INTO tx_{number} VALUES (1)"))
    load_case(site_to_change.engine, world([run(1, writes=writes)], records={}))
    derive(site_to_change.conn_id)
    assert [("run-00001", "accepted_unchanged")] == outcome_rows(site_to_change.engine)


def test_a_payload_that_is_no_utf_8_is_unreadable(make_site):
    site = make_site("sqlite")
    load_case(site.engine, world([run(1), run(2)]))
    execute(
        site,
        "UPDATE tx_nrllm_agentrun_event SET payload = CAST(X'7BFF' AS TEXT) WHERE run = "
        "(SELECT uid FROM tx_nrllm_agentrun WHERE uuid = 'run-00001')",
    )
    derive(site.conn_id)
    assert [("run-00001", "unknown"), ("run-00002", "accepted_unchanged")] == outcome_rows(site.engine)


def test_runs_that_are_not_settled_in_front_do_not_stop_the_queue(site):
    waiting = [run(number, status="waiting_for_approval", finished_at=0) for number in range(1, 101)]
    good = [run(number, at=START + 60) for number in range(101, 111)]
    load_case(site.engine, world(waiting + good))
    derive(site.conn_id, page_size=10)
    assert outcome_rows(site.engine) == accepted(world(good))


def test_runs_that_end_long_after_their_last_write_are_answered_page_by_page_where_they_end(site):
    late = [run(number, finished_at=START + 30 * DAY + number) for number in range(1, 26)]
    load_case(site.engine, world(late))
    bounds = {"interval_start": "2026-01-31", "interval_end": "2026-02-01"}
    assert 25 == derive(site.conn_id, page_size=10, **bounds)["runs_answered"]
    assert outcome_rows(site.engine) == accepted(world(late))


@pytest.mark.parametrize("start", [None, START])
def test_a_uuid_is_on_one_page_only_also_if_nobody_records_in_between(site, start):
    """Runs that share a uuid wrote and ended at different times, so that they are found on different pages."""
    shared = [run(number, at=START + number * DAY, uuid=f"shared-{number % 2}") for number in range(1, 7)]
    late = [run(number, at=START - 20 * DAY + number, uuid="late", finished_at=START + number) for number in (7, 8)]
    load_case(site.engine, world([*shared, *late]))
    pages = NrLlmHook(site.conn_id).pages(start, START + 30 * DAY, window=7 * DAY, page_size=1)
    assert ["late", "shared-0", "shared-1"] == sorted(run.uuid for page in pages for run in page.runs)


def test_a_uuid_that_differs_in_case_is_another_run(site):
    case = world([run(1, uuid="abc"), run(2, uuid="ABC"), run(3, uuid="abc ")])
    load_case(site.engine, case)
    derive(site.conn_id, page_size=1)
    assert outcome_rows(site.engine) == accepted(case)


def test_an_answer_for_a_uuid_that_differs_in_case_is_none(site):
    case = world([run(number, uuid=uuid) for number, uuid in enumerate(("ABC", "abc", "abc "), 1)])
    load_case(site.engine, {**case, "outcomes": [{"correlation_id": "ABC", "outcome": "edited"}]})
    derive(site.conn_id)
    expected = [("ABC", "edited"), ("abc", "accepted_unchanged"), ("abc ", "accepted_unchanged")]
    assert outcome_rows(site.engine) == expected


def test_an_outcome_that_differs_in_case_is_one_this_version_does_not_know(site):
    others = [{"correlation_id": "run-00001", "outcome": value} for value in ("Edited", "HELPFUL", "unknown ")]
    load_case(site.engine, world([run(1)], outcomes=others))
    derive(site.conn_id)
    NrLlmHook(site.conn_id).record_explicit("run-00001", "helpful")
    assert [
        "Edited", "HELPFUL", "accepted_unchanged", "helpful", "unknown ",
    ] == [value for _, value in outcome_rows(site.engine)]  # fmt: skip


def test_a_table_name_that_differs_in_case_is_another_table(site):
    case = world(
        [run(1, writes=[{"target": "TT_Content:1", "at": START}])], records={"tt_content:1": {"state": "live"}}
    )
    load_case(site.engine, case)
    # There is no such table, and that is asked late: nothing dates its end.
    derive(site.conn_id)
    assert [("run-00001", "unknown")] == outcome_rows(site.engine)


def test_a_written_table_without_a_uid_has_no_records(site_to_change):
    execute(site_to_change, "CREATE TABLE odd (id INT)")
    load_case(site_to_change.engine, world([run(1, writes=[{"target": "odd:1", "at": START}])], records={}))
    derive(site_to_change.conn_id)
    assert [("run-00001", "unknown")] == outcome_rows(site_to_change.engine)


def test_a_table_name_that_differs_in_case_hides_no_table(site):
    writes = {1: "TT_CONTENT:1", 2: "tt_content:2"}
    case = world([run(number, writes=[{"target": target, "at": START}]) for number, target in writes.items()])
    load_case(site.engine, {**case, "records": {"tt_content:2": {"state": "live"}}})
    derive(site.conn_id)
    assert [("run-00001", "unknown"), ("run-00002", "accepted_unchanged")] == outcome_rows(site.engine)


@pytest.mark.parametrize(
    ("columns", "row"),
    [
        ("uid VARCHAR(20), deleted INT", "('1', 0)"),
        ("uid INT, deleted VARCHAR(5)", "(1, '1')"),
        ("uid INT, tstamp DATE", "(1, '2026-01-01')"),
        ("uid INT, t3ver_wsid VARCHAR(5)", "(1, '1')"),
    ],
)
def test_a_column_that_holds_no_whole_numbers_is_none_of_a_record(site_to_change, columns, row):
    execute(site_to_change, f"CREATE TABLE odd ({columns})")
    execute(site_to_change, f"INSERT INTO odd VALUES {row}")
    case = world([run(1, writes=[{"target": "odd:1", "at": START}]), run(2)])
    load_case(site_to_change.engine, {**case, "records": {"tt_content:2": {"state": "live"}}})
    derive(site_to_change.conn_id)
    of_odd = "accepted_unchanged" if columns.startswith("uid INT") else "unknown"
    assert [("run-00001", of_odd), ("run-00002", "accepted_unchanged")] == outcome_rows(site_to_change.engine)


@pytest.mark.parametrize(
    ("name", "statements"),
    [
        ("postgres", ["CREATE INDEX odd ON tt_content (uid)"]),
        ("postgres", ["CREATE TYPE odd AS (uid INT)"]),
        ("postgres", ["CREATE MATERIALIZED VIEW odd AS SELECT uid FROM tt_content WITH NO DATA"]),
        ("mariadb", ["CREATE TABLE t (uid INT)", "CREATE VIEW odd AS SELECT uid FROM t", "DROP TABLE t"]),
        ("sqlite", ["CREATE TABLE t (uid INT)", "CREATE VIEW odd AS SELECT uid FROM t", "DROP TABLE t"]),
    ],
    ids=["index", "type", "materialized view", "view on MariaDB", "view on SQLite"],
)
def test_what_is_no_table_has_no_records(make_site_to_change, name, statements):
    site = make_site_to_change(name)
    for statement in statements:
        execute(site, statement)
    load_case(site.engine, world([run(1, writes=[{"target": "odd:1", "at": START}])], records={}))
    derive(site.conn_id)
    assert [("run-00001", "unknown")] == outcome_rows(site.engine)


@pytest.mark.parametrize("name", ["select", "Order", "_1", "x" * 63])
def test_a_written_table_may_be_named_by_any_word(site_to_change, name):
    quoted = site_to_change.engine.dialect.identifier_preparer.quote(name)
    execute(site_to_change, f"CREATE TABLE {quoted} (uid INT, deleted INT)")
    execute(site_to_change, f"INSERT INTO {quoted} VALUES (1, 0)")
    load_case(site_to_change.engine, world([run(1, writes=[{"target": f"{name}:1", "at": START}])], records={}))
    derive(site_to_change.conn_id)
    assert [("run-00001", "accepted_unchanged")] == outcome_rows(site_to_change.engine)


def test_a_workspace_of_null_is_the_live_one(site):
    case = world([run(1)])
    load_case(site.engine, case)
    execute(site, "UPDATE sys_history SET workspace = NULL")
    derive(site.conn_id)
    assert outcome_rows(site.engine) == accepted(case)


# One good write and one unreadable, and a person's MODIFY: what is edited is proven.
@pytest.mark.parametrize(
    ("table", "column", "type_", "where", "expected"),
    [
        ("sys_history", "tstamp", "INT", "uid = 2", "unknown"),
        ("sys_history", "actiontype", "INT", "uid = 2", "edited"),
        ("sys_history", "recuid", "INT", "uid = 2", "unknown"),
        ("sys_history", "tablename", "VARCHAR(255)", "uid = 2", "unknown"),
        ("tx_nrllm_agentrun_event", "crdate", "INT", "kind = 'tool_write' AND payload = '{'", "edited"),
        ("tx_nrllm_agentrun_event", "payload", "TEXT", "payload = '{'", "edited"),
        ("tx_nrllm_agentrun_event", "kind", "VARCHAR(32)", "payload = '{'", "edited"),
        ("tx_nrllm_agentrun", "finished_at", "INT", "uid > 0", "edited"),
        ("tx_nrllm_agentrun", "status", "VARCHAR(32)", "uid > 0", None),
        ("tx_nrllm_agentrun", "uuid", "VARCHAR(36)", "uid > 0", None),
        ("tx_nrllm_call_outcome", "outcome", "VARCHAR(24)", "uid > 0", "edited"),
        ("tx_nrllm_call_outcome", "correlation_id", "VARCHAR(36)", "uid > 0", "edited"),
        ("tt_content", "deleted", "INT", "uid > 0", "edited"),
        ("tt_content", "tstamp", "INT", "uid > 0", "edited"),
        ("tt_content", "t3ver_wsid", "INT", "uid > 0", "edited"),
    ],
)
@pytest.mark.parametrize("start", [None, "2026-01-01"])
def test_a_null_is_what_typo3_has_by_default_and_stops_nothing(
    site_to_change, table, column, type_, where, expected, start
):
    case = world([run(1)], outcomes=[{"correlation_id": "another", "outcome": "helpful"}])
    case["runs"][0]["writes"].append({"payload": "{", "at": START})
    case["history"].append({"uid": 2, "record": "tt_content:1", "at": START + DAY, "action": 2, "workspace": 0})
    load_case(site_to_change.engine, case)
    site_to_change.make_nullable(table, column, type_)
    execute(site_to_change, f"UPDATE {table} SET {column} = NULL WHERE {where}")
    derive(site_to_change.conn_id, interval_start=start, interval_end="2026-02-01")
    assert [outcome for uuid, outcome in outcome_rows(site_to_change.engine) if "run-00001" == uuid] == (
        [expected] if expected else []
    )


def test_a_site_in_order_passes_the_connection_test(site):
    ok, _ = NrLlmHook(site.conn_id).test_connection()
    assert ok


def test_missing_tables_and_columns_are_named_with_the_extension_that_makes_them(site_to_change):
    execute(site_to_change, "DROP TABLE tx_nrllm_call_outcome")
    execute(site_to_change, "ALTER TABLE tx_nrllm_agentrun RENAME COLUMN finished_at TO ended_at")
    ok, message = NrLlmHook(site_to_change.conn_id).test_connection()
    assert not ok
    for expected in ("tx_nrllm_agentrun.finished_at", "tx_nrllm_call_outcome", "extension nr_llm"):
        assert expected in message
    with pytest.raises(NrLlmSchemaError, match=r"tx_nrllm_agentrun\.finished_at, tx_nrllm_call_outcome"):
        derive(site_to_change.conn_id)


def test_a_connection_that_is_missing_is_named(site):
    ok, message = NrLlmHook("no_such_site").test_connection()
    assert (False, True) == (ok, "'no_such_site' is not defined" in message)
    with pytest.raises(NrLlmConnectionError, match=r"'no_such_site' is not defined\. Expected"):
        derive("no_such_site")


@pytest.mark.parametrize(("conn_type", "found"), [("fs", "no SQL database"), ("oracle", "no hook is installed")])
def test_a_connection_of_another_kind_is_named_with_what_to_install(monkeypatch, conn_type, found):
    monkeypatch.setenv("AIRFLOW_CONN_OTHER", f'{{"conn_type": "{conn_type}"}}')
    with pytest.raises(NrLlmConnectionError, match=rf"'other' has the type '{conn_type}'.*{found}.*pip install"):
        derive("other")


def test_a_file_that_is_not_there_is_named_and_not_made(make_site, tmp_path):
    path = tmp_path / "mistyped.sqlite"
    make_site("sqlite").define_connection("mistyped", host=str(path))
    with pytest.raises(NrLlmConnectionError, match=rf"names the file '{path}', which is not there\. Expected"):
        derive("mistyped")
    assert not path.exists()


def test_a_password_is_in_no_message(server_site):
    conn_id = server_site.define_connection(password="s3cret-passw0rd")
    ok, message = NrLlmHook(conn_id).test_connection()
    assert (False, False) == (ok, "s3cret" in message)


def test_a_connection_that_cannot_be_opened_is_named_beside_the_error_of_the_driver(server_site):
    conn_id = server_site.define_connection(password="not the password")
    ok, message = NrLlmHook(conn_id).test_connection()
    assert (False, True) == (ok, f"Connection {conn_id!r} cannot be opened. Check its host" in message)
    with pytest.raises(Exception, match=r"Access denied|authentication failed") as caught:
        derive(conn_id)
    assert not isinstance(caught.value, NrLlmConnectionError)
    assert f"Connection {conn_id!r} cannot be opened" in caught.value.__notes__[0]


@pytest.mark.parametrize(
    ("name", "extra"),
    [
        ("mariadb", {"cursor": "dictcursor"}),
        ("mariadb", {"cursor": "sscursor"}),
        ("mariadb", {"client": "mysql-connector-python"}),
        ("postgres", {"cursor": "dictcursor"}),
    ],
    ids=lambda value: value if isinstance(value, str) else "-".join(value.values()),
)
def test_the_extras_of_a_connection_change_no_answer(make_site, name, extra):
    site = make_site(name)
    case = many_runs(5)
    load_case(site.engine, case)
    conn_id = site.define_connection(extra=extra)
    assert NrLlmHook(conn_id).test_connection()[0]
    derive(conn_id, page_size=2)
    NrLlmHook(conn_id).record_explicit("run-00001", "helpful")
    assert outcome_rows(site.engine) == sorted([*accepted(case), ("run-00001", "helpful")])


def test_no_statement_reads_content_or_persons(site):
    load_case(site.engine, many_runs(3))
    hook = NrLlmHook(site.conn_id)
    statements = []
    event.listen(hook.database.engine, "before_cursor_execute", lambda *arguments: statements.append(arguments[2]))
    for page in hook.pages(START, START + 30 * DAY, window=7 * DAY, page_size=2):
        hook.record_observed(page.runs, page.outcomes(START + 31 * DAY))
    assert statements
    for word in ("history_data", "userid", "be_user", "suspended_state", "queued_request", "bodytext", "*"):
        assert not [statement for statement in statements if word in statement]
