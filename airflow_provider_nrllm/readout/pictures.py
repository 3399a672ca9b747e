"""
The geometry of a readout's pictures; the page's template draws them as SVG. Pure.

Each picture is of one source. Horizontal places are percentages of the picture's width, so that text keeps its
size however narrow the page is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import ceil

from airflow_provider_nrllm.outcomes.rules import ExplicitOutcome, ObservedOutcome
from airflow_provider_nrllm.readout.cells import lines_of, words
from airflow_provider_nrllm.readout.comparisons import Comparisons, explicit_comparisons, observed_comparisons
from airflow_provider_nrllm.readout.counts import Explicit, Group, Observed, Readout
from airflow_provider_nrllm.readout.groups import label_text
from airflow_provider_nrllm.readout.shares import Difference, PooledDifference, Share

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


@dataclass(frozen=True, slots=True)
class Gap:
    """
    One difference from the reference.

    :param difference: the difference as text
    :param mark: where it and the ends of its interval lie, in percent of the width; None where it has no interval
    """

    name: str
    difference: tuple[str, ...]
    mark: Mark | None
    is_told: bool


@dataclass(frozen=True, slots=True)
class Gaps:
    """
    A picture with the difference of each group from the reference.

    :param topic: the table it belongs to
    :param value: the value whose share is compared
    :param limit: the end of its scale in percentage points, to both sides of 0
    """

    topic: str
    title: str
    value: str
    limit: int
    gaps: tuple[Gap, ...]
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


def gaps_of(readout: Readout) -> list[Gaps]:
    """Return the differences of each source; a source where nothing is compared has none."""
    observed = observed_comparisons(readout.groups, readout.reference)
    explicit = explicit_comparisons(readout.groups, readout.reference)
    return [
        *_gaps(readout, "observed", ObservedOutcome.ACCEPTED_UNCHANGED, observed),
        *_gaps(readout, "explicit", ExplicitOutcome.HELPFUL, explicit),
    ]


def _gaps(readout: Readout, source: str, value: StrEnum, compared: Comparisons | None) -> Iterator[Gaps]:
    if compared is None:
        return
    last = readout.grouping[-1]
    rows: list[tuple[str, Difference | PooledDifference]] = [
        (label_text(row.group.key, readout.grouping), row.differences[str(value)]) for row in compared.rows
    ]
    pooled: list[tuple[str, Difference | PooledDifference]] = [
        (row.label.text(last), row.differences[str(value)]) for row in compared.pooled
    ]
    # A pooled difference stands beside those it is made of, so both have one scale.
    ends = [abs(end) for _, difference in (*rows, *pooled) for end in difference.interval or ()]
    limit = min(10 * ceil(10 * max(ends, default=1.0)), 100)
    title = f"{words(str(value)).capitalize()}: percentage points above or below {compared.reference.text(last)}"
    for topic, found in (("compared", rows), ("pooled", pooled)):
        shown = [(name, difference) for name, difference in found if difference.value is not None]
        gaps = tuple(
            Gap(name, lines_of(difference), _place(difference, limit), difference.is_told)
            for name, difference in shown[:PICTURE_GROUPS]
        )
        if gaps:
            yield Gaps(f"{source}-{topic}", title, str(value), limit, gaps, len(shown) - len(gaps))


def _place(difference: Difference | PooledDifference, limit: int) -> Mark | None:
    if difference.value is None or difference.interval is None:
        return None
    at, low, high = (round(50 + 5000 * points / limit, 2) for points in (difference.value, *difference.interval))
    return Mark(at, low, high)


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
