"""Single runs laid into a site, for tests that need one at an exact age."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Table, func, insert, select
from sqlalchemy.engine import Connection, Engine

from tests.typo3.tables import event, history, metadata, outcome, run

DAY = 86400


def add_run(
    engine: Engine,
    uuid: str,
    *,
    made: int,
    writes: Sequence[int] = (),
    finished: int | None = None,
    status: str = "completed",
    answered: str | None = None,
    table: str = "tt_content",
) -> None:
    """
    Add a run with a ``tool_write`` for each time, and the record and history row of each.

    :param finished: when it ended; None: with its last write, or when it was made
    :param answered: an outcome to record for it
    :param table: the table that its payloads name, which need not be there; the record is of ``tt_content``
    """
    ended = finished if finished is not None else max([made, *writes])
    with engine.begin() as connection:
        uid, record = _next(connection, run), _next(connection, metadata.tables["tt_content"])
        row = {"uid": uid, "uuid": uuid, "status": status, "crdate": made}
        connection.execute(insert(run).values(**row, finished_at=ended if status == "completed" else 0))
        connection.execute(insert(event).values(_event(connection, uid, "llm", made, {})))
        for target, at in enumerate(writes, start=record):
            named = {"writeTargetTable": table, "writeTargetUid": target}
            connection.execute(insert(event).values(_event(connection, uid, "tool_write", at, named)))
            connection.execute(insert(metadata.tables["tt_content"]).values(uid=target, tstamp=at))
            connection.execute(
                insert(history).values(
                    uid=_next(connection, history), tstamp=at, actiontype=1, tablename="tt_content", recuid=target
                )
            )
        if answered:
            connection.execute(insert(outcome).values(correlation_id=uuid, outcome=answered, crdate=ended))


def add_edit(engine: Engine, record: int, at: int) -> None:
    """Add a person's edit of a record of ``tt_content``."""
    with engine.begin() as connection:
        uid = _next(connection, history)
        row = {"uid": uid, "tstamp": at, "actiontype": 2, "tablename": "tt_content", "recuid": record}
        connection.execute(insert(history).values(row))


def purge_runs(engine: Engine, *, made_before: int) -> int:
    """Delete as ``nrllm:privacy:purge`` does: ended runs by when they were made, their events first."""
    ended = run.c.status.in_(["completed", "failed", "cancelled"])
    with engine.begin() as connection:
        old = list(connection.execute(select(run.c.uid).where(ended, run.c.crdate < made_before)).scalars())
        connection.execute(event.delete().where(event.c.run.in_(old)))
        return connection.execute(run.delete().where(run.c.uid.in_(old))).rowcount


def _event(connection: Connection, run_uid: int, kind: str, at: int, payload: dict[str, Any]) -> dict[str, Any]:
    return {
        "uid": _next(connection, event),
        "run": run_uid,
        "kind": kind,
        "payload": json.dumps({"kind": kind, **payload}),
        "crdate": at,
    }


def _next(connection: Connection, table: Table) -> int:
    return int(connection.execute(select(func.max(table.c.uid))).scalar() or 0) + 1
