"""
What a derivation is measured against: floors and the row-at-a-time way, all on the plain driver.

A floor finds the runs that settled, fetches the rows a derivation has to read by lists of uids, and inserts as many
rows as it writes. It finds the same runs, which is checked; what it makes of them is nothing, or ten lines of rules
that are right for most. Row-at-a-time is how the PHP extension goes about it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from airflow_provider_nrllm.outcomes.evidence import OWN_ROW_AGE
from airflow_provider_nrllm.outcomes.payloads import target_of
from tests.typo3.year import BEGIN, DAY, DELETE, MODIFY

#: A DB-API connection, and the mark of a parameter on its driver.
Connect = Callable[[], Any]

WINDOW = 7 * DAY
CHUNK = 1000
#: The extension's page.
PAGE = 200
INSERT = "INSERT INTO tx_nrllm_call_outcome (pid, correlation_id, outcome, crdate, tstamp)"
OBSERVED = "('accepted_unchanged', 'edited', 'discarded', 'unknown')"


@dataclass(frozen=True)
class Needed:
    """
    The runs that a derivation of a partition answers.

    :param partition: from when to when, in Unix seconds; None for the beginning
    :param runs: their uids, in the order of time
    :param uuids: their uuids
    :param columns: of each written table, those that tell whether a record is there
    """

    partition: tuple[int | None, int]
    runs: Sequence[int]
    uuids: Sequence[str]
    columns: Mapping[str, Sequence[str]]


def _chunks(items: Sequence[Any], size: int = CHUNK) -> Iterator[Sequence[Any]]:
    for first in range(0, len(items), size):
        yield items[first : first + size]


def floor(connect: Connect, needed: Needed, *, rules: bool) -> tuple[float, int]:
    """
    Return how many seconds a floor takes, and how many runs it answered.

    :param rules: whether it makes something of what it reads
    """
    connection = connect()
    way = _Floor(connection.cursor(), needed, rules)
    begun = time.perf_counter()
    answered = 0
    for outcomes in way.pages():
        connection.rollback()
        for rows in _chunks(outcomes):
            values = ", ".join(f"(0, '{uuid}', '{outcome}', 1, 1)" for uuid, outcome in rows)
            way.cursor.execute(f"{INSERT} VALUES {values}")
            connection.commit()
        answered += len(outcomes)
    taken = time.perf_counter() - begun
    connection.close()
    return taken, answered


WRITES = (
    "SELECT e.run, e.crdate, e.payload, r.uuid, r.status, r.finished_at FROM tx_nrllm_agentrun_event e "
    "JOIN tx_nrllm_agentrun r ON r.uid = e.run WHERE e.kind = 'tool_write' AND"
)


class _Floor:
    """The statements of a floor."""

    def __init__(self, cursor: Any, needed: Needed, rules: bool) -> None:
        self.cursor = cursor
        self.needed = needed
        self.rules = rules

    def pages(self) -> Iterator[list[tuple[str, str]]]:
        """Yield the outcomes of the runs, a thousand at once."""
        start, end = self.needed.partition
        first = BEGIN if start is None else start - WINDOW - OWN_ROW_AGE
        writes = self.rows(f"{WRITES} e.crdate >= {first} AND e.crdate < {end}")
        if start is not None:
            late = self.rows(
                f"SELECT uid FROM tx_nrllm_agentrun WHERE finished_at >= {start} AND finished_at < {end} "
                "AND status IN ('completed', 'failed', 'cancelled')"
            )
            # What they wrote before that.
            for some in _chunks(sorted({row[0] for row in writes}.union(uid for (uid,) in late))):
                listed = ", ".join(map(str, some))
                writes += [row for row in self.rows(f"{WRITES} e.run IN ({listed})") if row[1] < first]
        of_run: dict[int, list[Any]] = {}
        for row in writes:
            of_run.setdefault(row[0], []).append(row)
        settled = [
            rows
            for rows in of_run.values()
            if rows[0][4] in ("completed", "failed", "cancelled")
            and (start or 0) <= max(rows[0][5], max(row[1] for row in rows) + WINDOW) < end
        ]
        for page in _chunks(settled):
            yield self.outcomes(page)

    def outcomes(self, settled: Sequence[list[Any]]) -> list[tuple[str, str]]:
        """Return the outcomes of runs, of each of which there are the rows of its writes."""
        first = min(row[1] for rows in settled for row in rows)
        answered = set()
        for some in _chunks([rows[0][3] for rows in settled]):
            uuids = ", ".join(f"'{uuid}'" for uuid in some)
            answered |= {
                uuid
                for (uuid,) in self.rows(
                    "SELECT correlation_id FROM tx_nrllm_call_outcome "
                    f"WHERE correlation_id IN ({uuids}) AND outcome IN {OBSERVED}"
                )
            }
        settled = [rows for rows in settled if rows[0][3] not in answered]
        targets = {row[2]: target_of(row[2]) for rows in settled for row in rows}
        records: dict[str, set[int]] = {}
        for target in targets.values():
            if target:
                records.setdefault(target.table, set()).add(target.uid)
        histories: dict[tuple[str, int], list[Any]] = {}
        gone = set()
        for table, uids in records.items():
            for some in _chunks(sorted(uids)):
                listed = ", ".join(map(str, some))
                # By the records, whatever else there is an index on.
                for row in self.rows(
                    "SELECT recuid, tstamp, uid, actiontype, workspace FROM sys_history WHERE "
                    f"tablename = '{table}' AND recuid IN ({listed}) AND tstamp + 0 >= {first - OWN_ROW_AGE}"
                ):
                    histories.setdefault((table, row[0]), []).append(row)
                columns = ", ".join(self.needed.columns[table])
                there = {row[0] for row in self.rows(f"SELECT {columns} FROM {table} WHERE uid IN ({listed})")}
                gone |= {(table, uid) for uid in some if uid not in there}
        if not self.rules:
            return [(rows[0][3], "unknown") for rows in settled]

        def of_write(row: Any) -> int:
            target = targets[row[2]]
            if not target:
                return 0
            later = [
                action
                for _, at, _, action, _ in histories.get(target, ())
                if row[1] + OWN_ROW_AGE < at <= row[1] + WINDOW
            ]
            return 2 if target in gone or DELETE in later else 3 if MODIFY in later else 1

        names = ("unknown", "accepted_unchanged", "discarded", "edited")
        return [(rows[0][3], names[max(map(of_write, rows))]) for rows in settled]

    def rows(self, query: str) -> list[Any]:
        """Return what a statement answers."""
        self.cursor.execute(query)
        return list(self.cursor.fetchall())


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
