"""
The evidence on a write: the record it names, that record's history, and which of its rows a machine made.

Nothing here knows of Airflow or SQL. All times are Unix seconds, UTC. The rules are those of nr_llm's ADR-185.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum
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


_ADD, _PUBLISH = int(Action.ADD), int(Action.PUBLISH)
ENDS = frozenset({Action.DELETE, Action.UNDELETE})
#: What only a record that is there takes, or what ends or restores it.
SIGNS_OF_LIFE = ENDS | {Action.ADD, Action.MODIFY, Action.MOVE}


class Target(NamedTuple):
    """The record that a write names."""

    table: str
    uid: int


class Write(NamedTuple):
    """
    A write of a run: a ``tool_write`` event. Writes sort by time, then uid.

    :ivar at: when the tool returned
    :ivar uid: of the event
    :ivar run: the uid of the run
    :ivar target: the record it names; None if its payload cannot be read
    """

    at: int
    uid: int
    run: int
    target: Target | None


class HistoryRow(NamedTuple):
    """
    A row of TYPO3's history; rows sort by time, then uid.

    :ivar by_editor: False if no editor made it: a visitor's request, or a user who is named as a machine
    """

    stamp: int
    uid: int
    action: int
    workspace: int
    by_editor: bool = True


@dataclass(frozen=True, slots=True)
class Record:
    """Whether a written record is there now, and if it is soft-deleted, the stamp that dates its end."""

    present: bool
    end: int | None = None


LIVE = Record(present=True)
MISSING = Record(present=False)


def record_of(*, deleted: int | None, tstamp: int | None, workspace: int | None) -> Record:
    """
    Return what a record's row says: gone is also one that is soft-deleted, or only a workspace version.

    ADR-185: the end of a soft-deleted record is dated by its own stamp, unless that is 0. A column that the
    table does not have is None.
    """
    if deleted:
        return Record(present=False, end=tstamp or None)
    return MISSING if (workspace or 0) > 0 else LIVE


def relevant_span(at: int, window: int) -> tuple[int, int]:
    """
    Return the first and last second whose events matter for a write.

    ADR-185: what a machine does after the close changes no answer.

    :param at: when the write was made
    :param window: how long a record is watched after a write, in seconds
    """
    return at - OWN_ROW_AGE, at + window


def without_drafts(rows: Iterable[HistoryRow]) -> list[HistoryRow]:
    """
    Return the rows of a record that are no drafts, in order.

    ADR-185: a row of a workspace is a draft, and no edit, once a PUBLISH of the record with a greater uid is
    there: since TYPO3 13.4.16 publishing moves the draft's old rows onto the live record. A PUBLISH itself is
    no draft.
    """
    rows = sorted(rows)
    # Plain numbers: this is asked of every row that a derivation reads, and a member of an enum takes twice as long.
    publishes = [row.uid for row in rows if row.action == _PUBLISH]
    if not publishes:
        return rows
    published = max(publishes)
    return [row for row in rows if row.action == _PUBLISH or row.workspace <= 0 or row.uid > published]


class Evidence:
    """
    What is known of one record: its history, the events of all runs that wrote it, and its state.

    Built once for all writes to the record; what it tells of one write then costs a few searches. Rows are in
    order of stamp and uid, which is also the order in which they happened: the events that own a stamp lie
    before the next stamp, and share its rows in order (ADR-185). So what happened up to a moment is a prefix
    of the rows, and what happened in a window is a slice.

    :param rows: the retained history, in any order
    :param events: the times of the events of all runs that wrote the record, in order
    :param record: its state
    """

    __slots__ = ("_adds", "_drafts", "_edits", "_ends", "_owners", "_signs", "_stamps", "record", "rows")

    def __init__(self, rows: Iterable[HistoryRow], events: Sequence[int], record: Record) -> None:
        retained = list(rows)
        self.rows = without_drafts(retained)
        self._drafts = set(retained).difference(self.rows) if len(self.rows) < len(retained) else set()
        self.record = record
        self._stamps = stamps = [row.stamp for row in self.rows]
        # An event owns the latest stamp at or before it, if that is at most an hour older.
        owners: dict[int, list[int]] = {}
        self._owners = owners
        for at in events:
            latest = bisect_right(stamps, at) - 1
            if latest >= 0 and at - stamps[latest] <= OWN_ROW_AGE:
                owners.setdefault(stamps[latest], []).append(at)
        self._adds: list[int] = []
        self._ends: list[int] = []
        self._signs: list[int] = []
        self._edits: list[int] = []
        for index, (stamp, _, action, _, by_editor) in enumerate(self.rows):
            if action in SIGNS_OF_LIFE:
                self._signs.append(index)
                if action == _ADD:
                    self._adds.append(index)
                elif action in ENDS:
                    self._ends.append(index)
            if by_editor and stamp not in owners:
                self._edits.append(index)

    def reaches_back_to(self, at: int) -> bool:
        """Whether a row stamped at ``at`` or before is retained: history is trimmed oldest first."""
        return bool(self._stamps) and self._stamps[0] <= at

    def needs_rows_before(self, first: int, at: int) -> bool:
        """
        Whether older rows than those from ``first`` on may tell more of a write at ``at``.

        All ends, publishes and drafts of the record are among the rows, whatever their age.
        """
        if not self.reaches_back_to(at):
            return True
        if self._ends:
            return self._stamps[self._ends[0]] < first
        return self.record.end is not None and self.record.end < first

    def rows_until(self, at: int, window: int) -> int:
        """Return how many rows happened at or before a write at ``at``: a machine's row happens at its event."""
        stamped = bisect_right(self._stamps, at)
        start, times = self._latest_before(stamped, at, window)
        if not times:
            return stamped
        until = bisect_right(times, at)
        left_over = max(stamped - start - len(times), 0)
        return start + min(stamped - start, left_over + until) if until else start

    def own_rows(self, at: int, window: int) -> list[HistoryRow]:
        """
        Return the rows that the events at ``at`` made.

        Events that own one stamp share its rows in order, the later row to the later event, what is left over
        to the first; with fewer rows than events, the later events made none.
        """
        stamped = bisect_right(self._stamps, at)
        start, times = self._latest_before(stamped, at, window)
        first, after = bisect_left(times, at), bisect_right(times, at)
        if first == after:
            return []
        left_over = max(stamped - start - len(times), 0)
        return self.rows[start + (left_over + first if first else 0) : start + min(stamped - start, left_over + after)]

    def own_drafts(self, at: int) -> list[HistoryRow]:
        """Return the rows of a draft that the write at ``at`` made and that was published since."""
        before = [row for row in self._drafts if at - OWN_ROW_AGE <= row.stamp <= at]
        stamp = max((row.stamp for row in before), default=0)
        return sorted(row for row in before if row.stamp == stamp)

    def _latest_before(self, stamped: int, at: int, window: int) -> tuple[int, list[int]]:
        """Return where the rows of the latest stamp begin, and the events that own it and matter for the write."""
        if not stamped:
            return 0, []
        stamp = self._stamps[stamped - 1]
        times = self._owners.get(stamp, [])
        first, last = relevant_span(at, window)
        return bisect_left(self._stamps, stamp), times[bisect_left(times, first) : bisect_right(times, last)]

    def rows_stamped_until(self, moment: int) -> int:
        """Return how many rows are stamped at or before a moment."""
        return bisect_right(self._stamps, moment)

    def is_deleted_after(self, until: int, at: int) -> bool:
        """
        Whether the record was deleted at a write, by the rows that happened up to then.

        ADR-185: a deleted record takes no ADD, MODIFY or MOVE, so after one the record was there again. Where
        no end is retained at all, a soft-deleted record's own stamp tells, unless such a row left it.

        :param until: how many rows happened at or before the write
        :param at: when the write was made
        """
        position = bisect_left(self._signs, until) - 1
        last = self.rows[self._signs[position]] if position >= 0 else None
        if self._ends:
            return last is not None and last.action == Action.DELETE
        end = self.record.end
        return end is not None and end <= at and (last is None or last.stamp < end)

    def has_add(self, begin: int, end: int) -> bool:
        """Whether an ADD is in a slice of the rows."""
        position = bisect_left(self._adds, begin)
        return position < len(self._adds) and self._adds[position] < end

    def last_end(self, begin: int, end: int | None = None) -> int | None:
        """Return the action of the last DELETE or UNDELETE in a slice of the rows, None if it holds none."""
        position = (len(self._ends) if end is None else bisect_left(self._ends, end)) - 1
        if position < 0 or self._ends[position] < begin:
            return None
        return self.rows[self._ends[position]].action

    def edits(self, after: int, close: int) -> list[HistoryRow]:
        """
        Return the rows after a write up to its close that an editor made, and no machine.

        :param after: when the write was made
        :param close: when its window closes
        """
        begin, end = bisect_right(self._stamps, after), bisect_right(self._stamps, close)
        found = [self.rows[i] for i in self._edits[bisect_left(self._edits, begin) : bisect_left(self._edits, end)]]
        return found + self._owned_after(begin, end, close)

    def has_edit(self, after: int, close: int) -> bool:
        """Whether there are :meth:`edits`, without a list of them."""
        begin, end = bisect_right(self._stamps, after), bisect_right(self._stamps, close)
        position = bisect_left(self._edits, begin)
        if position < len(self._edits) and self._edits[position] < end:
            return True
        return bool(self._owned_after(begin, end, close))

    def _owned_after(self, begin: int, end: int, close: int) -> list[HistoryRow]:
        """Return an editor's rows of the last stamp in a slice, if only events after the close own it."""
        if begin >= end:
            return []
        stamp = self._stamps[end - 1]
        times = self._owners.get(stamp)
        if times is None or times[0] <= close:
            return []
        return [row for row in self.rows[bisect_left(self._stamps, stamp) : end] if row.by_editor]
