"""
The geometry of a readout's pictures over time: small multiples on one scale; the template draws them. Pure.

A picture's coordinates are one unit a period across and percent down; the template stretches them to the place
there is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from airflow_provider_nrllm.outcomes.rules import ExplicitOutcome, ObservedOutcome
from airflow_provider_nrllm.readout.cells import cell_text, words
from airflow_provider_nrllm.readout.counts import Group, Period, Readout
from airflow_provider_nrllm.readout.groups import label_text
from airflow_provider_nrllm.readout.over_time import TIMELINE_PERIODS, cases_of, groups_over_time, period_text
from airflow_provider_nrllm.readout.periods import PeriodWidth, between
from airflow_provider_nrllm.readout.shares import Share


@dataclass(frozen=True, slots=True)
class Timeline:
    """
    One group over time; a path is one of SVG.

    :param total: its cases in what is drawn
    :param described: its first and its last share in words
    :param line: the path from share to share; a period without a share interrupts it
    :param whiskers: the path of the intervals
    :param dots: the path of the shares
    :param decided: the path of the bars of the cases that the share is of
    :param others: the path of the bars on top of them: the cases that the share leaves out
    """

    name: str
    total: int
    described: str
    line: str
    whiskers: str
    dots: str
    decided: str
    others: str
    apart: bool


@dataclass(frozen=True, slots=True)
class Timelines:
    """
    A picture with a timeline for each of the largest groups, all on the same scales.

    :param topic: the table it belongs to
    :param value: the value whose share it shows
    :param share: that share in words
    :param cases: what its bars count
    :param length: how many periods it has, those without a case too
    :param ticks: of some periods the place in percent of the width, and when they are
    :param most: the most cases of one group in one period: the top of the scale of counts
    :param left_out: how many periods before those it shows it leaves out
    """

    topic: str
    title: str
    value: str
    share: str
    cases: str
    width: str
    length: int
    ticks: tuple[tuple[float, str], ...]
    most: int
    timelines: tuple[Timeline, ...]
    left_out: int

    @property
    def with_others(self) -> bool:
        """Whether there are cases that the share leaves out."""
        return any(timeline.others for timeline in self.timelines)


def timelines_of(readout: Readout) -> list[Timelines]:
    """Return the pictures over time of each source; a source with cases in fewer than two periods has none."""
    return [
        *_timelines(readout, "observed-over-time", ObservedOutcome.ACCEPTED_UNCHANGED, "among the decided", "runs"),
        *_timelines(readout, "explicit-over-time", ExplicitOutcome.HELPFUL, "among all ratings", "ratings"),
    ]


def _timelines(
    readout: Readout, topic: str, value: ExplicitOutcome | ObservedOutcome, among: str, cases: str
) -> Iterator[Timelines]:
    groups = groups_over_time(readout.groups, value)
    found = {period.first for group in groups for period in group.periods if cases_of(period, value)}
    if len(found) < 2:
        return
    every = list(between(min(found), max(found), readout.width))
    firsts = every[-TIMELINE_PERIODS:]
    place = {first: position for position, first in enumerate(firsts)}
    shown = [
        (group, [period for period in group.periods if period.first in place and cases_of(period, value)])
        for group in groups
    ]
    most = max(cases_of(period, value) for _, periods in shown for period in periods)
    yield Timelines(
        topic,
        f"{words(value).capitalize()} {among}, by {readout.width}",
        str(value),
        f"{words(value)}, {among}",
        cases,
        str(readout.width),
        len(firsts),
        tuple(_ticks(firsts, readout.width)),
        most,
        tuple(_timeline(readout, group, periods, value, place, most) for group, periods in shown),
        len(every) - len(firsts),
    )


def _timeline(
    readout: Readout,
    group: Group,
    periods: Sequence[Period],
    value: ExplicitOutcome | ObservedOutcome,
    place: Mapping[date, int],
    most: int,
) -> Timeline:
    shares = [(place[period.first], period.share(value), cases_of(period, value)) for period in periods]
    with_share = {at: share for at, share, _ in shares if share.of}
    ends = {period.first: period for period in (*periods[:1], *periods[-1:])}.values()
    return Timeline(
        name=label_text(group.key, readout.grouping),
        total=sum(total for _, _, total in shares),
        described="; ".join(
            f"{period_text(period.first, readout.width)}: {cell_text(period.share(value))}" for period in ends
        ),
        line="".join(f"{'L' if at - 1 in with_share else 'M'}{_dot(at, share)}" for at, share in with_share.items()),
        whiskers="".join(_whisker(at, share) for at, share in with_share.items()),
        # A line of no length with a round cap is a dot.
        dots="".join(f"M{_dot(at, share)}h0" for at, share in with_share.items()),
        decided="".join(_bar(at, 0, share.of / most) for at, share, _ in shares),
        others="".join(_bar(at, share.of / most, total / most) for at, share, total in shares),
        apart=not group.named,
    )


def _dot(at: int, share: Share) -> str:
    return f"{at + 0.5} {_down(share.count / share.of)}"


def _whisker(at: int, share: Share) -> str:
    low, high = share.interval or (0, 1)
    return f"M{at + 0.5} {_down(low)}V{_down(high)}"


def _bar(at: int, foot: float, top: float) -> str:
    return f"M{at} {_down(foot)}V{_down(top)}h1V{_down(foot)}z" if top > foot else ""


def _down(share: float) -> float:
    """Return how far below the top a share lies, in percent of the height."""
    return round(100 - 100 * share, 1)


def _ticks(firsts: Sequence[date], width: PeriodWidth) -> Iterator[tuple[float, str]]:
    """Yield the first, the last and, where there is room, the middle period."""
    for position in sorted({0, len(firsts) // 2, len(firsts) - 1} if len(firsts) > 4 else {0, len(firsts) - 1}):
        yield round(100 * (position + 0.5) / len(firsts), 2), period_text(firsts[position], width)
