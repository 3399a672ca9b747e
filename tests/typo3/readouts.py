"""Outcomes, calls and runs laid into a site by hand, for the tests of the readout."""

from __future__ import annotations

import json
from typing import Any

from sqlalchemy import insert
from sqlalchemy.engine import Connection, Engine

from airflow_provider_nrllm.readout.counts import Group, Readout
from airflow_provider_nrllm.readout.groups import label_text
from tests.typo3 import tables as tables

#: 2026-03-01T00:00:00Z, and the length of a day.
MARCH = 1772323200
DAY = 86400

QUOTES = 'it\'s "quoted" \\ `model` | 100 %s'
SCRIPT = "<script>alert(1)</script>"
ROCKET, CRAB = "model \N{ROCKET}", "model \N{CRAB}"
LONG = "m" * 128
FORMULA = "=1+1"


def outcome(engine: Engine | Connection, correlation_id: str, value: str, at: int = MARCH) -> None:
    """Lay one outcome row into the site."""
    _add(engine, tables.outcome, correlation_id=correlation_id, outcome=value, crdate=at, tstamp=at)


def calls(engine: Engine | Connection, correlation_id: str, *served_models: str, **columns: Any) -> None:
    """Lay a call for each of the served models into the site."""
    for served_model in served_models:
        row = {"served_model": served_model, "success": 1, "crdate": MARCH, **columns}
        _add(engine, tables.telemetry, correlation_id=correlation_id, **row)


def run(engine: Engine | Connection, uuid: str, at: int, *, uid: int | None = None, ended: int | None = None) -> None:
    """
    Lay a run into the site.

    :param ended: when it ended, without it at once; 0: it goes on
    """
    finished = at if ended is None else ended
    status = "completed" if finished else "running"
    row = {"uuid": uuid, "status": status, "be_user": 7, "crdate": at, "finished_at": finished, "tstamp": at}
    _add(engine, tables.run, **row, **({} if uid is None else {"uid": uid}))


def write(
    engine: Engine | Connection, run_uid: int, at: int, tool: str = "edit_text", table: str = "tt_content", uid: int = 1
) -> None:
    """Lay a write of a run into the site."""
    told = {"kind": "tool_write", "toolName": tool, "writeTargetTable": table, "writeTargetUid": uid}
    payload(engine, run_uid, at, json.dumps(told))


def payload(engine: Engine | Connection, run_uid: int, at: int, text: str, kind: str = "tool_write") -> None:
    """Lay an event with any payload into the site."""
    _add(engine, tables.event, run=run_uid, kind=kind, payload=text, crdate=at)


def _add(target: Engine | Connection, table: Any, **row: Any) -> None:
    if isinstance(target, Connection):
        target.execute(insert(table).values(**row))
        return
    with target.begin() as connection:
        connection.execute(insert(table).values(**row))


def counts(readout: Readout) -> dict[str, tuple[tuple[int, int], tuple[int, int, int, int]]]:
    """Return the counts of each group by what it is called: (helpful, not) and (unchanged, edited, discarded, ?)."""
    return {
        label_text(group.key, readout.grouping): (
            tuple(group.explicit.counts.values()),
            tuple(group.observed.counts.values()),
        )
        for group in readout.groups
    }


def group(readout: Readout, name: str) -> Group:
    """Return the group of that name."""
    return next(group for group in readout.groups if label_text(group.key, readout.grouping) == name)
