"""
The figures of a readout, the two sources apart (ADR-176). Pure.

A correlation id counts once in a source, however many calls it made. No figure is made of both sources.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from enum import StrEnum
from typing import Never

from airflow_provider_nrllm.edits.meanings import Meaning
from airflow_provider_nrllm.outcomes.rules import ExplicitOutcome, ObservedOutcome
from airflow_provider_nrllm.readout.groups import Dimension, Key, Kind
from airflow_provider_nrllm.readout.shares import Difference, Share


class RangeOf(StrEnum):
    """Whose time has to be in the range."""

    OUTCOME = "outcome"
    RUN = "run"

    @classmethod
    def _missing_(cls, value: object) -> Never:
        raise ValueError(f"range_of is {value!r}; expected {' or '.join(map(repr, map(str, cls)))}")


@dataclass(frozen=True, slots=True)
class Explicit:
    """The ratings by people: correlation ids by rating."""

    counts: Mapping[ExplicitOutcome, int]

    @property
    def total(self) -> int:
        """How many correlation ids are rated."""
        return sum(self.counts.values())

    def share(self, value: ExplicitOutcome) -> Share:
        """Return the share among all ratings."""
        return Share(self.counts.get(value, 0), self.total)


@dataclass(frozen=True, slots=True)
class Observed:
    """What the derivation saw: runs by outcome."""

    counts: Mapping[ObservedOutcome, int]

    @property
    def total(self) -> int:
        """How many runs are answered, ``unknown`` among them."""
        return sum(self.counts.values())

    def share(self, value: ObservedOutcome) -> Share:
        """
        Return the share among those decided; of ``unknown``, the share of all.

        So a group that is mostly unknown cannot look good.
        """
        unknown = self.counts.get(ObservedOutcome.UNKNOWN, 0)
        of = self.total if value is ObservedOutcome.UNKNOWN else self.total - unknown
        return Share(self.counts.get(value, 0), of)


@dataclass(frozen=True, slots=True)
class EditedRuns:
    """The runs answered ``edited``, by what their edits are to the run's text."""

    counts: Mapping[Meaning, int]

    @property
    def total(self) -> int:
        """How many runs were looked at."""
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
class Usage:
    """
    What the calls of a group took, as far as it was measured; what was not measured is not zero.

    :param calls: provider calls
    :param cost: sum over the calls whose cost is known
    :param cost_known: of how many calls it is
    :param latency_ms: sum over the calls whose latency is known, milliseconds
    :param latency_known: of how many calls it is
    """

    calls: int = 0
    cost: float = 0.0
    cost_known: int = 0
    latency_ms: float = 0.0
    latency_known: int = 0

    @property
    def cost_per_call(self) -> float | None:
        """The mean cost of a call, where it is known of any."""
        return self.cost / self.cost_known if self.cost_known else None

    @property
    def latency_per_call(self) -> float | None:
        """The mean latency of a call in milliseconds, where it is known of any."""
        return self.latency_ms / self.latency_known if self.latency_known else None


@dataclass(frozen=True, slots=True)
class Group:
    """
    The correlation ids of one group, and what became of them.

    :param edited: what the edits of its ``edited`` runs are to the run's text, where that was asked for
    """

    key: Key
    explicit: Explicit
    observed: Observed
    usage: Usage = field(default_factory=Usage)
    edited: EditedRuns | None = None

    @property
    def named(self) -> bool:
        """Whether it stands for one value of each dimension, and can be compared with another."""
        return all(label.kind is Kind.NAMED for label in self.key)


@dataclass(frozen=True, slots=True)
class Day:
    """The outcomes of one day, UTC."""

    day: date
    explicit: Explicit
    observed: Observed


@dataclass(frozen=True, slots=True)
class Readout:
    """
    What was counted.

    :param start: the first second of the range, None for an open one
    :param end: the first second after it
    :param range_of: whose time is in the range
    :param grouping: by what it is grouped
    :param groups: as :func:`in_order` has them
    :param days: those with any outcome, in order
    :param without_run: ratings that fall in no range of the run's time, since they have no run
    :param audited: whether it was asked what the edits are to the run's text
    """

    start: int | None
    end: int
    range_of: RangeOf
    grouping: tuple[Dimension, ...]
    groups: tuple[Group, ...]
    days: tuple[Day, ...]
    without_run: int = 0
    audited: bool = False

    @property
    def in_words(self) -> str:
        """The range in words."""
        return range_in_words(self.start, self.end, self.range_of)


def range_in_words(start: int | None, end: int, range_of: RangeOf) -> str:
    """Return a range in words."""
    since = "the beginning" if start is None else utc(start)
    return f"from {since} to before {utc(end)}, by the time of the {range_of.value}"


def utc(second: int) -> str:
    """Return a Unix time as ISO 8601 text."""
    return datetime.fromtimestamp(second, UTC).isoformat().replace("+00:00", "Z")


def in_order(groups: Iterable[Group], size: Callable[[Group], int] = lambda g: g.observed.total) -> tuple[Group, ...]:
    """Return the groups by observed runs, then by ratings, the most first; those that are no single name last."""
    return tuple(sorted(groups, key=lambda g: (not g.named, -size(g), -g.explicit.total, [*map(tuple, g.key)])))


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
