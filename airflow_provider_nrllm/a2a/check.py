"""Violations of ADR-282, found by reading: each rule is one query, and says what it found."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import and_, case, exists, func, literal, or_, select
from sqlalchemy.engine import Connection
from sqlalchemy.sql import ColumnElement, Select

from airflow_provider_nrllm.a2a.rows import (
    ENDED,
    HAS_CONTENT,
    HAS_RESULT,
    HAS_RUN,
    HAS_TERMINAL_EVENT,
    event,
    holds_more_than_its_ceiling,
    run,
    task,
)
from airflow_provider_nrllm.a2a.rules import AGREES, Ceiling, Reason, State
from airflow_provider_nrllm.a2a.sealed import UnsealedValueError, is_sealed, sealed_values

#: The most uids a finding names.
NAMED: Final = 10


@dataclass(frozen=True, slots=True)
class Finding:
    """
    A broken rule.

    :param rule: what is wrong
    :param table: the table whose uids are named
    :param count: how many rows there are
    :param uids: the first of them, at most ten
    """

    rule: str
    table: str
    count: int
    uids: tuple[int, ...]

    def __str__(self) -> str:
        more = " ..." if self.count > len(self.uids) else ""
        return f"{self.rule}: {self.count} of {self.table}, uid {', '.join(map(str, self.uids))}{more}"


def find_violations(connection: Connection) -> list[Finding]:
    """Return all that is violated, in one snapshot; reads only."""
    found = [_counted(connection, rule, table.name, query) for rule, table, query in _rules(connection.dialect.name)]
    found += _contents(connection)
    return [finding for finding in found if finding.count]


def find_late(connection: Connection, before: int) -> Finding:
    """
    Return the tasks that ended before a time, in Unix seconds, and whose end is not in the journal yet.

    The journal is behind, which a projector mends: a warning, not a violation.
    """
    late = select(task.c.uid).where(task.c.state.in_(ENDED), task.c.tstamp < before, HAS_RUN, ~HAS_TERMINAL_EVENT)
    return _counted(connection, "a terminal revision without events", task.name, late)


def _rules(dialect: str) -> Iterator[tuple[str, Any, Select[Any]]]:
    # A result that a tightened ceiling took away again is gone by right, and says so.
    scrubbed = and_(task.c.reason == Reason.NOT_RETAINABLE.value, task.c.ceiling != Ceiling.FULL.value)
    tasks, events = select(task.c.uid), select(event.c.uid)
    yield (
        "completed without a stored result",
        task,
        tasks.where(task.c.state == State.COMPLETED.value, task.c.artifacts.is_(None), ~scrubbed),
    )
    agrees = or_(*(and_(task.c.state == state.value, run.c.status.in_(statuses)) for state, statuses in AGREES.items()))
    # Settled after a run that was completed without handing in its result.
    settled = and_(
        task.c.state == State.FAILED.value,
        task.c.reason == Reason.NOT_STORED.value,
        run.c.status == AGREES[State.COMPLETED][0],
    )
    joined = tasks.select_from(task.join(run, run.c.uid == task.c.run))
    yield "task and run disagree", task, joined.where(~agrees, ~settled)
    yield "task without run", task, tasks.where(~HAS_RUN)
    has_task = select(task.c.uid).where(task.c.uid == event.c.task).exists()
    yield "event without task", event, events.where(~has_task)
    yield (
        "a reason with a stored result",
        task,
        tasks.where(task.c.reason != "", HAS_RESULT),
    )
    yield (
        "a reason with a stored result in the journal",
        event,
        events.where(event.c.reason != "", event.c.payload.is_not(None)),
    )
    over = holds_more_than_its_ceiling(dialect)
    yield "content under a ceiling that keeps none", task, tasks.where(over, HAS_CONTENT)
    yield (
        "content in the journal under a ceiling that keeps none",
        event,
        events.where(event.c.payload.is_not(None), exists(select(task.c.uid).where(task.c.uid == event.c.task, over))),
    )
    yield from _journal_rules()


def _journal_rules() -> Iterator[tuple[str, Any, Select[Any]]]:
    status = event.c.kind == "status"
    statuses = func.sum(case((status, 1), else_=0))
    last = func.max(event.c.position)

    def revisions(broken: ColumnElement[bool]) -> Select[Any]:
        # A revision is named by its first event.
        grouped = select(func.min(event.c.uid).label("uid")).group_by(event.c.task, event.c.revision)
        return grouped.having(broken)

    gap = or_(func.min(event.c.position) != 0, last + 1 != func.count())
    yield "a revision with a gap", event, revisions(gap)
    yield "a revision without a status event", event, revisions(statuses == 0)
    yield "a revision with two status events", event, revisions(statuses > 1)
    status_at = func.max(case((status, event.c.position), else_=-1))
    yield "a revision whose status is not last", event, revisions(and_(statuses > 0, status_at != last))
    terminal = event.alias("terminal")
    ended_before = (
        select(terminal.c.uid)
        .where(
            terminal.c.task == event.c.task,
            terminal.c.revision < event.c.revision,
            terminal.c.kind == "status",
            terminal.c.state.in_(ENDED),
        )
        .exists()
    )
    yield "an event after a terminal state", event, select(event.c.uid).where(ended_before)
    told = select(task.c.uid).distinct().select_from(task.join(event, event.c.task == task.c.uid))
    of_its_end = and_(status, event.c.state.in_(ENDED))
    yield "task and journal ended differently", task, told.where(of_its_end, event.c.state != task.c.state)
    yield "a journal ahead of its task", task, told.where(event.c.revision > task.c.revision)


def _counted(connection: Connection, rule: str, table: str, query: Select[Any]) -> Finding:
    broken = query.subquery()
    count = connection.execute(select(func.count()).select_from(broken)).scalar() or 0
    uids: list[int] = []
    if count:
        uids = [row.uid for row in connection.execute(select(broken.c.uid).order_by(broken.c.uid).limit(NAMED))]
    return Finding(rule, table, int(count), tuple(uids))


def _contents(connection: Connection) -> Iterator[Finding]:
    """
    Yield what is not sealed, and the tasks whose end is in the journal without all of their artifacts.

    A value's beginning tells, so that of single values only that is read. Lists are read whole, few at a time.
    """
    start = func.substr(task.c.status_message, 1, 8).label("message")
    holds = or_(task.c.status_message.is_not(None), task.c.artifacts.is_not(None), task.c.history.is_not(None))
    tasks = select(task.c.uid, start, task.c.artifacts, task.c.history).where(holds)
    bad, untold = [], []
    for page in _pages(connection, tasks, task.c.uid, 20):
        artifacts = {row.uid: _artifacts_of(row) for row in page}
        bad += [uid for uid, count in artifacts.items() if count is None]
        told = _artifacts_told(connection, list(artifacts))
        untold += [uid for uid, count in artifacts.items() if count and count > told.get(uid, count)]
    yield Finding("an unsealed value", task.name, len(bad), tuple(bad[:NAMED]))
    yield Finding("an artifact missing from the journal", task.name, len(untold), tuple(untold[:NAMED]))
    payload = func.substr(event.c.payload, 1, 8).label("payload")
    events = select(event.c.uid, payload, literal(1)).where(event.c.payload.is_not(None))
    pages = _pages(connection, events, event.c.uid, 1000)
    bad = [row.uid for page in pages for row in page if not is_sealed(row.payload)]
    yield Finding("an unsealed value", event.name, len(bad), tuple(bad[:NAMED]))


def _artifacts_of(row: Any) -> int | None:
    """Return how many artifacts a task has; None where one of its values is not sealed."""
    try:
        artifacts = sealed_values(row.artifacts)
        sealed_values(row.history)
    except UnsealedValueError:
        return None
    return len(artifacts or ()) if row.message is None or is_sealed(row.message) else None


def _artifacts_told(connection: Connection, uids: Sequence[int]) -> dict[int, int]:
    """Return how many artifacts the journal has of each task whose end it tells."""
    artifacts = func.sum(case((event.c.kind == "artifact", 1), else_=0)).label("artifacts")
    query = select(event.c.task, artifacts).where(event.c.task.in_(uids), event.c.state.in_(ENDED))
    return {row.task: int(row.artifacts) for row in connection.execute(query.group_by(event.c.task))}


def _pages(connection: Connection, query: Select[Any], uid: ColumnElement[int], size: int) -> Iterator[Any]:
    after = 0
    while rows := connection.execute(query.where(uid > after).order_by(uid).limit(size)).fetchall():
        yield rows
        after = rows[-1].uid
