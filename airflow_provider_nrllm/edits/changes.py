"""
The changes in the window of a write, by the names of their fields and by whether values are the same. Pure.

Of a value it is only known whether it is empty, whether a change left it as it was, and whether it is the run's
own: the database answers yes or no.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from airflow_provider_nrllm.edits.meanings import (
    NAMES_FIELDS,
    Change,
    IgnoredFields,
    Meaning,
    fields_written,
    meaning_of_change,
    strongest,
)
from airflow_provider_nrllm.outcomes.evidence import Action, HistoryRow
from airflow_provider_nrllm.outcomes.rules import Aftermath, ObservedOutcome

#: The field of a draft that holds the uid of the live record, 0 for a new one.
VERSION_OF = "t3ver_oid"

#: The field names of history rows by their uid; a row that is not there names none that can be read.
FieldNames = Mapping[int, frozenset[str] | None]


class Question(NamedTuple):
    """
    What is asked of the value that a history row gives a field.

    :ivar row: the uid of the history row
    :ivar last: the uid of the last row in the window that gives the field a value, to compare with; 0: none
    """

    row: int
    field: str
    last: int = 0


class Answer(NamedTuple):
    """
    What the database tells of a value.

    :ivar unchanged: it is the value of before, as far as the engine can tell
    :ivar empty: it is empty
    :ivar same: it is that of the last row in the window
    """

    unchanged: bool
    empty: bool
    same: bool


@dataclass(frozen=True, slots=True)
class FieldChanges:
    """
    What is known of the fields of some history rows.

    :param names: of the rows that :func:`rows_to_read` yields
    :param answers: to what :func:`questions` yields, by row and field; without an answer a value counts as
        changed, not empty, and different
    """

    names: FieldNames
    answers: Mapping[tuple[int, str], Answer] = field(default_factory=dict)

    def change(self, row: HistoryRow, kept: Iterable[str] = ()) -> Change:
        """
        Return what a row changed.

        :param kept: fields whose last value in the window is the run's own
        """
        names = self.names.get(row.uid) if row.action in NAMES_FIELDS else frozenset()
        return Change(row.action, names, frozenset(kept).union(self._of(row, "unchanged")))

    def own_change(self, row: HistoryRow) -> Change:
        """Return what a row of the write itself changed."""
        names = self.names.get(row.uid) if row.action in NAMES_FIELDS else frozenset()
        return Change(row.action, names, frozenset(self._of(row, "empty")))

    def restored(self, own: Iterable[HistoryRow]) -> frozenset[str]:
        """Return the fields to which the window brought back the value that the write gave them."""
        return frozenset(name for row in own for name in self._of(row, "same"))

    def begins_draft(self, row: HistoryRow) -> bool:
        """
        Whether a row made the version of a record that is there: it holds a copy of that, which nobody wrote.

        Without an answer it does not.
        """
        answer = self.answers.get((row.uid, VERSION_OF))
        return row.action == Action.ADD and row.workspace > 0 and answer is not None and not answer.empty

    def _of(self, row: HistoryRow, flag: str) -> Iterator[str]:
        for name in self.names.get(row.uid) or ():
            answer = self.answers.get((row.uid, name))
            if answer is not None and getattr(answer, flag):
                yield name


def rows_to_read(seen: Aftermath) -> Iterator[int]:
    """Yield the uids of the history rows whose field names tell what the later rows are."""
    if seen.changed:
        yield from (row.uid for row in (*seen.own, *seen.later) if row.action in NAMES_FIELDS)


def questions(seen: Aftermath, names: FieldNames, ignored: IgnoredFields) -> Iterator[Question]:
    """
    Yield what has to be asked of values to tell what the later rows are.

    :param seen: what happened after the write
    :param names: of the rows that :func:`rows_to_read` yields
    :param ignored: the fields whose changes are no edit of a text
    """
    if not seen.changed:
        return
    last: dict[str, int] = {}
    for row in seen.later:
        if row.action in NAMES_FIELDS:
            for name in ignored.text(names.get(row.uid) or ()):
                last[name] = row.uid
                yield Question(row.uid, name)
    own: dict[str, HistoryRow] = {}
    for row in seen.own:
        if row.action in NAMES_FIELDS:
            own |= dict.fromkeys(last.keys() & (names.get(row.uid) or frozenset()), row)
        if row.action == Action.ADD and row.workspace > 0 and VERSION_OF not in last:
            yield Question(row.uid, VERSION_OF)
    for name, row in own.items():
        yield Question(row.uid, name, last[name])


def meaning_of_aftermath(seen: Aftermath, changes: FieldChanges, ignored: IgnoredFields) -> Meaning | None:
    """
    Return what the later rows of a record are to the text of a write, the strongest; None without any.

    :param seen: what happened after the write
    :param changes: of the rows that :func:`rows_to_read` yields
    :param ignored: the fields whose changes are no edit of a text
    """
    if not seen.changed:
        return None
    own = [row for row in seen.own if not changes.begins_draft(row)]
    write = fields_written(changes.own_change(row) for row in own)
    restored = changes.restored(own)
    return strongest(
        meaning_of_change(changes.change(row, restored), write, ignored, undoes_deletion=seen.deleted_already)
        for row in seen.later
    )


def edit_of_our_fields(changes: FieldChanges, ignored: IgnoredFields) -> Callable[[Aftermath], ObservedOutcome | None]:
    """
    Return what counts as an edit where ``edited_means`` is "our fields": only an edit of the run's text.

    A release, no change, a move, a restore, and an edit beside the run's text then do not make a run ``edited``.

    Where that cannot be told, the outcome is ``unknown``: asked, and it could not be told (ADR-176). Where the run
    wrote a draft that was published as it was, its rows show that the history reaches back to the write.
    """

    def edit(seen: Aftermath) -> ObservedOutcome | None:
        meaning = meaning_of_aftermath(seen, changes, ignored)
        if meaning is Meaning.RUN_TEXT:
            return ObservedOutcome.EDITED
        if meaning is Meaning.CANNOT_BE_TOLD:
            return ObservedOutcome.UNKNOWN
        if meaning is not None and not seen.known and not seen.gone and seen.evidence.own_drafts(seen.at):
            # No row of the live record is as old as the write, but those of the draft that it wrote are.
            return ObservedOutcome.ACCEPTED_UNCHANGED
        return None

    return edit
