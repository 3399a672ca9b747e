"""The sites that the other tests use hold what the cases say, on every engine."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import BaseHook
from sqlalchemy import func, inspect, select, text

from tests.typo3 import tables as typo3
from tests.typo3.loader import load_case, load_typo3
from tests.typo3.servers import CHOSEN, MariaDB, Postgres, ServerError
from tests.typo3.sites import Site

CASES = Path(__file__).parent.parent / "cases"
WORLDS = {world["name"]: world for world in json.loads((CASES / "observed_outcomes.json").read_text())}
TYPO3 = json.loads((CASES / "typo3_13.4.18.json").read_text())


def _rows(site: Site, table: Any) -> list[dict[str, Any]]:
    with site.engine.connect() as connection:
        return [dict(row._mapping) for row in connection.execute(select(table).order_by(table.c.uid))]


def test_the_worlds_are_laid_as_their_cases_say(make_site: Callable[[str], Site]) -> None:
    site = make_site("sqlite")
    for world in WORLDS.values():
        typo3.empty_tables(site.engine)
        load_case(site.engine, world)
        assert _given(world) == _laid(site), world["name"]


def _given(world: dict[str, Any]) -> list[Any]:
    """Return what a case holds, in the order of the tables."""
    return [
        sorted((r["uuid"], r["status"], r["created_at"], r["finished_at"]) for r in world["runs"]),
        sorted(
            (r["uuid"], w["at"], w["target"] if "target" in w else w["payload"] or "")
            for r in world["runs"]
            for w in r["writes"]
        ),
        sorted(
            (h["uid"], h["record"], h["at"], h["action"], h["workspace"], h.get("usertype", "BE"))
            for h in world["history"]
        ),
        {
            target: ("deleted", record.get("tstamp", 0)) if record["state"] == "deleted" else "live"
            for target, record in world["records"].items()
            if record["state"] != "missing"
        },
        sorted((row["correlation_id"], row["outcome"]) for row in world["outcomes"]),
    ]


def _laid(site: Site) -> list[Any]:
    """Return what the tables hold, as :func:`_given` has it."""
    runs = {row["uid"]: row for row in _rows(site, typo3.run)}
    return [
        sorted((row["uuid"], row["status"], row["crdate"], row["finished_at"]) for row in runs.values()),
        sorted(
            (runs[row["run"]]["uuid"], row["crdate"], _target(row))
            for row in _rows(site, typo3.event)
            if row["kind"] == "tool_write"
        ),
        [
            (
                row["uid"], f"{row['tablename']}:{row['recuid']}", row["tstamp"], row["actiontype"], row["workspace"],
                row["usertype"],
            )
            for row in _rows(site, typo3.history)
        ],
        {
            f"{table.name}:{row['uid']}": ("deleted", row["tstamp"]) if row.get("deleted") else "live"
            for table in typo3.RECORD_TABLES
            for row in _rows(site, table)
        },
        typo3.outcome_rows(site.engine),
    ]  # fmt: skip


def _target(row: dict[str, Any]) -> str:
    """Return what a case says of a write: its target, or its payload where that was given as text."""
    if row["payload"] and "toolName" in row["payload"]:
        payload = json.loads(row["payload"])
        return f"{payload['writeTargetTable']}:{payload['writeTargetUid']}"
    return row["payload"] or ""


def test_what_typo3_wrote_is_laid_row_by_row(site: Site) -> None:
    load_typo3(site.engine, TYPO3)
    for name, rows in TYPO3["tables"].items():
        stored = {row["uid"]: row for row in _rows(site, typo3.metadata.tables[name])}
        assert len(rows) == len(stored)
        for row in rows:
            expected = {
                key: max(0, value) if key == "tstamp" or key == "crdate" else value for key, value in row.items()
            }
            assert expected == {key: stored[row["uid"]][key] for key in row}


def test_stories_can_be_moved_in_time_as_a_whole(site: Site) -> None:
    load_typo3(site.engine, TYPO3, offset=1000)
    first = TYPO3["tables"]["tx_nrllm_agentrun_event"][0]
    moved = _rows(site, typo3.event)[0]
    assert first["crdate"] + 1000 == moved["crdate"]
    assert {0} == {row["finished_at"] for row in _rows(site, typo3.run) if "completed" == row["status"]}


def test_the_next_uid_is_free_after_rows_with_uids(site: Site) -> None:
    load_typo3(site.engine, TYPO3)
    with site.engine.begin() as connection:
        connection.execute(typo3.run.insert(), [{"uuid": "one more"}])
        last = connection.execute(select(func.max(typo3.run.c.uid))).scalar_one()
    assert len(TYPO3["tables"]["tx_nrllm_agentrun"]) < last


def test_every_index_is_there(site: Site) -> None:
    inspector = inspect(site.engine)
    for table, indexes in typo3.INDEXES.items():
        prefix = "" if site.name == "mariadb" else f"{table}_"
        found = {index["name"]: tuple(index["column_names"]) for index in inspector.get_indexes(table)}
        assert {prefix + name: columns for name, columns in indexes.items()} == found


def test_the_airflow_connection_reaches_the_site(site: Site) -> None:
    load_typo3(site.engine, TYPO3)
    hook: Any = BaseHook.get_hook(site.conn_id)
    assert len(TYPO3["tables"]["pages"]) == hook.get_first("SELECT count(*) FROM pages")[0]


def test_what_was_committed_outlives_a_crash_of_the_server(server_site: Site) -> None:
    assert server_site.server is not None
    with server_site.engine.begin() as connection:
        connection.execute(typo3.run.insert(), [{"uuid": "committed"}])
    server_site.server.kill()
    server_site.server.start()
    assert ["committed"] == [row["uuid"] for row in _rows(server_site, typo3.run)]
    server_site.server.restart()
    assert ["committed"] == [row["uuid"] for row in _rows(server_site, typo3.run)]


def test_servers_that_start_at_once_have_temporary_directories_of_their_own() -> None:
    with ThreadPoolExecutor(3) as pool:
        servers = list(pool.map(lambda _: MariaDB(), range(3)))
    try:
        for server in servers:
            with server.engine().connect() as connection:
                found = connection.execute(text("SELECT @@tmpdir")).scalar_one()
            assert server.directory == Path(found).parent
    finally:
        for server in servers:
            server.remove()


def test_a_server_that_was_asked_for_is_never_the_systems(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(CHOSEN, "postgres", tmp_path)
    with pytest.raises(ServerError, match=f"initdb is not in {tmp_path}"):
        Postgres()
