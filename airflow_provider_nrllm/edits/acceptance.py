"""
How much of ACCEPTED UNCHANGED was taken up: whether the records of a run were released, or are hidden drafts. Pure.

nr_llm's tools make hidden drafts, and a draft that nobody ever opened is accepted too (ADR-185). Only the column
that hides a record is known, and by which history rows it was changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from airflow_provider_nrllm.edits.changes import FieldChanges
from airflow_provider_nrllm.edits.meanings import NAMES_FIELDS
from airflow_provider_nrllm.outcomes.evidence import Action, HistoryRow
from airflow_provider_nrllm.outcomes.rules import Aftermath


class Acceptance(StrEnum):
    """
    What became of a written record that nobody changed.

    In the order of their strength, the weakest first: a run is the weakest of its records.
    """

    STILL_HIDDEN = "still_hidden"
    CANNOT_BE_TOLD = "cannot_be_told"
    VISIBLE_ALREADY = "visible_already"
    RELEASED = "released"

    @property
    def words(self) -> str:
        """The same as a reader knows it."""
        return self.value.replace("_", " ")


@dataclass(frozen=True, slots=True)
class Visibility:
    """
    Whether a record is hidden.

    :param column: the one that hides it; empty where its table has none, so that a record in it is never hidden
    :param hidden: whether that column hides it now
    :param later: the history rows since the close of its window that may have changed that column, in order
    """

    column: str = ""
    hidden: bool = False
    later: Sequence[HistoryRow] = ()


def acceptance_of_record(seen: Sequence[Aftermath], visibility: Visibility | None, changes: FieldChanges) -> Acceptance:
    """
    Return what became of a record up to the close of the last write to it.

    :param seen: what happened after each write of the run to the record, of which there is at least one
    :param visibility: whether it is hidden; None if it is gone, or may not be looked at
    :param changes: of its later rows, and of those since the close
    """
    last = max(seen, key=lambda after: after.at)
    if last.deleted_already or (visibility is not None and not visibility.column):
        # What was deleted, or cannot be hidden, is as the run left it for everybody.
        return Acceptance.VISIBLE_ALREADY
    if visibility is None or not (last.known or last.evidence.own_drafts(last.at)):
        return Acceptance.CANNOT_BE_TOLD
    hidden = _hidden_at_close(visibility, last.close, changes)
    if hidden is None:
        return Acceptance.CANNOT_BE_TOLD
    if hidden:
        return Acceptance.STILL_HIDDEN
    by_editor = {row for after in seen for row in after.later if row.action in NAMES_FIELDS}
    names = {row: changes.names.get(row.uid) for row in by_editor}
    if any(row.action == Action.PUBLISH or visibility.column in (names[row] or ()) for row in by_editor):
        return Acceptance.RELEASED
    return Acceptance.CANNOT_BE_TOLD if None in names.values() else Acceptance.VISIBLE_ALREADY


def _hidden_at_close(visibility: Visibility, close: int, changes: FieldChanges) -> bool | None:
    """Return whether a record was hidden when its window closed; None if that cannot be told."""
    for row in visibility.later:
        if row.stamp <= close:
            continue
        names = changes.names.get(row.uid)
        if names is None or row.action == Action.ADD:
            return None
        if visibility.column in names:
            # It was the other way before.
            answer = changes.answers.get((row.uid, visibility.column))
            if answer is None:
                return None
            if not answer.unchanged:
                return answer.empty
    return visibility.hidden


def weakest(acceptances: Iterable[Acceptance]) -> Acceptance:
    """Return the weakest; CANNOT_BE_TOLD if there are none."""
    return min(acceptances, key=tuple(Acceptance).index, default=Acceptance.CANNOT_BE_TOLD)
