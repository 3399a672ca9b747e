"""
How much of EDITED is about the run's text: what one change of a record is to it. Pure.

ADR-185 says that EDITED over-reports: it counts any human change of the record. Here a change counts by the
names of the fields it changed and of those the write itself had set; values are never known.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Never

from airflow_provider_nrllm.outcomes.evidence import Action


class EditedMeans(StrEnum):
    """
    What makes a run ``edited`` when it is derived.

    ADR-185 decides for any change. Outcomes derived in the two ways must not be compared.
    """

    ANY_CHANGE = "any change"
    OUR_FIELDS = "our fields"

    @classmethod
    def _missing_(cls, value: object) -> Never:
        raise ValueError(f"edited_means is {value!r}; expected {' or '.join(map(repr, map(str, cls)))}")


class Meaning(StrEnum):
    """The meaning of a person's change of a written record for the run's text."""

    RUN_TEXT = "run_text"
    CANNOT_BE_TOLD = "cannot_be_told"
    BESIDE = "beside"
    RELEASE = "release"
    MOVE = "move"
    RESTORE = "restore"
    NO_CHANGE = "no_change"

    @property
    def words(self) -> str:
        """The meaning as a reader knows it."""
        return _WORDS[self]


_WORDS = {
    Meaning.RUN_TEXT: "edit of the run's text",
    Meaning.CANNOT_BE_TOLD: "cannot be told",
    Meaning.BESIDE: "edit beside the run's text",
    Meaning.RELEASE: "release",
    Meaning.MOVE: "move",
    Meaning.RESTORE: "restore",
    Meaning.NO_CHANGE: "no change",
}

#: One meaning a run: the first of these that any change of any record it wrote has. What cannot be told
#: may be an edit of the run's text, so only a proven one outranks it, as ``unknown`` outranks ``accepted_unchanged``.
STRENGTH = tuple(Meaning)

#: What makes a record visible, or hides it.
RELEASE_FIELDS = ("hidden", "disabled", "disable", "starttime", "endtime")

#: Where a record stands: what a move changes, beside the row that TYPO3 calls MOVE.
PLACE_FIELDS = ("colPos", "tx_container_parent", "sorting", "pid")

#: What TYPO3 changes by itself when a form is saved. The first save of a record turns the ``fe_group`` of
#: '0' or NULL that it was made with into ''. ``*`` stands for any rest of a name.
AUTOMATIC_FIELDS = (
    "l10n_diffsource",
    "l18n_diffsource",
    "l10n_state",
    "fe_group",
    "t3ver_*",
    "tstamp",
    "updatedon",
    "SYS_LASTCHANGED",
)


@dataclass(frozen=True, slots=True)
class IgnoredFields:
    """The fields whose changes are no edit of a text; ``*`` stands for any rest of a name."""

    release: tuple[str, ...] = RELEASE_FIELDS
    automatic: tuple[str, ...] = AUTOMATIC_FIELDS
    place: tuple[str, ...] = PLACE_FIELDS

    @classmethod
    def of(cls, release: Sequence[str], automatic: Sequence[str], place: Sequence[str] = PLACE_FIELDS) -> IgnoredFields:
        """
        Return the lists that an operator's arguments give.

        :raises ValueError: unless all are lists of texts
        """
        for name, fields in (("release_fields", release), ("automatic_fields", automatic), ("place_fields", place)):
            if isinstance(fields, str) or not all(isinstance(field, str) for field in fields):
                raise ValueError(f"{name} is {fields!r}; expected a list of field names")
        return cls(tuple(release), tuple(automatic), tuple(place))

    def text(self, fields: Iterable[str]) -> frozenset[str]:
        """Return the fields that are on none of the lists."""
        ignored = (*self.release, *self.automatic, *self.place)
        return frozenset(name for name in fields if not _on(ignored, name))

    def releases(self, fields: Iterable[str]) -> bool:
        """Whether one of the fields releases a record."""
        return any(_on(self.release, name) for name in fields)

    def moves(self, fields: Iterable[str]) -> bool:
        """Whether one of the fields moves a record."""
        return any(_on(self.place, name) for name in fields)


def _on(patterns: Iterable[str], name: str) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


@dataclass(frozen=True, slots=True)
class Change:
    """
    One row of a record's history, by what it did and which fields it names.

    :param action: TYPO3's actiontype
    :param fields: the names of the fields it set; None where they cannot be read
    :param kept: those of them that it left as they were, or to which the window brought back the run's own value;
        of a row that made a record, those that it left empty
    """

    action: int
    fields: frozenset[str] | None = frozenset()
    kept: frozenset[str] = frozenset()


#: The actions whose rows are read for field names; what the others did needs none.
NAMES_FIELDS = frozenset({Action.ADD, Action.MODIFY, Action.PUBLISH})


@dataclass(frozen=True, slots=True)
class FieldsWritten:
    """
    The fields that a write set, by its own history rows.

    :param fields: their names; None where every field of the record is the run's, since the write created it
    :param known: False where the own rows are trimmed, cannot be read, or name no field
    """

    fields: frozenset[str] | None = frozenset()
    known: bool = True

    def among(self, fields: frozenset[str]) -> bool:
        """Whether the write set one of the fields."""
        return bool(fields) if self.fields is None else bool(self.fields & fields)


def fields_written(own: Iterable[Change]) -> FieldsWritten:
    """
    Return the fields that a write set, by the rows it made itself.

    Of a record that the write created, these are the fields that the ADD row holds with a value; where it tells
    none, all of them.
    """
    own = list(own)
    made = [change for change in own if change.action == Action.ADD]
    if any(not change.fields for change in made):
        return FieldsWritten(fields=None)
    if any(change.action in NAMES_FIELDS and change.fields is None for change in own):
        return FieldsWritten(known=False)
    fields = frozenset[str]().union(
        *((change.fields or frozenset()) - (change.kept if change in made else frozenset()) for change in own)
    )
    set_no_text = any(change.action in (Action.ADD, Action.MOVE, Action.DELETE, Action.UNDELETE) for change in own)
    return FieldsWritten(fields, known=bool(fields) or set_no_text)


def meaning_of_change(
    change: Change, write: FieldsWritten, ignored: IgnoredFields, *, undoes_deletion: bool = False
) -> Meaning:
    """
    Return what one human change is to the text of a write.

    :param change: a later row of the record that the write names
    :param write: the fields the write set
    :param ignored: the fields whose changes are no edit of a text
    :param undoes_deletion: whether the write deleted the record, so that to restore it is to undo the write
    """
    if change.action == Action.MOVE:
        return Meaning.MOVE
    if change.action in (Action.DELETE, Action.UNDELETE):
        return Meaning.RUN_TEXT if undoes_deletion else Meaning.RESTORE
    if change.action == Action.STAGECHANGE:
        # Of a workspace's draft: it changes t3ver_stage and nothing else.
        return Meaning.NO_CHANGE
    if change.action not in NAMES_FIELDS or change.fields is None:
        return Meaning.CANNOT_BE_TOLD
    text = ignored.text(change.fields) - change.kept
    if not text:
        # To publish what changes no text is to release it, whether or not the row names fields.
        if change.action == Action.PUBLISH or ignored.releases(change.fields):
            return Meaning.RELEASE
        return Meaning.MOVE if ignored.moves(change.fields) else Meaning.NO_CHANGE
    if not write.known:
        return Meaning.CANNOT_BE_TOLD
    return Meaning.RUN_TEXT if write.among(text) else Meaning.BESIDE


def strongest(meanings: Iterable[Meaning]) -> Meaning:
    """Return the strongest meaning; CANNOT_BE_TOLD if there are none."""
    return min(meanings, key=STRENGTH.index, default=Meaning.CANNOT_BE_TOLD)
