"""
Why a run is ``unknown``: in which of its writes it could not be told (ADR-185). Pure.

Told by the evidence that is there now, which may be less than there was when the run was answered.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from airflow_provider_nrllm.outcomes.rules import Aftermath


class Reason(StrEnum):
    """Why the outcome of a write could not be told; the value is the reason in words."""

    NO_RECORD = "a write names no record that can be read"
    GONE = "a record is gone, nothing tells since when, and it was asked more than two days after its window"
    TRIMMED = "no history as old as the write is left of a record"
    FIELDS = "a record was changed, and whether the change was of the run's text could not be told"


#: Of a run that is not there, or whose events are not.
PURGED = "the run or its writes are purged"

#: Of a run that wrote what the user of the connection may not read.
REFUSED = "not looked up: it wrote a table that the user of the connection may not read"

#: Of runs where the user of the connection may read neither history nor records.
NOT_LOOKED_UP = "not looked up: the user of the connection may not read what a derivation reads"

#: Of a run whose evidence now leads to another outcome: it is final, and the evidence has changed since.
OTHERWISE = "cannot be told any more: the evidence has changed since it was asked"


def reason_of_write(seen: Aftermath | None) -> Reason | None:
    """
    Return why a write is ``unknown`` if it was asked late; None if its outcome can be told.

    :param seen: what happened after it; None if it names no record that can be read
    """
    if seen is None:
        return Reason.NO_RECORD
    if seen.reused or seen.deleted or (seen.gone and seen.dated):
        return None
    if seen.changed:
        # By ADR-185 this is an edit. Where only changes of the run's fields are, it may be unknown.
        return Reason.FIELDS
    if seen.gone:
        return Reason.GONE
    return None if seen.known else Reason.TRIMMED


def reasons_in_words(writes: Iterable[Aftermath | None]) -> str:
    """
    Return why a run is ``unknown``, each reason once.

    :param writes: what happened after each of its writes; None for one that names no record that can be read
    """
    writes = list(writes)
    if not writes:
        return PURGED
    found = {reason_of_write(seen) for seen in writes}
    return "; ".join(reason for reason in Reason if reason in found) or OTHERWISE
