"""Answered runs laid into a site with what their history holds, for the tests of the audit."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import Table, insert

from tests.typo3 import tables
from tests.typo3.sites import Site

WEEK = 7 * 86400
#: When the runs wrote, and when they were answered.
T = 1770000000
ANSWERED = 1774000000

ADD, MODIFY, MOVE, DELETE, UNDELETE, STAGECHANGE, PUBLISH = range(1, 8)

#: A stamp, an action, what ``history_data`` holds, and the workspace if it is not the live one.
History = tuple[Any, ...]


def answered(site: Site, outcomes: Iterable[tuple[str, str]], at: int = ANSWERED) -> None:
    """Answer runs by hand."""
    rows = [{"correlation_id": uuid, "outcome": value, "crdate": at, "tstamp": at} for uuid, value in outcomes]
    with site.engine.begin() as connection:
        connection.execute(insert(tables.outcome), rows)


def lay(
    site: Site,
    *rows: History,
    target: tuple[str, int] = ("tt_content", 1),
    writes: Sequence[int] = (T,),
    uuid: str = "r1",
    outcome: str = "edited",
) -> None:
    """Lay an answered run that wrote one record at each of ``writes``, and the history of that."""
    lay_run(site, [(at, target) for at in writes], uuid=uuid, outcome=outcome)
    lay_history(site, target, *rows)


def lay_run(site: Site, writes: Iterable[tuple[int, tuple[str, int]]], *, uuid: str, outcome: str) -> None:
    """Lay an answered run that wrote records at these times."""
    with site.engine.begin() as connection:
        values = {"uuid": uuid, "status": "completed", "finished_at": T, "crdate": T}
        run_uid = connection.execute(insert(tables.run).values(values)).inserted_primary_key[0]
        for at, (table, uid) in writes:
            payload = json.dumps({"writeTargetTable": table, "writeTargetUid": uid})
            row = {"run": run_uid, "kind": "tool_write", "payload": payload, "crdate": at}
            connection.execute(insert(tables.event).values(row))
    answered(site, [(uuid, outcome)])


def lay_history(site: Site, target: tuple[str, int], *rows: History) -> None:
    """Lay the history of a record."""
    with site.engine.begin() as connection:
        for stamp, action, data, *workspace in rows:
            row = {"tstamp": stamp, "actiontype": action, "history_data": data, "workspace": sum(workspace)}
            connection.execute(insert(tables.history).values(tablename=target[0], recuid=target[1], **row))


def lay_record(site: Site, target: tuple[str, int], **columns: int) -> None:
    """Lay the row of a record."""
    table: Table = tables.metadata.tables[target[0]]
    with site.engine.begin() as connection:
        connection.execute(insert(table).values(uid=target[1], **{"tstamp": T, **columns}))


def changed(*fields: str, old: Any = "a", new: Any = "b") -> str:
    """Return what a MODIFY or PUBLISH row holds."""
    return json.dumps({"oldRecord": dict.fromkeys(fields, old), "newRecord": dict.fromkeys(fields, new)})


def record(**fields: Any) -> str:
    """Return what an ADD row holds: the record itself."""
    return json.dumps({"pid": 1, **fields})


def later(
    action: int, *fields: str, at: int = T + 9, data: str | None = None, old: Any = "b", new: Any = "c"
) -> History:
    """Return a later row; MODIFY and PUBLISH name the fields."""
    return (at, action, changed(*fields, old=old, new=new) if fields else data)


def lay_histories(site: Site, records: Mapping[int, tuple[int, Sequence[History]]]) -> None:
    """Lay many runs, ``r1`` and so on, that wrote one content element each: when, and its history by its uid."""
    with site.engine.begin() as connection:
        runs = [
            {"uid": uid, "uuid": f"r{uid}", "status": "completed", "finished_at": T, "crdate": T} for uid in records
        ]
        connection.execute(insert(tables.run), runs)
        events, history = [], []
        for uid, (at, rows) in records.items():
            payload = json.dumps({"writeTargetTable": "tt_content", "writeTargetUid": uid})
            events.append({"run": uid, "kind": "tool_write", "payload": payload, "crdate": at})
            history += [
                {"tstamp": stamp, "actiontype": action, "history_data": data, "tablename": "tt_content", "recuid": uid}
                for stamp, action, data in rows
            ]
        connection.execute(insert(tables.event), events)
        connection.execute(insert(tables.history), history)
