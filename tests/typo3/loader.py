"""The worlds of ``tests/cases``, and what TYPO3 itself wrote, laid into the tables of a site."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import BigInteger, Table, func, insert, select
from sqlalchemy.engine import Connection, Engine

from tests.typo3.tables import event, history, metadata, outcome, run

Row = dict[str, Any]


def load_case(engine: Engine, case: Mapping[str, Any]) -> None:
    """
    Lay one world of ``observed_outcomes.json`` into the empty tables.

    Runs, events and outcomes get uids in an order of no meaning, so that nothing can lean on it. Each run
    has, besides its writes, the other kinds of event a run has: larger, and around and after the writes, so
    that a query that forgets ``kind`` gives a wrong answer.

    :param case: one of the list that the file holds
    """
    shuffle = random.Random(str(case["name"])).sample
    runs: list[Row] = []
    events: list[Row] = []
    run_uids = shuffle(range(1, max(1000, 2 * len(case["runs"]))), len(case["runs"]))
    for run_uid, given in zip(run_uids, case["runs"], strict=True):
        runs.append(
            {
                "uid": run_uid,
                "uuid": given["uuid"],
                "status": given["status"],
                "be_user": 7,
                "finished_at": given["finished_at"],
                "tstamp": given["created_at"],
                "crdate": given["created_at"],
            }
        )
        events.extend(_events_of_run(run_uid, given))
    for event_uid, row in zip(shuffle(range(1, max(10000, 2 * len(events))), len(events)), events, strict=True):
        row["uid"] = event_uid
    with engine.begin() as connection:
        _insert(connection, run, runs)
        _insert(connection, event, events)
        _insert(connection, history, [_history_row(given) for given in case["history"]])
        for table, rows in _record_rows(case).items():
            _insert(connection, metadata.tables[table], rows)
        _insert(connection, outcome, [{**given, "crdate": 1, "tstamp": 1} for given in case["outcomes"]])


def _events_of_run(run_uid: int, given: Mapping[str, Any]) -> list[Row]:
    """Return a run's writes with the events of other kinds before, between and after them."""
    created, ended = given["created_at"], max(given["created_at"], given["finished_at"] or 0)
    bulk = "Lorem ipsum dolor sit amet. " * 150
    rows = [_event("request", created, {"messages": bulk}), _event("llm", created, {"content": bulk})]
    for write in given["writes"]:
        table, _, uid = write.get("target", "").partition(":")
        named = {"writeTargetTable": table, "writeTargetUid": int(uid)} if table else {}
        rows.append(_event("tool", write["at"], {"arguments": bulk, **named}))
        row = _event("tool_write", write["at"], {"round": 1, "durationMs": 0, "toolName": "update", **named})
        if "payload" in write:
            row["payload"] = write["payload"]
        rows.append(row)
    rows.append(_event("llm", max([ended, *(row["crdate"] for row in rows)]) + 1, {"content": bulk}))
    return [{**row, "run": run_uid, "sequence": number} for number, row in enumerate(rows, start=1)]


def _event(kind: str, at: int, payload: Row) -> Row:
    return {"kind": kind, "round": 1, "payload": json.dumps({"kind": kind, **payload}), "crdate": at}


def _history_row(given: Mapping[str, Any]) -> Row:
    table, _, uid = given["record"].partition(":")
    return {
        "uid": given["uid"],
        "tstamp": given["at"],
        "actiontype": given["action"],
        "usertype": given.get("usertype", "BE"),
        "userid": 7,
        "recuid": int(uid),
        "tablename": table,
        "history_data": json.dumps({"oldRecord": {"header": "before"}, "newRecord": {"header": "after"}}),
        "workspace": given["workspace"],
    }


def _record_rows(case: Mapping[str, Any]) -> dict[str, list[Row]]:
    """Return the rows of the written records that still have one, by table."""
    rows: dict[str, list[Row]] = {}
    for target, given in case["records"].items():
        table, _, uid = target.partition(":")
        if given["state"] == "missing":
            continue
        deleted = given["state"] == "deleted"
        row: Row = {"uid": int(uid), "tstamp": given.get("tstamp", 0) if deleted else case["now"]}
        if "deleted" in metadata.tables[table].c:
            row["deleted"] = int(deleted)
        rows.setdefault(table, []).append(row)
    return rows


#: The columns of the site's tables that hold a time, in Unix seconds.
_STAMPS = frozenset({"tstamp", "crdate", "started_at", "finished_at", "lease_expires"})


def load_typo3(engine: Engine, data: Mapping[str, Any], offset: int = 0) -> None:
    """
    Lay what TYPO3 itself wrote (``typo3_13.4.18.json``) into the empty tables.

    :param data: what the file holds
    :param offset: seconds added to every time, so that the stories can end now
    """
    with engine.begin() as connection:
        for name, rows in data["tables"].items():
            _insert(connection, metadata.tables[name], [_moved(row, offset) for row in rows])


def _moved(row: Mapping[str, Any], offset: int) -> Row:
    # 0 is no time. The root page is older than the epoch, since the data's own times were moved once before.
    return {name: max(0, value + offset) if name in _STAMPS and value else value for name, value in row.items()}


def _insert(connection: Connection, table: Table, rows: Sequence[Row]) -> None:
    """Insert rows that all name the same columns."""
    if not rows:
        return
    connection.execute(insert(table), list(rows))
    if "uid" in rows[0] and connection.dialect.name == "postgresql":
        # PostgreSQL does not count uids that are given; the next one is to be free all the same.
        sequence = func.pg_get_serial_sequence(table.name, "uid")
        last = select(func.max(table.c.uid)).scalar_subquery()
        connection.execute(select(func.setval(sequence, last.cast(BigInteger))))
