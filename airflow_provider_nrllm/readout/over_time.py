"""
A share over time, of the largest groups of one source (ADR-176), as a table. Pure.

The pictures of :mod:`airflow_provider_nrllm.readout.timelines` show the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date

from airflow_provider_nrllm.outcomes.rules import ExplicitOutcome, ObservedOutcome
from airflow_provider_nrllm.readout.cells import Row, Table, counted, words
from airflow_provider_nrllm.readout.counts import Group, Period, Readout
from airflow_provider_nrllm.readout.groups import label_text
from airflow_provider_nrllm.readout.periods import PeriodWidth
from airflow_provider_nrllm.readout.shares import Share

#: The most groups that are shown over time: the largest; JSON and CSV have all.
TIMELINE_GROUPS = 6

#: The most periods that are shown: the last ones. Two years of weeks have 106.
TIMELINE_PERIODS = 120


def cases_of(counts: Group | Period, value: ExplicitOutcome | ObservedOutcome) -> int:
    """Return the cases of the source that a value is of."""
    return counts.explicit.total if isinstance(value, ExplicitOutcome) else counts.observed.total


def groups_over_time(groups: Sequence[Group], value: ExplicitOutcome | ObservedOutcome) -> list[Group]:
    """Return the groups that are shown over time: the largest of the source that are one name, if there is any."""
    with_cases = [group for group in groups if any(cases_of(period, value) for period in group.periods)]
    shown = [group for group in with_cases if group.named] or with_cases
    return sorted(shown, key=lambda group: -cases_of(group, value))[:TIMELINE_GROUPS]


def period_text(first: date, width: PeriodWidth) -> str:
    """Return when a period is: its month, or its first day."""
    return f"{first:%Y-%m}" if width is PeriodWidth.MONTH else first.isoformat()


def tables_over_time(
    readout: Readout, source: str, value: ExplicitOutcome | ObservedOutcome, among: str
) -> Iterator[Table]:
    """Yield the share of a value by period; nothing where all cases are of one period."""
    groups = groups_over_time(readout.groups, value)
    found = [{period.first: period for period in group.periods if cases_of(period, value)} for group in groups]
    firsts = sorted({first for periods in found for first in periods})
    if len(firsts) < 2:
        return
    rows = [
        Row(
            period_text(first, readout.width),
            tuple(periods[first].share(value) if first in periods else Share(0, 0) for periods in found),
        )
        for first in firsts[-TIMELINE_PERIODS:]
    ]
    more = len(firsts) - len(rows)
    every = sum(1 for group in readout.groups if group.named and cases_of(group, value))
    which = f"the {len(groups)} largest of {every} groups" if every > len(groups) else "each group"
    earlier = f" Left out here: {counted(more, f'earlier {readout.width}')}." if more else ""
    starts = {PeriodWidth.DAY: "Days", PeriodWidth.WEEK: "Weeks from Monday", PeriodWidth.MONTH: "Months"}
    yield Table(
        f"{source}-over-time",
        f"{source.capitalize()}: over time",
        f"Share {words(value)} {among} of {which}, by {readout.width}, with its 95 % interval. "
        f"{starts[readout.width]}, UTC; the first and the last may be cut by the range.{earlier}",
        (str(readout.width).capitalize(), *(label_text(group.key, readout.grouping) for group in groups)),
        tuple(rows),
        groups_in_head=True,
    )
