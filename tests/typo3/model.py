"""
The rules of one write as they are worded, slowly: a second opinion for tests, which shares no code with the package.

Each write looks at all rows and all events anew, and each sentence of the rules is a line.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

HOUR = 3600
TWO_DAYS = 172800
ADD, MODIFY, MOVE, DELETE, UNDELETE, STAGECHANGE, PUBLISH = range(1, 8)
PRECEDENCE = ("discarded", "edited", "unknown", "accepted_unchanged")


class Row(NamedTuple):
    """A history row of the record; ``by_editor`` if its usertype is ``BE``."""

    uid: int
    stamp: int
    action: int
    workspace: int = 0
    by_editor: bool = True


class State(NamedTuple):
    """The record now: whether it is there, whether it is soft-deleted, and its stamp."""

    there: bool = True
    soft_deleted: bool = False
    tstamp: int | None = None


def outcome(at: int, rows: Sequence[Row], events: Sequence[int], record: State, *, window: int, now: int) -> str:
    """
    Return the outcome of a write.

    :param at: when it was made
    :param rows: all history rows of its record
    :param events: the times of all writes of any run to the record, the write's own among them
    :param record: its state now
    :param window: how long it is watched, in seconds
    :param now: when it is asked
    """
    close = at + window
    # 1. Drafts are not edits.
    rows = [
        row
        for row in rows
        if row.action == PUBLISH
        or not row.workspace > 0
        or not any(other.action == PUBLISH and other.uid > row.uid for other in rows)
    ]
    # 2. Machine rows.
    owners: dict[int, list[int]] = {}
    for event in sorted(event for event in events if at - HOUR <= event <= close):
        before = [row.stamp for row in rows if row.stamp <= event]
        if before and event - max(before) <= HOUR:
            owners.setdefault(max(before), []).append(event)
    # 3. When a row happened.
    happened = {row.uid: row.stamp for row in rows}
    for stamp, times in owners.items():
        same = sorted(row.uid for row in rows if row.stamp == stamp)
        if len(same) >= len(times):
            for uid, time in zip(reversed(same), reversed(times), strict=False):
                happened[uid] = time
            for uid in same[: len(same) - len(times)]:
                happened[uid] = times[0]
        else:
            for uid, time in zip(same, times, strict=False):
                happened[uid] = time
    machine = {row.uid for row in rows if row.stamp in owners}

    def order(row: Row) -> tuple[int, int]:
        return happened[row.uid], row.uid

    rows = sorted(rows, key=order)
    # 4. In the window, and later rows.
    in_window = [row for row in rows if at < happened[row.uid] <= close]
    later = [row for row in in_window if row.uid not in machine and row.by_editor]
    # 5. Deleted already at the write?
    ends = [row for row in rows if row.action in (DELETE, UNDELETE)]
    until = [row for row in rows if happened[row.uid] <= at]
    changes = [row for row in until if row.action in (ADD, MODIFY, MOVE)]
    if ends:
        ends_until = [row for row in until if row.action in (DELETE, UNDELETE)]
        deleted_already = (
            bool(ends_until)
            and ends_until[-1].action == DELETE
            and not any(order(change) > order(ends_until[-1]) for change in changes)
        )
    else:
        deleted_already = (
            record.soft_deleted
            and bool(record.tstamp)
            and record.tstamp <= at
            and not any(change.stamp >= record.tstamp for change in changes)
        )
    ends_in_window = [row for row in in_window if row.action in (DELETE, UNDELETE)]
    outlived = any(happened[row.uid] > close for row in ends) or (
        record.soft_deleted and bool(record.tstamp) and record.tstamp > close
    )
    dated = record.soft_deleted and bool(record.tstamp)
    gone = not deleted_already and not ends_in_window and not record.there and not outlived
    # The table.
    if not deleted_already and any(row.action == ADD for row in in_window):
        return "discarded"
    if not deleted_already and ends_in_window and ends_in_window[-1].action == DELETE:
        return "discarded"
    if gone and (dated or now <= close + TWO_DAYS):
        return "discarded"
    if any(not (deleted_already and row.action == DELETE) for row in later):
        return "edited"
    if gone:
        return "unknown"
    if not rows or min(row.stamp for row in rows) > at:
        return "unknown"
    return "accepted_unchanged"
