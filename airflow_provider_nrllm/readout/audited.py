"""The audits of observed runs: of the edits, of the acceptances, and of runs that end in several ways. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from airflow_provider_nrllm.edits.acceptance import Acceptance
from airflow_provider_nrllm.edits.audit import AuditedRun
from airflow_provider_nrllm.edits.meanings import Meaning
from airflow_provider_nrllm.outcomes.ways import SeveralRecords
from airflow_provider_nrllm.readout.shares import Share


@dataclass(frozen=True, slots=True)
class EditedRuns:
    """The runs answered ``edited``, by what their edits are to the run's text."""

    counts: Mapping[Meaning, int]

    @property
    def total(self) -> int:
        """The number of runs that were looked at."""
        return sum(self.counts.values())

    def share(self, meaning: Meaning) -> Share:
        """Return the share of one meaning among all of them."""
        return Share(self.counts.get(meaning, 0), self.total)

    @property
    def over_report(self) -> Share:
        """The share that would not be EDITED if only changes of our fields counted; what cannot be told does."""
        kept = sum(self.counts.get(meaning, 0) for meaning in (Meaning.RUN_TEXT, Meaning.CANNOT_BE_TOLD))
        return Share(self.total - kept, self.total)


@dataclass(frozen=True, slots=True)
class AcceptedRuns:
    """The runs answered ``accepted_unchanged``, by what became of the weakest of their records."""

    counts: Mapping[Acceptance, int]

    @property
    def total(self) -> int:
        """The number of runs that were looked at."""
        return sum(self.counts.values())

    def share(self, acceptance: Acceptance) -> Share:
        """Return the share of one kind among all of them."""
        return Share(self.counts.get(acceptance, 0), self.total)


@dataclass(slots=True)
class AuditedRuns:
    """
    The observed runs of a group, as an audit tells them.

    :param runs: how many were looked at
    """

    runs: int = 0
    meanings: Counter[Meaning] = field(default_factory=Counter)
    acceptances: Counter[Acceptance] = field(default_factory=Counter)
    several: SeveralRecords = field(default_factory=SeveralRecords)

    def add(self, run: AuditedRun) -> None:
        """Count a run."""
        self.runs += 1
        if run.meaning is not None:
            self.meanings[run.meaning] += 1
        if run.acceptance is not None:
            self.acceptances[run.acceptance] += 1
        if run.ways is not None:
            self.several.add(run.ways if run.told else ())
            self.several.untold += not run.told

    @classmethod
    def together(cls, groups: Iterable[AuditedRuns]) -> AuditedRuns:
        """Return the counts of all groups."""
        found = cls()
        for group in groups:
            found.runs += group.runs
            found.meanings.update(group.meanings)
            found.acceptances.update(group.acceptances)
            found.several.update(group.several)
        return found

    @property
    def edited(self) -> EditedRuns:
        """Those answered ``edited``."""
        return EditedRuns(self.meanings)

    @property
    def accepted(self) -> AcceptedRuns:
        """Those answered ``accepted_unchanged``."""
        return AcceptedRuns(self.acceptances)

    @property
    def with_several_records(self) -> Share:
        """The share of runs that wrote several records."""
        return Share(self.several.runs, self.runs)

    @property
    def in_several_ways(self) -> Share:
        """The share of these that ended in more than one way, among those that can still be told."""
        return Share(self.several.in_several_ways, self.several.runs - self.several.untold)
