"""Some settled runs with what happened after each of their writes, and their outcomes. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from airflow_provider_nrllm.outcomes.evidence import Target, Write
from airflow_provider_nrllm.outcomes.rules import (
    Aftermath,
    Edit,
    ObservedOutcome,
    Run,
    any_change,
    outcome_of_run,
    outcome_of_write,
    settled_at,
)
from airflow_provider_nrllm.outcomes.ways import SeveralRecords, ways_of

#: Where a page begins: the time and the uid of the last row of the page before.
PageKey = tuple[int, int]


def page_of_rows(rows: Sequence[Any], page_size: int) -> tuple[Sequence[Any], PageKey | None]:
    """
    Return the first rows that are of at most so many uuids, and where the next page begins; None if there is none.

    :param rows: ``at, uid, uuid`` of each, in order; one more than twice the page size, if there are so many
    :param page_size: the most uuids
    """
    uuids: set[str] = set()
    for taken, (_, _, uuid) in enumerate(rows):
        if taken == 2 * page_size or (uuid not in uuids and len(uuids) == page_size):
            last = rows[taken - 1]
            return rows[:taken], (last[0], last[1])
        uuids.add(uuid)
    return rows, None


@dataclass(frozen=True, slots=True)
class RunsOfUuid:
    """The runs that share a uuid, which are answered as one, and all they wrote (ADR-185)."""

    uuid: str
    runs: tuple[Run, ...]
    writes: tuple[Write, ...]

    def settled_at(self, window: int) -> int | None:
        """
        Return when they settle; None while one of them goes on, or if none of them wrote.

        :param window: how long a record is watched after a write, in seconds
        """
        return settled_at(self.runs, self.writes, window)

    def last_write(self) -> tuple[int, int]:
        """Return the time and uid of their last write."""
        return max((write.at, write.uid) for write in self.writes)

    def last_end(self) -> tuple[int, int]:
        """Return the time at which the last of them ended, and its uid."""
        return max((run.finished_at, run.uid) for run in self.runs)


@dataclass(frozen=True, slots=True)
class SettledRun:
    """
    A settled run without an observed outcome, or several that share a uuid and are answered as one.

    :param aftermaths: of each write; None for one that names no record that can be read
    :param targets: the record of each write, as far as it can be read
    """

    uuid: str
    run_uids: tuple[int, ...]
    settled: int
    aftermaths: tuple[Aftermath | None, ...]
    targets: tuple[Target | None, ...]

    @property
    def unreadable_writes(self) -> int:
        """The number of writes that name no record."""
        return self.aftermaths.count(None)


@dataclass(frozen=True, slots=True)
class Page:
    """
    Some settled runs and what happened after each of their writes, as one moment of the database had it.

    :param reached: how far along the time line the page goes, in Unix seconds
    :param edit: what counts as an edit
    :param tables: the tables of the records that the runs wrote, as far as they are there
    :param refused: the runs that the page leaves out, since they wrote a table that may not be read: the table
        by their uuid
    """

    runs: tuple[SettledRun, ...]
    reached: int
    edit: Edit = any_change
    tables: frozenset[str] = frozenset()
    refused: tuple[tuple[str, str], ...] = ()

    def outcomes(self, now: int) -> dict[str, ObservedOutcome]:
        """
        Return the outcome of each run by its uuid.

        :param now: when it is asked, in Unix seconds
        """
        return {
            run.uuid: outcome_of_run(outcome_of_write(seen, now=now, edit=self.edit) for seen in run.aftermaths)
            for run in self.runs
        }

    def several_records(self, runs: Iterable[SettledRun], now: int) -> SeveralRecords:
        """
        Return how many of some runs of the page wrote several records, and in which ways those ended.

        :param now: when it is asked, in Unix seconds
        """
        several = SeveralRecords()
        for run in runs:
            if len(set(run.targets) - {None}) > 1:
                outcomes = (outcome_of_write(seen, now=now, edit=self.edit) for seen in run.aftermaths)
                if ways := ways_of(zip(run.targets, outcomes, strict=True)):
                    several.add(ways)
        return several


@dataclass(frozen=True, slots=True)
class Gap:
    """
    The runs that settled before a partition and have no outcome, which no later partition answers.

    :param runs: how many there are
    :param since: when the first of them settled, in Unix seconds; None if there are none
    """

    runs: int = 0
    since: int | None = None
