"""
The geometry of a readout's pictures; the page's template draws them as SVG. Pure.

Each picture is of one source. Horizontal places are percentages of the picture's width, so that text keeps its
size however narrow the page is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from airflow_provider_nrllm.outcomes.rules import ExplicitOutcome, ObservedOutcome
from airflow_provider_nrllm.readout.cells import lines_of, words
from airflow_provider_nrllm.readout.counts import Explicit, Group, Observed, Readout
from airflow_provider_nrllm.readout.groups import label_text
from airflow_provider_nrllm.readout.shares import Share

#: The most groups in a picture; the tables have all.
PICTURE_GROUPS = 30


@dataclass(frozen=True, slots=True)
class Segment:
    """
    A part of a bar: the cases of one value.

    :param start: where it begins, in percent of the whole
    :param length: how long it is, in percent of the whole
    :param label: the count, or nothing where it would not fit in
    """

    value: str
    start: float
    length: float
    label: str = ""


@dataclass(frozen=True, slots=True)
class Mark:
    """A share and the ends of its interval, in percent."""

    at: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Bar:
    """
    One group: all its cases by value, and one share with its interval.

    :param apart: whether it is no single name and stands below the others
    :param share: the share as text; its first part is the figure, the others say how sure it is
    :param mark: None where there is no share
    """

    name: str
    total: int
    segments: tuple[Segment, ...]
    described: str
    share: tuple[str, ...]
    mark: Mark | None
    apart: bool


@dataclass(frozen=True, slots=True)
class Bars:
    """
    A picture with a bar for each group.

    :param topic: the table it belongs to
    :param values: the values of its source, as its legend has them
    :param cases: what its bars count
    :param value: the value whose share its marks show
    :param share: that share in words
    :param left_out: how many groups it does not show
    """

    topic: str
    title: str
    values: tuple[str, ...]
    cases: str
    value: str
    share: str
    bars: tuple[Bar, ...]
    left_out: int


def bars_of(readout: Readout) -> list[Bars]:
    """Return the bars of each source; a source without a case has none."""
    observed = [
        _bar(readout, group, group.observed, group.observed.share(ObservedOutcome.ACCEPTED_UNCHANGED), ObservedOutcome)
        for group in readout.groups
    ]
    explicit = [
        _bar(readout, group, group.explicit, group.explicit.share(ExplicitOutcome.HELPFUL), ExplicitOutcome)
        for group in readout.groups
    ]
    return [
        *_bars("observed", "Observed outcomes of each group", "runs", "among the decided", ObservedOutcome, observed),
        *_bars("explicit", "Ratings of each group", "ratings", "among all ratings", ExplicitOutcome, explicit),
    ]


def _bars(
    topic: str, title: str, cases: str, among: str, outcomes: type[StrEnum], bars: Sequence[Bar]
) -> Iterator[Bars]:
    bars = [bar for bar in bars if bar.total]
    shown, values = tuple(bars[:PICTURE_GROUPS]), tuple(map(str, outcomes))
    if shown:
        share = f"{words(values[0])}, {among}"
        yield Bars(topic, title, values, cases, values[0], share, shown, len(bars) - len(shown))


def _bar(readout: Readout, group: Group, source: Explicit | Observed, share: Share, outcomes: type[StrEnum]) -> Bar:
    found = {str(value): count for value, count in source.counts.items()}
    counts = {str(value): found.get(str(value), 0) for value in outcomes}
    described = ", ".join(f"{count} {words(value)}" for value, count in counts.items())
    name = label_text(group.key, readout.grouping)
    return Bar(name, source.total, segments(counts), described, lines_of(share), mark(share), apart=not group.named)


def segments(counts: Mapping[str, int]) -> tuple[Segment, ...]:
    """Return the parts of a bar that is as long as the picture is wide; a value without a case has none."""
    total, before, found = sum(counts.values()), 0, []
    for value, count in counts.items():
        if count:
            start, length = percent_of(before, total), percent_of(count, total)
            # Of a picture 358 pixels wide, a digit takes about 2 percent.
            label = str(count) if length >= 2 * len(str(count)) + 2 else ""
            found.append(Segment(value, start, length, label))
        before += count
    return tuple(found)


def mark(share: Share) -> Mark | None:
    """Return where a share and the ends of its interval lie; None of no case."""
    if share.value is None or share.interval is None:
        return None
    low, high = share.interval
    return Mark(_percent(share.value), _percent(low), _percent(high))


def percent_of(count: int, total: int) -> float:
    """Return how many percent of the total a count is, rounded to what can be drawn."""
    return _percent(count / total)


def _percent(share: float) -> float:
    return round(100 * share, 2)
