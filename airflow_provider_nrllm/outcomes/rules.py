"""
What became of what an AI run wrote: the rules, as functions of values.

Nothing here knows of Airflow or SQL. All times are Unix seconds, UTC; the moment of asking is an argument.
The rules are those of nr_llm's ADR-176 (outcomes and their two sources) and ADR-185 (observed outcomes).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum

from .evidence import (
    OWN_ROW_AGE,
    Action,
    Event,
    Evidence,
    HistoryRow,
    Write,
    machine_rows,
    stretch_of_account,
)


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

#: Up to this long after the close, in seconds, a record that is gone is taken to have been gone at the close.
PROMPTLY = 172800


@dataclass(frozen=True, slots=True)
class Run:
    """A row of the run table; ``finished_at`` is 0 until the run ends."""

    uid: int
    uuid: str
    status: str
    finished_at: int


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


@dataclass(frozen=True, slots=True)
class Aftermath:
    """
    What the evidence says of a record from one write to its close (ADR-185).

    :param own: the history rows that the write made itself
    :param later: the rows in the window without the machine's, and without a DELETE where it was deleted already
    :param deleted_already: the write itself was the deletion
    :param deleted: it was deleted in the window, whoever did it
    :param gone: it is gone, no DELETE or UNDELETE in the window says so, and nothing shows that it outlived it
    :param dated: a soft-deleted record's own stamp dates its end
    :param known: a row as old as the write is retained
    :param close: when the window closed
    """

    own: tuple[HistoryRow, ...]
    later: tuple[HistoryRow, ...]
    deleted_already: bool
    deleted: bool
    gone: bool
    dated: bool
    known: bool
    close: int


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
        dated=record.end is not None,
        known=history.reaches_back_to(event.at),
        close=close,
    )


def outcome_of_write(seen: Aftermath, *, now: int, edit: Edit = any_change) -> ObservedOutcome:
    """
    Return what became of one write's record (ADR-185).

    :param seen: what the evidence says of the record
    :param now: when it is asked
    :param edit: what counts as an edit
    """
    if seen.deleted:
        return ObservedOutcome.DISCARDED
    if seen.gone and (seen.dated or now <= seen.close + PROMPTLY):
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
