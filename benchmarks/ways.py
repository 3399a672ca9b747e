"""
What a derivation is measured against: the floor and the row-at-a-time way, both on the plain driver.

The floor fetches the very rows a derivation has to read, each once, by lists of uids that nobody had to find,
and inserts the very rows it has to write, with no rules in between. Row-at-a-time is how the PHP extension
goes about it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

#: A DB-API connection, and the mark of a parameter on its driver.
Connect = Callable[[], Any]

CHUNK = 1000
#: The extension's page.
PAGE = 200
INSERT = "INSERT INTO tx_nrllm_call_outcome (pid, correlation_id, outcome, crdate, tstamp)"


@dataclass(frozen=True)
class Needed:
    """
    The rows that a derivation of a partition has to read and write.

    :param runs: uids of the runs, in the order of time, and so the others
    :param events: uids of the writes of these runs, and of all others that are of account
    :param records: uids of the written records by table
    :param columns: of these tables, those that tell whether a record is there
    :param outcomes: what is to be written, by uuid
    """

    runs: Sequence[int]
    events: Sequence[int]
    records: Mapping[str, Sequence[int]]
    columns: Mapping[str, Sequence[str]]
    outcomes: Mapping[str, str]


def _chunks(items: Sequence[Any], size: int = CHUNK) -> Iterator[Sequence[Any]]:
    for first in range(0, len(items), size):
        yield items[first : first + size]


def floor(connect: Connect, needed: Needed) -> float:
    """Return how many seconds the floor takes."""
    connection = connect()
    cursor = connection.cursor()
    begun = time.perf_counter()

    def fetch(select: str, uids: Sequence[int]) -> None:
        for some in _chunks(uids):
            cursor.execute(f"SELECT {select} IN ({', '.join(map(str, some))})")
            cursor.fetchall()

    fetch("uid, uuid, status, finished_at FROM tx_nrllm_agentrun WHERE uid", needed.runs)
    fetch("run, crdate, uid, payload FROM tx_nrllm_agentrun_event WHERE uid", needed.events)
    for table, uids in needed.records.items():
        fetch(
            "tablename, recuid, tstamp, uid, actiontype, workspace FROM sys_history "
            f"WHERE tablename = '{table}' AND recuid",
            uids,
        )
        fetch(f"{', '.join(needed.columns[table])} FROM {table} WHERE uid", uids)
    connection.rollback()
    for rows in _chunks(list(needed.outcomes.items())):
        values = ", ".join(f"(0, '{uuid}', '{outcome}', 1, 1)" for uuid, outcome in rows)
        cursor.execute(f"{INSERT} VALUES {values}")
        connection.commit()
    taken = time.perf_counter() - begun
    connection.close()
    return taken


def row_at_a_time(connect: Connect, needed: Needed, mark: str, limit: int) -> tuple[float, int]:
    """
    Return how many seconds the row-at-a-time way takes, and for how many runs.

    :param mark: of a parameter, as the driver wants it
    :param limit: at most so many runs, spread over all pages
    """
    pages = list(_chunks(needed.runs, PAGE))
    pages = pages[:: max(1, len(pages) * PAGE // limit)][: max(1, limit // PAGE)]
    connection = connect()
    cursor = connection.cursor()
    begun = time.perf_counter()
    for page in pages:
        cursor.execute(f"SELECT uid, uuid FROM tx_nrllm_agentrun WHERE uid IN ({', '.join(map(str, page))})")
        for uid, uuid in cursor.fetchall():
            cursor.execute(
                f"SELECT crdate, uid, payload FROM tx_nrllm_agentrun_event WHERE run = {mark} AND kind = {mark}",
                (uid, "tool_write"),
            )
            for _, _, payload in cursor.fetchall():
                _look_at_record(cursor, payload, mark, needed.columns)
            cursor.execute(
                f"{INSERT} VALUES (0, {mark}, {mark}, 1, 1)",
                (uuid, "unknown"),
            )
            connection.commit()
    taken = time.perf_counter() - begun
    connection.close()
    return taken, sum(map(len, pages))


def _look_at_record(cursor: Any, payload: str, mark: str, columns: Mapping[str, Sequence[str]]) -> None:
    try:
        named = json.loads(payload)
    except ValueError:
        return
    table, uid = named["writeTargetTable"], named["writeTargetUid"]
    cursor.execute(
        f"SELECT tstamp, uid, actiontype, workspace FROM sys_history WHERE tablename = {mark} AND recuid = {mark}",
        (table, uid),
    )
    cursor.fetchall()
    cursor.execute(f"SELECT {', '.join(columns[table])} FROM {table} WHERE uid = {mark}", (uid,))
    cursor.fetchall()
