"""Random sites, and what the rules as they are worded answer of them: runs that wait, late ends, shared uuids."""

from __future__ import annotations

import json
import random
from collections import defaultdict
from typing import Any, NamedTuple

from sqlalchemy import insert
from sqlalchemy.engine import Engine

from tests.typo3 import model
from tests.typo3.tables import event, history, metadata, run

DAY = 86400
WINDOW = 7 * DAY
START = 1_760_000_000
#: All is settled then, and asked late.
NOW = START + 60 * DAY
ENDED = ("completed", "failed", "cancelled")


class RandomWorld(NamedTuple):
    """
    Rows for the tables of a site.

    :ivar expected: the outcome of each uuid that settles before :data:`NOW`
    :ivar settled: when it settles
    """

    tables: dict[str, list[dict[str, Any]]]
    expected: dict[str, str]
    settled: dict[str, int]

    def lay(self, engine: Engine) -> None:
        """Insert the rows into the empty tables."""
        with engine.begin() as connection:
            for name, rows in self.tables.items():
                if rows:
                    connection.execute(insert(metadata.tables[name]), rows)


def random_world(seed: int, size: int) -> RandomWorld:
    """
    Return a site of so many runs, the same from the same seed.

    Their writes crowd on few records, at few times, so that they share stamps, seconds and windows.
    """
    chance = random.Random(seed)
    records = range(1, max(2, size // 3) + 1)
    popular = chance.choice(records)
    runs: list[dict[str, Any]] = []
    events: list[dict[str, Any]] = []
    uuids = [f"run-{number}" for number in range(size)]
    for uid in range(1, size + 1):
        # Some share a uuid, some differ from another by case alone, some have none.
        uuid = chance.choice([uuids[uid - 1]] * 8 + [chance.choice(uuids), uuids[uid - 1].upper(), ""])
        made = START + chance.randrange(30 * DAY)
        writes = sorted(
            made + chance.randrange(chance.choice([60, 3600, 4 * DAY]))
            for _ in range(chance.choice([0, 1, 1, 1, 2, 3, 12]))
        )
        status = chance.choice([*ENDED[:1] * 6, *ENDED, "waiting_for_approval", "running"])
        last = max([made, *writes])
        ended = last + chance.choice([0, 1, 60, DAY, 20 * DAY]) if status in ENDED else 0
        runs.append({"uid": uid, "uuid": uuid, "status": status, "crdate": made, "finished_at": ended})
        for at in [*writes, made, last]:
            kind = "tool_write" if at in writes and (at not in (made, last) or chance.random() < 0.9) else "llm"
            target = chance.choice([popular, *[chance.choice(records)] * 3])
            payload = json.dumps({"writeTargetTable": "tt_content", "writeTargetUid": target})
            if chance.random() < 0.02:
                payload = chance.choice(["", "{", '{"writeTargetTable": "tt_content"}'])
            events.append({"run": uid, "kind": kind, "crdate": at, "payload": payload})
    chance.shuffle(events)
    for uid, row in enumerate(events, 1):
        row.update(uid=uid, sequence=uid)
    written = [(row, target) for row in events if row["kind"] == "tool_write" and (target := _target(row))]
    rows: list[dict[str, Any]] = []
    stamps = [row["crdate"] for row, _ in written] or [START]
    for row, target in written:
        if chance.random() < 0.9:
            rows.append(
                _row(
                    chance, target, row["crdate"] - chance.choice([0, 1, 30, 3500, 3700]), chance.choice([1] + [2] * 30)
                )
            )
    for _ in range(size // 4):
        at = chance.choice(stamps) + chance.choice([0, 1, DAY, 3 * DAY, WINDOW, WINDOW + 1, 9 * DAY])
        rows.append(_row(chance, chance.choice(records), at, chance.choice([2] * 12 + [1, 3, 3, 4, 5, 7])))
    chance.shuffle(rows)
    for uid, row in enumerate(rows, 1):
        row["uid"] = uid
    states = {}
    content = []
    for uid in records:
        there = chance.choice(["live"] * 20 + ["deleted", "deleted", "missing"])
        stamp = chance.choice(stamps) + chance.choice([0, DAY, 8 * DAY])
        if there != "missing":
            content.append({"uid": uid, "deleted": int(there == "deleted"), "tstamp": stamp})
        states[uid] = model.State(there == "live", there == "deleted", stamp if there == "deleted" else None)
    tables = {run.name: runs, event.name: events, history.name: rows, "tt_content": content}
    return RandomWorld(tables, *_answers(runs, events, rows, states))


def _target(row: dict[str, Any]) -> int | None:
    try:
        target = json.loads(row["payload"]).get("writeTargetUid")
    except ValueError:
        return None
    return int(target) if target else None


def _row(chance: random.Random, record: int, at: int, action: int) -> dict[str, Any]:
    return {
        "tstamp": at,
        "tablename": "tt_content",
        "recuid": record,
        "actiontype": action,
        "usertype": chance.choice(["BE"] * 9 + ["FE"]),
        "workspace": chance.choice([0] * 9 + [1]),
    }


def _answers(
    runs: list[dict[str, Any]],
    events: list[dict[str, Any]],
    rows: list[dict[str, Any]],
    states: dict[int, model.State],
) -> tuple[dict[str, str], dict[str, int]]:
    """Return the outcome of each uuid that settles, and when it does."""
    histories: dict[int, list[model.Row]] = defaultdict(list)
    for row in rows:
        histories[row["recuid"]].append(
            model.Row(row["uid"], row["tstamp"], row["actiontype"], row["workspace"], row["usertype"] == "BE")
        )
    writes = [row for row in events if row["kind"] == "tool_write"]
    times: dict[int | None, list[int]] = defaultdict(list)
    by_run: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for row in writes:
        times[_target(row)].append(row["crdate"])
        by_run[row["run"]].append(row)
    expected, settled = {}, {}
    for uuid in {row["uuid"] for row in runs} - {""}:
        same = [row for row in runs if row["uuid"] == uuid]
        wrote = [row for one in same for row in by_run[one["uid"]]]
        if not wrote or any(one["status"] not in ENDED for one in same):
            continue
        at = max([row["crdate"] + WINDOW for row in wrote] + [one["finished_at"] for one in same])
        if at >= NOW:
            continue
        outcomes = {
            model.outcome(row["crdate"], histories[target], times[target], states[target], window=WINDOW, now=NOW)
            if (target := _target(row))
            else "unknown"
            for row in wrote
        }
        expected[uuid] = min(outcomes, key=model.PRECEDENCE.index)
        settled[uuid] = at
    return expected, settled
