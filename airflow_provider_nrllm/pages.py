"""Some settled runs with the evidence on all they wrote, and what became of them. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from airflow_provider_nrllm.evidence import Evidence, Target, Write
from airflow_provider_nrllm.outcomes import Edit, ObservedOutcome, any_change, outcome_of_run, outcome_of_write

#: The most rows that are read or written at once: engines limit the parameters of a statement.
MAX_PAGE_SIZE = 5000


def checked_page_size(page_size: object) -> int:
    """
    Return a page size.

    :raises ValueError: where it is no whole number from 1 to 5000
    """
    if not isinstance(page_size, int) or isinstance(page_size, bool) or not 1 <= page_size <= MAX_PAGE_SIZE:
        raise ValueError(f"page_size is {page_size!r}; expected a whole number from 1 to {MAX_PAGE_SIZE}")
    return page_size


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
    Some settled runs and the evidence on what they wrote, as one moment of the database had it.

    :param reached: how far along the time line the page goes, in Unix seconds
    :param edit: what counts as an edit
    """

    runs: tuple[SettledRun, ...]
    evidence: Mapping[Target, Evidence]
    window: int
    reached: int
    edit: Edit = any_change

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
        return outcome_of_write(write.event, self.evidence[write.target], window=self.window, now=now, edit=self.edit)
