"""Sites of numbers that no site should have: thousands of writes of a run, of tables that it names, or of edits."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from itertools import chain, islice
from typing import Any

from sqlalchemy import Table, insert
from sqlalchemy.engine import Connection, Engine

from tests.typo3.tables import event, history, metadata, run

START = 1_760_000_000

#: A write: the uid of its run, and the table and uid that it names.
Write = tuple[int, str, int]


def lay_writes(
    engine: Engine, writes: Sequence[Write], uuids: Sequence[str], *, status: str = "completed", edits: int = 0
) -> None:
    """
    Lay runs and their writes, a second apart, and the records of ``tt_content`` that they name.

    :param uuids: of the runs, whose uids count from 1
    :param status: of the runs
    :param edits: how many edits by a person each record has besides, a second apart, beginning with the first write
    """
    ended_at = START + len(writes) if status == "completed" else 0
    records = sorted({uid for _, table, uid in writes if table == "tt_content"})
    made = ((START, 1, uid) for uid in records)
    edited = ((START + second, 2, uid) for uid in records for second in range(edits))
    with engine.begin() as connection:
        _insert(
            connection,
            run,
            (
                {"uid": uid, "uuid": uuid, "status": status, "crdate": START, "finished_at": ended_at}
                for uid, uuid in enumerate(uuids, 1)
            ),
        )
        _insert(
            connection,
            event,
            (
                {
                    "uid": number,
                    "run": run_uid,
                    "sequence": number,
                    "kind": "tool_write",
                    "crdate": START + number,
                    "payload": json.dumps({"writeTargetTable": table, "writeTargetUid": uid}),
                }
                for number, (run_uid, table, uid) in enumerate(writes, 1)
            ),
        )
        _insert(connection, metadata.tables["tt_content"], ({"uid": uid, "tstamp": START} for uid in records))
        _insert(
            connection,
            history,
            (
                {"uid": number, "tstamp": at, "actiontype": action, "tablename": "tt_content", "recuid": uid}
                for number, (at, action, uid) in enumerate(chain(made, edited), 1)
            ),
        )


def _insert(connection: Connection, table: Table, rows: Iterable[dict[str, Any]]) -> None:
    rest = iter(rows)
    while some := list(islice(rest, 10_000)):
        connection.execute(insert(table), some)
