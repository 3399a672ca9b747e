"""
Groups side by side, each source for itself (ADR-176). Pure.

With one dimension, every group stands beside the reference. With two, the groups of the second dimension are compared
within each group of the first, so that a model is never compared across configurations.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from airflow_provider_nrllm.outcomes.rules import ExplicitOutcome, ObservedOutcome
from airflow_provider_nrllm.readout.counts import Group
from airflow_provider_nrllm.readout.groups import Kind, Label
from airflow_provider_nrllm.readout.shares import Difference, PooledDifference, Share


@dataclass(frozen=True, slots=True)
class Comparison:
    """
    One group beside the reference: for each value, by how much its share is above the reference's.

    :param reference: the reference in the same stratum
    """

    group: Group
    reference: Group
    differences: Mapping[str, Difference]


@dataclass(frozen=True, slots=True)
class Pooled:
    """
    One label of the second dimension beside the reference, over all strata in which both have a case.

    :param strata: how many these are
    """

    label: Label
    strata: int
    differences: Mapping[str, PooledDifference]


@dataclass(frozen=True, slots=True)
class Comparisons:
    """
    All groups of one source beside its reference.

    :param reference: what all stand beside: a label of the last dimension
    :param rows: stratum by stratum, in the order of the groups; empty where the reference has no case
    :param pooled: over all strata; empty with one dimension
    """

    reference: Label
    rows: tuple[Comparison, ...]
    pooled: tuple[Pooled, ...] = ()

    def among(self, groups: Sequence[Group]) -> Comparisons:
        """Return only the rows of some groups; the reference and what is pooled stay."""
        shown = {group.key for group in groups}
        rows = tuple(row for row in self.rows if row.group.key in shown)
        return Comparisons(self.reference, rows, self.pooled)


def explicit_comparisons(groups: Sequence[Group], reference: str | None = None) -> Comparisons | None:
    """
    Return the named, rated groups side by side; None where fewer than two could be.

    :param reference: a name of the last dimension; without one, that with the most ratings
    """
    values = {str(ExplicitOutcome.HELPFUL): lambda g: g.explicit.share(ExplicitOutcome.HELPFUL)}
    return _comparisons(groups, lambda g: g.explicit.total, values, reference)


def observed_comparisons(groups: Sequence[Group], reference: str | None = None) -> Comparisons | None:
    """
    Return the named, observed groups side by side; None where fewer than two could be.

    :param reference: a name of the last dimension; without one, that with the most observed runs
    """

    def share_of(value: ObservedOutcome) -> Callable[[Group], Share]:
        return lambda group: group.observed.share(value)

    return _comparisons(
        groups, lambda g: g.observed.total, {str(value): share_of(value) for value in ObservedOutcome}, reference
    )


def _comparisons(
    groups: Sequence[Group],
    size: Callable[[Group], int],
    shares: Mapping[str, Callable[[Group], Share]],
    reference: str | None,
) -> Comparisons | None:
    comparable = [group for group in groups if group.named and size(group)]
    sizes = Counter[Label]()
    for group in comparable:
        sizes[group.key[-1]] += size(group)
    if len(sizes) < 2:
        return None
    beside = max(sizes, key=lambda label: sizes[label]) if reference is None else Label(Kind.NAMED, reference)
    strata: dict[tuple[Label, ...], list[Group]] = {}
    for group in comparable:
        strata.setdefault(group.key[:-1], []).append(group)
    rows = tuple(
        Comparison(group, other, {value: Difference(share(group), share(other)) for value, share in shares.items()})
        for within in strata.values()
        for other in within
        if other.key[-1] == beside
        for group in within
        if group is not other
    )
    return Comparisons(beside, rows, _pooled(rows) if any(strata) else ())


def _pooled(rows: Sequence[Comparison]) -> tuple[Pooled, ...]:
    by_label: dict[Label, list[Comparison]] = {}
    for row in rows:
        by_label.setdefault(row.group.key[-1], []).append(row)
    return tuple(
        Pooled(
            label,
            len(found),
            {
                value: PooledDifference(
                    tuple(d for row in found if (d := row.differences[value]).share.of and d.other.of)
                )
                for value in found[0].differences
            },
        )
        for label, found in by_label.items()
    )
