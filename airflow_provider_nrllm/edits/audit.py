"""What the evidence says of a run that was answered: of its edits, of its acceptance, of the ways it ended in. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from airflow_provider_nrllm.edits.acceptance import Acceptance, Visibility, acceptance_of_record, weakest
from airflow_provider_nrllm.edits.changes import FieldChanges, meaning_of_aftermath
from airflow_provider_nrllm.edits.meanings import IgnoredFields, Meaning, strongest
from airflow_provider_nrllm.outcomes.evidence import Target
from airflow_provider_nrllm.outcomes.pages import RunsOfUuid
from airflow_provider_nrllm.outcomes.rules import (
    Aftermath,
    Edit,
    ObservedOutcome,
    outcome_of_run,
    outcome_of_write,
)
from airflow_provider_nrllm.outcomes.ways import Ways, ways_of


class AuditedRun(NamedTuple):
    """
    What an audit says of one observed run.

    :ivar meaning: what its edits are to its text, where it was answered ``edited``
    :ivar acceptance: what became of its records, where it was answered ``accepted_unchanged``
    :ivar ways: in which its records ended; None if it wrote fewer than two, or is purged
    :ivar told: whether they still lead to the outcome it was answered with
    """

    meaning: Meaning | None = None
    acceptance: Acceptance | None = None
    ways: Ways | None = None
    told: bool = True


#: What happened after each write, by the uid of its event; None for one that names no record that can be read.
Seen = Mapping[int, Aftermath | None]


def meaning_of_run(runs: RunsOfUuid | None, seen: Seen, changes: FieldChanges, ignored: IgnoredFields) -> Meaning:
    """
    Return what the edits of a run are to its text; a write without a record tells nothing.

    :param runs: None if it is purged
    """
    found = (after for write in (runs.writes if runs else ()) if (after := seen[write.uid]) is not None)
    told = (meaning_of_aftermath(after, changes, ignored) for after in found)
    return strongest(meaning for meaning in told if meaning is not None)


def acceptance_of_run(
    runs: RunsOfUuid | None, seen: Seen, changes: FieldChanges, visibilities: Mapping[Target, Visibility]
) -> Acceptance:
    """
    Return what became of the weakest record of a run.

    :param runs: None if it is purged
    """
    by_record: dict[Target | None, list[Aftermath | None]] = {}
    for write in runs.writes if runs else ():
        by_record.setdefault(write.target, []).append(seen[write.uid])
    return weakest(
        acceptance_of_record(known, visibilities.get(target) if target else None, changes)
        if (known := [after for after in afters if after is not None])
        else Acceptance.CANNOT_BE_TOLD
        for target, afters in by_record.items()
    )


def ways_of_run(runs: RunsOfUuid | None, seen: Seen, answered: str, edit: Edit, now: int) -> tuple[Ways | None, bool]:
    """
    Return the ways in which the records of a run ended, and whether they lead to the outcome it was answered with.

    :param runs: None if it is purged
    :param edit: what counts as an edit
    :param now: when it is asked; what is gone since and has no date is ``unknown``
    """
    if runs is None or len({write.target for write in runs.writes} - {None}) < 2:
        return None, True
    outcomes: list[tuple[Target | None, ObservedOutcome]] = [
        (write.target, outcome_of_write(seen[write.uid], now=now, edit=edit)) for write in runs.writes
    ]
    return ways_of(outcomes), outcome_of_run(outcome for _, outcome in outcomes) == answered
