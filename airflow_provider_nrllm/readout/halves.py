"""
Whether a share changed: the later half of a source's cases beside the earlier (ADR-176: each for itself). Pure.

The halves meet at the beginning of a period, so that an odd outcome of long ago does not move them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from itertools import pairwise

from airflow_provider_nrllm.outcomes.rules import ExplicitOutcome, ObservedOutcome
from airflow_provider_nrllm.readout.cells import Row, Table, by_words, words
from airflow_provider_nrllm.readout.counts import Group, Period, Readout, pooled
from airflow_provider_nrllm.readout.groups import label_text
from airflow_provider_nrllm.readout.over_time import cases_of, period_text
from airflow_provider_nrllm.readout.shares import Difference, Share


@dataclass(frozen=True, slots=True)
class Change:
    """The share of a group in the earlier and in the later half."""

    group: Group
    earlier: Share
    later: Share

    @property
    def difference(self) -> Difference:
        """By how much the later share is above the earlier."""
        return Difference(self.later, self.earlier)


@dataclass(frozen=True, slots=True)
class Changes:
    """
    The changes of the groups that are one name, in the order of the groups.

    :param value: whose share it is
    :param since: the first day of the later half
    """

    value: ExplicitOutcome | ObservedOutcome
    since: date
    rows: tuple[Change, ...]

    def among(self, groups: Sequence[Group]) -> Changes:
        """Return only the rows of some groups."""
        shown = {group.key for group in groups}
        return replace(self, rows=tuple(row for row in self.rows if row.group.key in shown))


def changes_of(readout: Readout, value: ExplicitOutcome | ObservedOutcome) -> Changes | None:
    """Return how the share of a value changed in each group; None where all cases are of one period."""
    periods = [period for period in readout.periods if cases_of(period, value)]
    since = _middle(periods, value)
    if since is None:
        return None
    rows = (
        Change(
            group,
            _share([period for period in group.periods if period.first < since], value),
            _share([period for period in group.periods if period.first >= since], value),
        )
        for group in readout.groups
        if group.named and any(cases_of(period, value) for period in group.periods)
    )
    return Changes(value, since, tuple(rows))


def _middle(periods: Sequence[Period], value: ExplicitOutcome | ObservedOutcome) -> date | None:
    """Return the first period, but not the first of all, before which there is half of the cases; else the last."""
    half, before = sum(cases_of(period, value) for period in periods) / 2, 0
    for earlier, later in pairwise(periods):
        before += cases_of(earlier, value)
        if before >= half:
            return later.first
    return periods[-1].first if len(periods) > 1 else None


def _share(periods: Sequence[Period], value: ExplicitOutcome | ObservedOutcome) -> Share:
    explicit, observed = pooled(periods)
    return explicit.share(value) if isinstance(value, ExplicitOutcome) else observed.share(value)


def tables_of_change(
    readout: Readout, groups: Sequence[Group], source: str, value: ExplicitOutcome | ObservedOutcome
) -> Iterator[Table]:
    """Yield the later half beside the earlier; nothing where all cases are of one period, or of no one name."""
    changes = changes_of(readout, value)
    rows = changes.among(groups).rows if changes else ()
    if changes is None or not rows:
        return
    since = period_text(changes.since, readout.width)
    yield Table(
        f"{source}-change",
        f"{source.capitalize()}: the later half beside the earlier",
        f"Share {words(value)} before {since} and from then on, when half of all cases were there, and by how many "
        "percentage points it changed, with Newcombe's 95 % interval. Where the interval holds 0, it cannot be told "
        "yet whether it rose or fell. With many groups, some intervals miss by chance.",
        (by_words(readout.grouping).capitalize(), f"Before {since}", f"From {since} on", "Change"),
        tuple(
            Row(label_text(change.group.key, readout.grouping), (change.earlier, change.later, change.difference))
            for change in rows
        ),
    )
