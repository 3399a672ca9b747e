"""
The SQL of the derivation, built from :mod:`airflow_provider_nrllm.database.tables`.

Each function returns one statement for a whole page. Lists of integers are written into the statement, since
engines limit the number of parameters; anything else is a parameter.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import (
    and_,
    bindparam,
    case,
    cast,
    exists,
    func,
    literal,
    null,
    or_,
    select,
    true,
    union_all,
)
from sqlalchemy.sql import ColumnElement, Select
from sqlalchemy.sql.selectable import CompoundSelect, FromClause
from sqlalchemy.types import UserDefinedType

from airflow_provider_nrllm.database.conditions import any_of, same_id, value_among, zero_if_null
from airflow_provider_nrllm.database.tables import (
    WholeNumber,
    backend_user,
    event,
    history,
    history_with_users,
    outcome,
    record_table,
    run,
)
from airflow_provider_nrllm.outcomes.evidence import Action, Target
from airflow_provider_nrllm.outcomes.lookup import CORRELATION_INDEX, Lookup
from airflow_provider_nrllm.outcomes.pages import PageKey
from airflow_provider_nrllm.outcomes.rules import ENDED, OBSERVED
from airflow_provider_nrllm.outcomes.spans import Span

#: The most selects that SQLite takes in one UNION.
TABLES_AT_ONCE = 500


class _ListOfNumbers(UserDefinedType[Any]):
    """Numbers that are written into a statement as one literal, when it is sent: it is compiled once for all lists."""

    cache_ok = True

    def literal_processor(self, dialect: Any) -> Any:  # noqa: ARG002
        return lambda numbers: f"({', '.join(map(str, numbers))})"


def among(column: ColumnElement[Any], numbers: Iterable[int]) -> ColumnElement[bool]:
    """
    Whether a column is one of the numbers.

    :param numbers: at least one
    """
    listed = sorted({int(number) for number in numbers})
    return column.op("IN", is_comparison=True)(bindparam(None, listed, type_=_ListOfNumbers(), literal_execute=True))


def later_than(time: ColumnElement[Any], uid: ColumnElement[Any], key: PageKey) -> ColumnElement[bool]:
    """Whether a row comes after the page before."""
    return and_(time >= key[0], or_(time > key[0], uid > key[1]))


def is_write(dialect: str, events: FromClause = event) -> ColumnElement[bool]:
    """Whether an event is a write of its run, by its kind to the letter."""
    return value_among(dialect, events.c.kind, ["tool_write"])


def unanswered(dialect: str, lookup: Lookup, *, answered_instead: bool = False) -> ColumnElement[bool]:
    """
    ADR-176: an observed outcome of a value this version knows is final; ADR-185: no uuid, no answer.

    :param answered_instead: the runs that have an outcome
    """
    answered = select(outcome.c.uid).where(
        same_id(dialect, outcome.c.correlation_id, run.c.uuid, lookup.collations),
        value_among(dialect, outcome.c.outcome, OBSERVED),
    )
    if lookup.hinted:
        answered = answered.with_hint(outcome, f"FORCE INDEX ({CORRELATION_INDEX})", "mysql")
    # Not the bare uuid: MariaDB would begin with the index on it, which finds every run there is.
    is_answered = exists(answered)
    return and_(func.coalesce(run.c.uuid, "") != "", is_answered if answered_instead else ~is_answered)


def writes_after(dialect: str, after: PageKey, limit: int, *, before: int, lookup: Lookup) -> Select[Any]:
    """
    Writes of unanswered runs that have ended, by time and uid: a row of ``at, uid, uuid`` for each, in that order.

    A run that goes on has no place among them, however long it waits: it settles by its last write, or by its end.

    :param after: where the page begins
    :param before: the write is earlier than this
    :param lookup: how outcomes are to be found
    """
    # SQLite, too, would begin with the runs, by an index that it cannot use for what is no column.
    status = func.coalesce(run.c.status, "") if dialect == "sqlite" else run.c.status
    return (
        select(event.c.crdate, event.c.uid, run.c.uuid)
        # MariaDB would begin with the runs, and sort all that was ever written for each page.
        .prefix_with("STRAIGHT_JOIN", dialect="mysql")
        .select_from(event.join(run, run.c.uid == event.c.run))
        .where(
            is_write(dialect),
            later_than(event.c.crdate, event.c.uid, after),
            event.c.crdate < before,
            value_among(dialect, status, sorted(ENDED)),
            unanswered(dialect, lookup),
        )
        .order_by(event.c.crdate, event.c.uid)
        .limit(limit)
    )


def late_ends(
    dialect: str, after: PageKey, limit: int, *, before: int, written_before: int, lookup: Lookup
) -> Select[Any]:
    """
    Unanswered runs that ended after all their writes had closed, by that time: a row of ``at, uid, uuid`` for each.

    A run without a write may be among them.

    :param after: where the page begins
    :param before: the end of the partition
    :param written_before: the last write of all runs with the uuid is earlier than this
    :param lookup: how outcomes are to be found
    """
    same = run.alias("same")
    written_later = exists(event.c.uid).where(
        same_id(dialect, same.c.uuid, run.c.uuid),
        event.c.run == same.c.uid,
        is_write(dialect),
        event.c.crdate >= written_before,
    )
    return (
        select(run.c.finished_at, run.c.uid, run.c.uuid)
        .where(
            later_than(run.c.finished_at, run.c.uid, after),
            run.c.finished_at < before,
            unanswered(dialect, lookup),
            ~written_later,
        )
        .order_by(run.c.finished_at, run.c.uid)
        .limit(limit)
    )


def settled_without_outcome(
    dialect: str, before: int, window: int, lookup: Lookup, *, made_from: int = 0
) -> Select[Any]:
    """
    How many runs settled before a partition and have no outcome, and when the first of them did: one row.

    A run counts by its own row and its own writes: of several with one uuid each counts for itself.

    :param before: the first second of the partition
    :param window: how long a record is watched after a write, in seconds
    :param lookup: how outcomes are to be found
    :param made_from: only the runs made since this second
    """
    last_write = (
        select(func.max(event.c.crdate)).where(event.c.run == run.c.uid, is_write(dialect)).correlate(run)
    ).scalar_subquery()
    runs = (
        select(run.c.finished_at.label("ended"), (last_write + window).label("closed"))
        .where(
            run.c.crdate >= made_from,
            # It writes nothing before it is made.
            run.c.crdate < before - window,
            run.c.finished_at.between(1, before - 1),
            value_among(dialect, run.c.status, sorted(ENDED)),
            unanswered(dialect, lookup),
        )
        .cte("runs")
    )
    settled = case((runs.c.ended > runs.c.closed, runs.c.ended), else_=runs.c.closed)
    figures: list[ColumnElement[Any]] = [func.count(), func.min(settled)]
    return select(*figures).where(runs.c.closed < before)


def runs_of(dialect: str, uuids: Collection[str]) -> Select[Any]:
    """All runs with one of the uuids, in the order of :class:`~airflow_provider_nrllm.outcomes.rules.Run`."""
    finished_at = zero_if_null(dialect, run.c.finished_at)
    return select(run.c.uid, run.c.uuid, run.c.status, finished_at, run.c.crdate).where(run.c.uuid.in_(sorted(uuids)))


def writes_of(dialect: str, runs: Iterable[int]) -> Select[Any]:
    """All writes of the runs; a time of NULL is 0, which it is by TYPO3's own default."""
    return select(event.c.run, zero_if_null(dialect, event.c.crdate), event.c.uid, event.c.payload).where(
        is_write(dialect), among(event.c.run, runs)
    )


def writes_in(dialect: str, spans: Sequence[Span], unanswered_by: Lookup | None = None) -> Select[Any]:
    """
    All writes of any run in the spans: a row of ``at, payload`` for each.

    :param unanswered_by: how outcomes are to be found; only the writes of runs that have none yet
    """
    query = select(event.c.crdate, event.c.payload).where(
        is_write(dialect), any_of([event.c.crdate.between(first, last) for first, last in spans], event.c.uid)
    )
    if unanswered_by is None:
        return query
    return (
        query.prefix_with("STRAIGHT_JOIN", dialect="mysql")
        .select_from(event.join(run, run.c.uid == event.c.run))
        .where(unanswered(dialect, unanswered_by))
    )


def history_of(
    dialect: str, targets: Iterable[Target], near: Span | None = None, machine_users: Sequence[str] = ()
) -> Select[Any]:
    """
    The history of the records: who changed what is not read, nor what the values were.

    A row of ``table, uid of the record``, and then as
    :class:`~airflow_provider_nrllm.outcomes.evidence.HistoryRow` has them. A stamp of NULL is 0, a workspace of
    NULL is the live one, a usertype of NULL is ``BE``: TYPO3's own defaults.

    :param near: of the other rows only those in this span; but all that delete, undelete or publish the
        record, and all drafts
    :param machine_users: the names of TYPO3 users whose rows are a machine's
    """
    rows = history_with_users if machine_users else history
    stamp, workspace = zero_if_null(dialect, rows.c.tstamp), func.coalesce(rows.c.workspace, 0)
    of_targets = any_of(_records_by_fewest(rows, uids_by_table(targets)), rows.c.uid)
    # The history also records what visitors' requests change.
    is_editor = value_among(dialect, func.coalesce(rows.c.usertype, "BE"), ["BE"])
    if machine_users:
        machines = select(backend_user.c.uid).where(value_among(dialect, backend_user.c.username, machine_users))
        is_editor = and_(is_editor, func.coalesce(rows.c.userid, 0).not_in(machines))
    by_editor = case((is_editor, 1), else_=0)
    return select(rows.c.tablename, rows.c.recuid, stamp, rows.c.uid, rows.c.actiontype, workspace, by_editor).where(
        of_targets,
        or_(
            rows.c.tstamp.between(*near),
            rows.c.actiontype.in_([Action.DELETE, Action.UNDELETE, Action.PUBLISH]),
            workspace > 0,
        )
        if near
        else true(),
    )


def _records_by_fewest(rows: FromClause, uids: Mapping[str, Collection[int]]) -> list[ColumnElement[bool]]:
    """
    Return a condition for the records of each table, or for those of each uid where that makes fewer.

    Each takes the engine and SQLAlchemy as long as a row does, and a model may make up any number of tables.
    """
    tables: dict[int, list[str]] = {}
    for table, of_table in uids.items():
        for uid in of_table:
            tables.setdefault(uid, []).append(table)
    if len(tables) < len(uids):
        return [and_(rows.c.recuid == uid, rows.c.tablename.in_(sorted(names))) for uid, names in tables.items()]
    return [and_(rows.c.tablename == table, among(rows.c.recuid, of_table)) for table, of_table in uids.items()]


def machine_users_found(dialect: str, machine_users: Sequence[str]) -> Select[Any]:
    """Count the backend users that have one of the names."""
    return select(func.count(backend_user.c.uid.distinct())).where(
        value_among(dialect, backend_user.c.username, machine_users)
    )


def records(uids: Mapping[str, Collection[int]], columns: Mapping[str, frozenset[str]]) -> CompoundSelect[Any]:
    """
    The rows of written tables that tell whether a record is there: ``table, uid, deleted, tstamp, workspace``.

    :param uids: of the records, by table; at most :data:`TABLES_AT_ONCE`
    :param columns: the columns each of these tables has, ``uid`` among them
    """
    selects = []
    for name in uids:
        record = record_table(name, columns[name])
        none = cast(null(), WholeNumber())
        # TYPO3 calls the time of the last change either way.
        changed = record.c.get("tstamp", record.c.get("updatedon", none))
        state = [record.c.get("deleted", none), changed, record.c.get("t3ver_wsid", none)]
        selects.append(select(literal(name), record.c.uid, *state).where(among(record.c.uid, uids[name])))
    return union_all(*selects)


def uids_by_table(targets: Iterable[Target]) -> dict[str, set[int]]:
    """Return the uids of the records by table."""
    uids: dict[str, set[int]] = {}
    for table, uid in targets:
        uids.setdefault(table, set()).add(uid)
    return uids
