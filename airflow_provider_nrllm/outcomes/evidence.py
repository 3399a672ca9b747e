"""
What is known of a write: the record it names, that record's history, and whose rows in it are a machine's.

Nothing here knows of Airflow or SQL. All times are Unix seconds, UTC. The rules are those of nr_llm's ADR-185.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from itertools import groupby
from typing import NamedTuple

#: A write's own history rows are at most this much older than its event, in seconds: history carries the
#: start of the PHP process, events the time after the tool returned.
OWN_ROW_AGE = 3600


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


#: A stretch of time as its first and last second, both included.
Stretch = tuple[int, int]


def merged(stretches: Iterable[Stretch]) -> list[Stretch]:
    """Return the same seconds as the fewest stretches, in order."""
    result: list[Stretch] = []
    for first, last in sorted(stretches):
        if result and first <= result[-1][1] + 1:
            result[-1] = (result[-1][0], max(result[-1][1], last))
        else:
            result.append((first, last))
    return result


def lacking(needed: Iterable[Stretch], known: Iterable[Stretch]) -> list[Stretch]:
    """
    Return what is needed and not known, as the fewest stretches, in order.

    :param needed: merged
    :param known: merged
    """
    known = list(known)
    result: list[Stretch] = []
    for first, last in needed:
        for known_first, known_last in known:
            if known_last < first or known_first > last:
                continue
            if first < known_first:
                result.append((first, known_first - 1))
            first = known_last + 1
        if first <= last:
            result.append((first, last))
    return result
