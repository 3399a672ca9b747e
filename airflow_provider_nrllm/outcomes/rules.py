"""
The outcome of what an AI run wrote: the rules, as functions of values.

Nothing here knows of Airflow or SQL. All times are Unix seconds, UTC; the moment of asking is an argument.
The rules are those of nr_llm's ADR-176 (outcomes and their two sources) and ADR-185 (observed outcomes).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from .evidence import Action, Evidence, HistoryRow, Write


class ExplicitOutcome(StrEnum):
    """A person's rating of a result (ADR-176). A new rating replaces the old one."""

    HELPFUL = "helpful"
    NOT_HELPFUL = "not_helpful"


class ObservedOutcome(StrEnum):
    """The outcome of a run's records that the history shows (ADR-176). It is final."""

    ACCEPTED_UNCHANGED = "accepted_unchanged"
    EDITED = "edited"
    DISCARDED = "discarded"
    UNKNOWN = "unknown"


#: The values of the two sources, as they are stored. They are never mixed (ADR-176).
EXPLICIT = tuple(str(value) for value in ExplicitOutcome)
OBSERVED = tuple(str(value) for value in ObservedOutcome)

#: One outcome a run: the first of these that any of its writes has (ADR-185).
PRECEDENCE = (
    ObservedOutcome.DISCARDED,
    ObservedOutcome.EDITED,
    ObservedOutcome.UNKNOWN,
    ObservedOutcome.ACCEPTED_UNCHANGED,
)


class RunStatus(StrEnum):
    """The states of a run; any other is a newer version's."""

    QUEUED = "queued"
    RUNNING = "running"
    WAITING_FOR_APPROVAL = "waiting_for_approval"
    WAITING_FOR_INPUT = "waiting_for_input"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


#: The states of a run that has ended; it never writes again.
ENDED = frozenset({RunStatus.COMPLETED, RunStatus.FAILED, RunStatus.CANCELLED})

#: Up to this long after the close, in seconds, a record that is gone is taken to have been gone at the close.
PROMPTLY = 172800


@dataclass(frozen=True, slots=True)
class Run:
    """
    A row of the run table.

    :param finished_at: when it ended; 0 until then
    :param created_at: when it was made; None if the row does not tell
    """

    uid: int
    uuid: str
    status: str
    finished_at: int
    created_at: int | None = None


def settled_at(runs: Iterable[Run], writes: Iterable[Write], window: int) -> int | None:
    """
    Return when the runs that share a uuid settle; None while one of them goes on, or if none of them wrote.

    ADR-185: at the latest of each write's close and the time each run ended.

    :param window: how long a record is watched after a write, in seconds
    """
    runs = list(runs)
    closes = [write.at + window for write in writes]
    if not closes or not all(run.status in ENDED for run in runs):
        return None
    return max([*closes, *(run.finished_at for run in runs)])


@dataclass(frozen=True, slots=True)
class Aftermath:
    """
    What the evidence says of a record from one write to its close (ADR-185).

    :param at: when the write was made
    :param close: when its window closed
    :param deleted_already: the write itself was the deletion
    :param reused: its uid was given to another record in the window, so the written one had gone
    :param deleted: it was deleted in the window, whoever did it
    :param gone: it is gone, no DELETE or UNDELETE in the window says so, and nothing shows that it outlived it
    :param dated: the record itself tells when it ended
    :param changed: an editor made a row in the window, other than a DELETE of what was deleted already
    :param known: a row as old as the write is retained
    :param evidence: on the record
    """

    at: int
    close: int
    deleted_already: bool
    reused: bool
    deleted: bool
    gone: bool
    dated: bool
    changed: bool
    known: bool
    evidence: Evidence

    @property
    def own(self) -> Sequence[HistoryRow]:
        """The history rows that the write made itself, of the live record or of a draft that was published since."""
        rows, drafts = self.evidence.own_rows(self.at, self.close - self.at), self.evidence.own_drafts(self.at)
        # The write made what is stamped last.
        latest = max((row.stamp for row in (*rows, *drafts)), default=0)
        return sorted(row for row in (*rows, *drafts) if row.stamp == latest)

    @property
    def later(self) -> Sequence[HistoryRow]:
        """The rows in the window that an editor made; without a DELETE where it was deleted already."""
        rows = self.evidence.edits(self.at, self.close)
        return [row for row in rows if row.action != Action.DELETE] if self.deleted_already else rows


def aftermath(at: int, evidence: Evidence, window: int) -> Aftermath:
    """
    Return what the evidence says of the record from one write to its close (ADR-185).

    :param at: when the write was made
    :param evidence: on the record it names
    :param window: how long the record is watched after the write, in seconds
    """
    close, end = at + window, evidence.record.end
    # What happened after the write, up to and including the close, is a slice of the rows.
    begin, after = evidence.rows_until(at, window), evidence.rows_stamped_until(close)
    deleted_already = evidence.is_deleted_after(begin, at)
    last_end = evidence.last_end(begin, after)
    outlived = evidence.last_end(after) is not None or (end is not None and end > close)
    if deleted_already:
        changed = any(row.action != Action.DELETE for row in evidence.edits(at, close))
    else:
        changed = evidence.has_edit(at, close)
    return Aftermath(
        at=at,
        close=close,
        deleted_already=deleted_already,
        reused=not deleted_already and evidence.has_add(begin, after),
        deleted=not deleted_already and last_end == Action.DELETE,
        gone=not deleted_already and last_end is None and not evidence.record.present and not outlived,
        dated=end is not None,
        changed=changed,
        known=evidence.reaches_back_to(at),
        evidence=evidence,
    )


#: Whether what happened after a write is an edit: EDITED, UNKNOWN if it cannot be told, ACCEPTED_UNCHANGED if it is
#: told that it is none, or None.
Edit = Callable[[Aftermath], ObservedOutcome | None]


def any_change(seen: Aftermath) -> ObservedOutcome | None:
    """Return EDITED for a later row, whatever its action (ADR-185)."""
    return ObservedOutcome.EDITED if seen.changed else None


def outcome_of_write(seen: Aftermath | None, *, now: int, edit: Edit = any_change) -> ObservedOutcome:
    """
    Return the outcome of one write; the first line that holds decides (ADR-185).

    :param seen: what happened after it; None if it names no record that can be read
    :param now: when it is asked
    :param edit: what counts as an edit
    """
    if seen is None:
        # Looked, and could not tell; so an unreadable write cannot block the queue.
        return ObservedOutcome.UNKNOWN
    if seen.reused:
        return ObservedOutcome.DISCARDED
    if seen.deleted:
        return ObservedOutcome.DISCARDED
    if seen.gone and (seen.dated or now <= seen.close + PROMPTLY):
        return ObservedOutcome.DISCARDED
    if (edited := edit(seen)) is not None:
        return edited
    if seen.gone:
        return ObservedOutcome.UNKNOWN
    if not seen.known:
        return ObservedOutcome.UNKNOWN
    return ObservedOutcome.ACCEPTED_UNCHANGED


def outcome_of_run(outcomes: Iterable[ObservedOutcome]) -> ObservedOutcome:
    """Return the one outcome of a run by those of its writes, of which there is at least one (ADR-185)."""
    return min(outcomes, key=PRECEDENCE.index)
