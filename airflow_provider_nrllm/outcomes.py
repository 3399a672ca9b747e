"""
What became of what an AI run wrote: the rules, as functions of values.

Nothing here knows of Airflow or SQL. All times are Unix seconds, UTC; the moment of asking is an argument.
The rules are those of nr_llm's ADR-176 (outcomes and their two sources) and ADR-185 (observed outcomes).
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from itertools import groupby
from typing import NamedTuple


class ExplicitOutcome(StrEnum):
    """A person's rating of a result (ADR-176). A new rating replaces the old one."""

    HELPFUL = "helpful"
    NOT_HELPFUL = "not_helpful"


class ObservedOutcome(StrEnum):
    """What the history shows of a run's records (ADR-176). It is final."""

    ACCEPTED_UNCHANGED = "accepted_unchanged"
    EDITED = "edited"
    DISCARDED = "discarded"
    UNKNOWN = "unknown"


#: One outcome a run: the first of these that any of its writes has (ADR-185).
PRECEDENCE = (
    ObservedOutcome.DISCARDED,
    ObservedOutcome.EDITED,
    ObservedOutcome.UNKNOWN,
    ObservedOutcome.ACCEPTED_UNCHANGED,
)

#: The states of a run that has ended; it never writes again.
ENDED = frozenset({"completed", "failed", "cancelled"})

#: A write's own history rows are at most this much older than its event, in seconds: history carries the
#: start of the PHP process, events the time after the tool returned.
OWN_ROW_AGE = 3600

#: Up to this long after the close, in seconds, a record that is gone is taken to have been gone at the close.
PROMPTLY = 172800


class Action(IntEnum):
    """The actiontypes of TYPO3's history; any other is just a row."""

    ADD = 1
    MODIFY = 2
    MOVE = 3
    DELETE = 4
    UNDELETE = 5
    STAGECHANGE = 6
    PUBLISH = 7


class Target(NamedTuple):
    """The record that a write names."""

    table: str
    uid: int


class Event(NamedTuple):
    """When a run wrote: a ``tool_write`` event. Events are in order of time, then uid."""

    at: int
    uid: int


@dataclass(frozen=True, slots=True)
class Write:
    """One write of a run; ``target`` is None where its payload cannot be read."""

    event: Event
    target: Target | None


@dataclass(frozen=True, slots=True)
class Run:
    """A row of the run table; ``finished_at`` is 0 until the run ends."""

    uid: int
    uuid: str
    status: str
    finished_at: int


class HistoryRow(NamedTuple):
    """A row of TYPO3's history: its stamp comes first, so that rows sort by time, then uid."""

    stamp: int
    uid: int
    action: int
    workspace: int


@dataclass(frozen=True, slots=True)
class Record:
    """Whether a written record is there now, and if it is soft-deleted, the stamp that dates its end."""

    present: bool
    end: int | None = None


LIVE = Record(present=True)
MISSING = Record(present=False)

_TABLE_NAME = re.compile(r"[A-Za-z0-9_]{1,64}")
_GREATEST_UID = 2147483647


def target_of(payload: object) -> Target | None:
    """
    Return the record that the payload of a ``tool_write`` event names, None where it cannot be read.

    ADR-185: readable is a JSON object whose ``writeTargetTable`` is a table name as a whole and whose
    ``writeTargetUid`` is a JSON integer from 1 to 2147483647.
    """
    if not isinstance(payload, str | bytes):
        return None
    try:
        value = json.loads(payload)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict):
        return None
    table, uid = value.get("writeTargetTable"), value.get("writeTargetUid")
    if not isinstance(table, str) or not _TABLE_NAME.fullmatch(table):
        return None
    if not isinstance(uid, int) or isinstance(uid, bool) or not 1 <= uid <= _GREATEST_UID:
        return None
    return Target(table, uid)


def record_of(*, deleted: int | None, tstamp: int | None, workspace: int | None) -> Record:
    """
    Return what a record's row says: gone is also one that is soft-deleted, or only a workspace version.

    ADR-185: the end of a soft-deleted record is dated by its own stamp, unless that is 0. A column that the
    table does not have is None.
    """
    if deleted:
        return Record(present=False, end=tstamp or None)
    return MISSING if (workspace or 0) > 0 else LIVE


def settled_at(runs: Iterable[Run], writes: Iterable[Write], window: int) -> int | None:
    """
    Return when the runs that share a uuid settle; None while one of them goes on, or where nothing was written.

    ADR-185: at the latest of each write's close and the time each run ended.

    :param window: how long a record is watched after a write, in seconds
    """
    runs = list(runs)
    closes = [write.event.at + window for write in writes]
    if not closes or not all(run.status in ENDED for run in runs):
        return None
    return max([*closes, *(run.finished_at for run in runs)])


def stretch_of_account(event: Event, window: int) -> tuple[int, int]:
    """
    Return the first and the last second whose events are of account for a write.

    ADR-185: what happens after the close changes no answer.
    """
    return event.at - OWN_ROW_AGE, event.at + window


class History:
    """
    The retained history of one record, drafts left out.

    ADR-185: a row of a workspace is a draft, and no edit, once a later PUBLISH of the record is there: since
    TYPO3 13.4.16 publishing moves the draft's old rows onto the live record. A PUBLISH itself is no draft.
    """

    def __init__(self, rows: Iterable[HistoryRow]) -> None:
        rows = list(rows)
        published = max((row.uid for row in rows if row.action == Action.PUBLISH), default=0)
        self.rows = sorted(
            row for row in rows if row.action == Action.PUBLISH or row.workspace <= 0 or row.uid > published
        )
        self.ends = [row for row in self.rows if row.action in (Action.DELETE, Action.UNDELETE)]

    def between(self, first: int, last: int) -> Sequence[HistoryRow]:
        """Return the rows stamped from ``first`` to ``last``, both included."""
        return self.rows[bisect_left(self.rows, (first,)) : bisect_left(self.rows, (last + 1,))]

    def reaches_back_to(self, at: int) -> bool:
        """Whether a row stamped at ``at`` or before is retained: history is trimmed oldest first."""
        return bool(self.rows) and self.rows[0].stamp <= at


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known of one record: its history, the events of all runs that wrote it in order, its state."""

    history: History
    events: Sequence[Event]
    record: Record


def machine_rows(rows: Sequence[HistoryRow], events: Sequence[Event]) -> dict[int, int]:
    """
    Return which history rows the events made: the row's uid, and the time of the event that made it.

    ADR-185: an event's own rows are those with the latest stamp at or before it, at most an hour older.
    Events that own one stamp share its rows in order, the later row to the later event, what is left over to
    the first; with fewer rows than events, the later events made none.

    :param rows: history of the record, in order of stamp and uid, from an hour before the first event
    :param events: the events of account, in order
    """
    by_stamp = {stamp: list(same) for stamp, same in groupby(rows, key=lambda row: row.stamp)}
    stamps = list(by_stamp)
    owners: dict[int, list[int]] = {}
    for event in events:
        latest = bisect_right(stamps, event.at) - 1
        if latest >= 0 and event.at - stamps[latest] <= OWN_ROW_AGE:
            owners.setdefault(stamps[latest], []).append(event.at)
    made = {}
    for stamp, times in owners.items():
        left_over = max(len(by_stamp[stamp]) - len(times), 0)
        for position, row in enumerate(by_stamp[stamp]):
            made[row.uid] = times[max(position - left_over, 0)]
    return made


@dataclass(frozen=True, slots=True)
class Aftermath:
    """
    What the evidence says of a record from one write to its close (ADR-185).

    :param own: the history rows that the write made itself
    :param later: the rows in the window without the machine's, and without a DELETE where it was deleted already
    :param deleted_already: the write itself was the deletion
    :param deleted: it was deleted in the window, whoever did it
    :param gone: it is gone, no DELETE or UNDELETE in the window says so, and nothing shows that it outlived it
    :param known: a row as old as the write is retained
    """

    own: tuple[HistoryRow, ...]
    later: tuple[HistoryRow, ...]
    deleted_already: bool
    deleted: bool
    gone: bool
    known: bool


#: Whether what happened after a write is an edit: EDITED, UNKNOWN where it cannot be told, or None.
Edit = Callable[[Aftermath], ObservedOutcome | None]


def any_change(seen: Aftermath) -> ObservedOutcome | None:
    """Return EDITED for a later row, whatever its action (ADR-185)."""
    return ObservedOutcome.EDITED if seen.later else None


def aftermath(event: Event, evidence: Evidence, window: int) -> Aftermath:
    """
    Return what the evidence says of the record from one write to its close (ADR-185).

    :param event: the write
    :param evidence: of the record it names
    :param window: how long the record is watched after the write, in seconds
    """
    history, record = evidence.history, evidence.record
    close = event.at + window
    first, last = stretch_of_account(event, window)
    of_account = evidence.events[bisect_left(evidence.events, (first,)) : bisect_left(evidence.events, (last + 1,))]
    near = history.between(first - OWN_ROW_AGE, close)
    made = machine_rows(near, of_account)

    # A machine's row happened at its event, any other at its own stamp.
    ends = sorted((made.get(row.uid, row.stamp), row.uid, row.action) for row in history.ends)
    ends_before = [action for at, _, action in ends if at <= event.at]
    ends_in_window = [action for at, _, action in ends if event.at < at <= close]
    ended_later = any(at > close for at, _, _ in ends)

    # The write itself was the deletion: a later DELETE is only the recycler, a missing record no surprise.
    if history.ends:
        deleted_already = ends_before[-1:] == [Action.DELETE]
    else:
        deleted_already = record.end is not None and record.end <= event.at

    outlived = ended_later or (record.end is not None and record.end > close)
    later = [row for row in near if row.stamp > event.at and row.uid not in made]
    return Aftermath(
        own=tuple(row for row in near if made.get(row.uid) == event.at),
        later=tuple(row for row in later if not (deleted_already and row.action == Action.DELETE)),
        deleted_already=deleted_already,
        deleted=not deleted_already and ends_in_window[-1:] == [Action.DELETE],
        gone=not record.present and not deleted_already and not ends_in_window and not outlived,
        known=history.reaches_back_to(event.at),
    )


def outcome_of_write(
    event: Event, evidence: Evidence, *, window: int, now: int, edit: Edit = any_change
) -> ObservedOutcome:
    """
    Return what became of one write's record (ADR-185).

    :param event: the write
    :param evidence: of the record it names
    :param window: how long the record is watched after the write, in seconds
    :param now: when it is asked
    :param edit: what counts as an edit
    """
    seen = aftermath(event, evidence, window)
    if seen.deleted:
        return ObservedOutcome.DISCARDED
    if seen.gone and (evidence.record.end is not None or now <= event.at + window + PROMPTLY):
        return ObservedOutcome.DISCARDED
    edited = edit(seen)
    if edited is not None:
        return edited
    if seen.gone or not seen.known:
        return ObservedOutcome.UNKNOWN
    return ObservedOutcome.ACCEPTED_UNCHANGED


def outcome_of_run(outcomes: Iterable[ObservedOutcome]) -> ObservedOutcome:
    """Return the one outcome of a run by those of its writes, of which there is at least one (ADR-185)."""
    return min(outcomes, key=PRECEDENCE.index)
