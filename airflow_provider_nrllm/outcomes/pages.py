"""Some settled runs with the evidence on all they wrote, and what became of them. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from airflow_provider_nrllm.outcomes.evidence import Write
from airflow_provider_nrllm.outcomes.rules import (
    Aftermath,
    Edit,
    ObservedOutcome,
    any_change,
    outcome_of_run,
    outcome_of_write,
)


@dataclass(frozen=True, slots=True)
class SettledRun:
    """A settled and unanswered run, or several that share a uuid and are answered as one, with all they wrote."""

    uuid: str
    run_uids: tuple[int, ...]
    settled: int
    writes: tuple[Write, ...]

    @property
    def unreadable_writes(self) -> int:
        """How many of the writes name no record."""
        return sum(write.target is None for write in self.writes)


@dataclass(frozen=True, slots=True)
class Page:
    """
    Some settled runs and what happened after each of their writes, as one moment of the database had it.

    :param aftermaths: of every write that names a record
    :param reached: how far along the time line the page goes, in Unix seconds
    :param edit: what counts as an edit
    """

    runs: tuple[SettledRun, ...]
    aftermaths: Mapping[Write, Aftermath]
    reached: int
    edit: Edit = any_change

    @property
    def tables(self) -> set[str]:
        """The tables of the records that the runs wrote."""
        return {write.target.table for write in self.aftermaths if write.target}

    def outcomes(self, now: int) -> dict[str, ObservedOutcome]:
        """
        Return the outcome of each run by its uuid.

        :param now: when it is asked, in Unix seconds
        """
        return {run.uuid: outcome_of_run(self._outcome_of(write, now) for write in run.writes) for run in self.runs}

    def _outcome_of(self, write: Write, now: int) -> ObservedOutcome:
        # ADR-185: looked, and could not tell; so an unreadable write cannot block the queue.
        if write.target is None:
            return ObservedOutcome.UNKNOWN
        return outcome_of_write(self.aftermaths[write], now=now, edit=self.edit)
