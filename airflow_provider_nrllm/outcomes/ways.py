"""The ways in which the records of one run ended, of which ADR-185 makes one outcome by precedence. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from airflow_provider_nrllm.outcomes.evidence import Target
from airflow_provider_nrllm.outcomes.rules import PRECEDENCE, ObservedOutcome, outcome_of_run

#: The different outcomes of a run's records, in the order of precedence.
Ways = tuple[ObservedOutcome, ...]


def ways_of(outcomes: Iterable[tuple[Target | None, ObservedOutcome]]) -> Ways | None:
    """
    Return the ways in which the records of a run ended; None if it wrote fewer than two.

    :param outcomes: of each write, with the record it names; a write that names none that can be read is left out
    """
    by_record: dict[Target, list[ObservedOutcome]] = {}
    for target, outcome in outcomes:
        if target is not None:
            by_record.setdefault(target, []).append(outcome)
    if len(by_record) < 2:
        return None
    found = {outcome_of_run(of_record) for of_record in by_record.values()}
    return tuple(value for value in PRECEDENCE if value in found)


@dataclass(slots=True)
class SeveralRecords:
    """
    How many answered runs wrote several records, and in which ways those ended.

    :param runs: how many wrote several
    :param ways: how many of these ended in more than one way, by the ways
    :param untold: of how many of these it cannot be told any more
    """

    runs: int = 0
    ways: Counter[Ways] = field(default_factory=Counter)
    untold: int = 0

    def add(self, ways: Ways) -> None:
        """Count a run that wrote several records."""
        self.runs += 1
        if len(ways) > 1:
            self.ways[ways] += 1

    def update(self, other: SeveralRecords) -> None:
        """Add the counts of others."""
        self.runs += other.runs
        self.untold += other.untold
        self.ways.update(other.ways)

    @property
    def in_several_ways(self) -> int:
        """The number that ended in more than one way."""
        return self.ways.total()

    @property
    def by_words(self) -> Mapping[str, int]:
        """The number that ended in more than one way, by the ways in words, the most first."""
        order = sorted(self.ways.items(), key=lambda found: (-found[1], found[0]))
        return {" + ".join(ways): count for ways, count in order}
