"""
The figures of a readout, the two sources apart (ADR-176). Pure.

A correlation id counts once in a source, however many calls it made. No figure is made of both sources.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import UTC, date, datetime
from enum import StrEnum
from typing import Never

from airflow_provider_nrllm.outcomes.partitions import DAY
from airflow_provider_nrllm.outcomes.rules import ExplicitOutcome, ObservedOutcome
from airflow_provider_nrllm.readout.audited import AuditedRuns
from airflow_provider_nrllm.readout.coverage import Coverage
from airflow_provider_nrllm.readout.groups import Dimension, GroupKey, Kind
from airflow_provider_nrllm.readout.periods import PeriodWidth, Point
from airflow_provider_nrllm.readout.shares import Share


class RangeOf(StrEnum):
    """
    Whose time has to be in the range.

    ``outcome``: of an observed one when its run settled, of a rating when it was given; ``recorded``: when the
    outcome was recorded; ``run``: when the run was made.
    """

    OUTCOME = "outcome"
    RECORDED = "recorded"
    RUN = "run"

    @classmethod
    def _missing_(cls, value: object) -> Never:
        raise ValueError(f"range_of is {value!r}; expected {', '.join(map(repr, map(str, cls)))}")


@dataclass(frozen=True, slots=True)
class Usage:
    """
    What the calls of some correlation ids took, as far as it was measured; what was not measured is not zero.

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

    def __add__(self, other: Usage) -> Usage:
        return Usage(*(getattr(self, each.name) + getattr(other, each.name) for each in fields(self)))

    @property
    def cost_per_call(self) -> float | None:
        """The mean cost of a call, where it is known of any."""
        return self.cost / self.cost_known if self.cost_known else None

    @property
    def latency_per_call(self) -> float | None:
        """The mean latency of a call in milliseconds, where it is known of any."""
        return self.latency_ms / self.latency_known if self.latency_known else None


@dataclass(frozen=True, slots=True)
class Explicit:
    """
    The ratings by people: correlation ids by rating.

    :param usage: what the calls of the rated ids took
    """

    counts: Mapping[ExplicitOutcome, int]
    usage: Usage = Usage()

    @property
    def total(self) -> int:
        """The number of rated correlation ids."""
        return sum(self.counts.values())

    def share(self, value: ExplicitOutcome) -> Share:
        """Return the share among all ratings."""
        return Share(self.counts.get(value, 0), self.total)


@dataclass(frozen=True, slots=True)
class Observed:
    """
    What the derivation saw: runs by outcome.

    :param usage: what the calls of the runs took
    """

    counts: Mapping[ObservedOutcome, int]
    usage: Usage = Usage()

    @property
    def total(self) -> int:
        """The number of answered runs, ``unknown`` among them."""
        return sum(self.counts.values())

    def share(self, value: ObservedOutcome) -> Share:
        """
        Return the share among those decided; of ``unknown``, the share of all.

        So a group that is mostly unknown cannot look good.
        """
        unknown = self.counts.get(ObservedOutcome.UNKNOWN, 0)
        of = self.total if value is ObservedOutcome.UNKNOWN else self.total - unknown
        return Share(self.counts.get(value, 0), of)

    @property
    def cost_per_accepted(self) -> float | None:
        """
        What all the runs cost, by run accepted unchanged.

        None without such a run, or where the cost of a call is not known: what is missing would make it look cheap.
        """
        accepted = self.counts.get(ObservedOutcome.ACCEPTED_UNCHANGED, 0)
        known = 0 < self.usage.calls == self.usage.cost_known
        return self.usage.cost / accepted if accepted and known else None


@dataclass(frozen=True, slots=True)
class Period:
    """
    The outcomes of one day, week or month.

    :param first: its first day, UTC
    """

    first: date
    explicit: Explicit
    observed: Observed

    def share(self, value: ExplicitOutcome | ObservedOutcome) -> Share:
        """Return the share of a value in its own source."""
        return self.explicit.share(value) if isinstance(value, ExplicitOutcome) else self.observed.share(value)


@dataclass(frozen=True, slots=True)
class Group:
    """
    The correlation ids of one group, and what became of them.

    :param audit: what its observed outcomes are worth, where that was asked for
    :param periods: its outcomes over time: those periods that have any, in order
    """

    key: GroupKey
    explicit: Explicit
    observed: Observed
    audit: AuditedRuns | None = None
    periods: tuple[Period, ...] = ()

    @property
    def named(self) -> bool:
        """Whether it stands for one value of each dimension, and can be compared with another."""
        return all(label.kind is Kind.NAMED for label in self.key)

    def over_time(self, value: ExplicitOutcome | ObservedOutcome) -> tuple[Point, ...]:
        """Return the share of a value in its own source, period by period; without a case there is no point."""
        return over_time(self.periods, value)


@dataclass(frozen=True, slots=True)
class Readout:
    """
    What was counted.

    :param start: the first second of the range, None for an open one
    :param end: the first second after it
    :param range_of: whose time is in the range
    :param grouping: by what it is grouped
    :param groups: as :func:`in_order` has them
    :param periods: all groups together over time: those periods that have any outcome, in order
    :param without_run: ratings that fall in no range of the run's time, since they have no run
    :param audited: whether it was asked what the observed outcomes are worth
    :param width: how long a period is
    :param window: how long a record is watched after a write, in seconds; by it an observed outcome is dated
    :param where: the names that count, by dimension; empty: all
    :param coverage: on the runs made in the range, whatever ``where`` says
    :param currency: the unit of what telemetry calls cost; empty where it was not given
    :param sites: the Airflow connections of the sites it is of
    :param sites_failed: those that could not be read, and the kind of the error
    :param reference: the name in the last dimension that the others stand beside; None for the one with most cases
    """

    start: int | None
    end: int
    range_of: RangeOf
    grouping: tuple[Dimension, ...]
    groups: tuple[Group, ...]
    periods: tuple[Period, ...]
    without_run: int = 0
    audited: bool = False
    width: PeriodWidth = PeriodWidth.DAY
    reference: str | None = None
    window: int = 7 * DAY
    where: Mapping[Dimension, Sequence[str]] = field(default_factory=dict)
    coverage: Coverage = field(default_factory=Coverage)
    currency: str = ""
    sites: tuple[str, ...] = ()
    sites_failed: Mapping[str, str] = field(default_factory=dict)

    @property
    def in_words(self) -> str:
        """The range in words."""
        return range_in_words(self.start, self.end)

    @property
    def dated_in_words(self) -> str:
        """Whose time has to be in the range, as a sentence."""
        return dated_in_words(self.range_of, self.window)


def range_in_words(start: int | None, end: int) -> str:
    """Return a range in words."""
    since = "the beginning" if start is None else utc(start)
    return f"from {since} to before {utc(end)}"


def dated_in_words(range_of: RangeOf, window: int) -> str:
    """Return whose time has to be in the range, as a sentence."""
    if range_of is RangeOf.RECORDED:
        return "An outcome counts when it was recorded."
    if range_of is RangeOf.RUN:
        return "An outcome counts when its run was made."
    return (
        f"An observed outcome counts when its run settled: a window ({window / DAY:.6g} d) after the run ended, or "
        "when it was recorded, if that was earlier or the run is purged. A rating counts when it was given."
    )


def utc(second: int) -> str:
    """Return a Unix time as ISO 8601 text."""
    return datetime.fromtimestamp(second, UTC).isoformat().replace("+00:00", "Z")


def over_time(periods: Iterable[Period], value: ExplicitOutcome | ObservedOutcome) -> tuple[Point, ...]:
    """Return the share of a value in its own source, period by period; without a case there is no point."""
    points = (Point(period.first, period.share(value)) for period in periods)
    return tuple(point for point in points if point.share.of)


def pooled(periods: Iterable[Period]) -> tuple[Explicit, Observed]:
    """Return the counts of all periods together, the two sources apart."""
    explicit, observed = Counter[ExplicitOutcome](), Counter[ObservedOutcome]()
    of_explicit, of_observed = Usage(), Usage()
    for period in periods:
        explicit.update(period.explicit.counts)
        observed.update(period.observed.counts)
        of_explicit += period.explicit.usage
        of_observed += period.observed.usage
    return (
        Explicit({value: explicit[value] for value in ExplicitOutcome}, of_explicit),
        Observed({value: observed[value] for value in ObservedOutcome}, of_observed),
    )


def together(groups: Iterable[Iterable[Period]]) -> tuple[Period, ...]:
    """Return all groups together over time, in order."""
    by_first: dict[date, list[Period]] = {}
    for periods in groups:
        for period in periods:
            by_first.setdefault(period.first, []).append(period)
    return tuple(Period(first, *pooled(by_first[first])) for first in sorted(by_first))


def in_order(groups: Iterable[Group], size: Callable[[Group], int] = lambda g: g.observed.total) -> tuple[Group, ...]:
    """Return the groups by observed runs, then by ratings, the most first; those that are no single name last."""
    return tuple(sorted(groups, key=lambda g: (not g.named, -size(g), -g.explicit.total, [*map(tuple, g.key)])))
