"""Groups side by side, each source for itself (ADR-176). Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from airflow_provider_nrllm.outcomes.rules import ExplicitOutcome, ObservedOutcome
from airflow_provider_nrllm.readout.counts import Group
from airflow_provider_nrllm.readout.shares import Difference, Share


@dataclass(frozen=True, slots=True)
class Comparison:
    """One group beside the reference: for each value, by how much its share is above the reference's."""

    group: Group
    differences: Mapping[str, Difference]


@dataclass(frozen=True, slots=True)
class Comparisons:
    """All groups of one source beside its reference: the group with the most cases of that source."""

    reference: Group
    rows: tuple[Comparison, ...]

    def among(self, groups: Sequence[Group]) -> Comparisons:
        """Return only the rows of some groups; the reference stays."""
        shown = {group.key for group in groups}
        return Comparisons(self.reference, tuple(row for row in self.rows if row.group.key in shown))


def explicit_comparisons(groups: Sequence[Group]) -> Comparisons | None:
    """Return the named, rated groups beside the one with the most ratings; None for fewer than two."""
    values = {str(ExplicitOutcome.HELPFUL): lambda g: g.explicit.share(ExplicitOutcome.HELPFUL)}
    return _comparisons([g for g in groups if g.explicit.total], lambda g: g.explicit.total, values)


def observed_comparisons(groups: Sequence[Group]) -> Comparisons | None:
    """Return the named, observed groups beside the one with the most observed runs; None for fewer than two."""

    def share_of(value: ObservedOutcome) -> Callable[[Group], Share]:
        return lambda group: group.observed.share(value)

    values = {str(value): share_of(value) for value in ObservedOutcome}
    return _comparisons([g for g in groups if g.observed.total], lambda g: g.observed.total, values)


def _comparisons(
    groups: Sequence[Group], size: Callable[[Group], int], shares: Mapping[str, Callable[[Group], Share]]
) -> Comparisons | None:
    comparable = [group for group in groups if group.named]
    if len(comparable) < 2:
        return None
    reference = max(comparable, key=size)
    rows = [
        Comparison(group, {value: Difference(share(group), share(reference)) for value, share in shares.items()})
        for group in comparable
        if group is not reference
    ]
    return Comparisons(reference, tuple(rows))
