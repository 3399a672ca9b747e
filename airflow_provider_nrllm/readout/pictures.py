"""
The pictures of a readout, as SVG to be laid into a page. Needs Matplotlib, which the extra ``readout`` brings.

Each is of one source. Colours are Okabe and Ito's, which colour-blind people tell apart; hatching and marks tell
the values apart in black and white.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from enum import StrEnum
from typing import Any

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, PercentFormatter

from airflow_provider_nrllm.outcomes.rules import ExplicitOutcome, ObservedOutcome
from airflow_provider_nrllm.readout.counts import Day, Group, Readout
from airflow_provider_nrllm.readout.groups import label_text, readable
from airflow_provider_nrllm.readout.shares import Share
from airflow_provider_nrllm.readout.svg import embeddable
from airflow_provider_nrllm.readout.tables import words

#: The most groups in a picture; the tables have all.
PICTURE_GROUPS = 30

#: The most characters of a name in a picture; the tables have all.
NAME_LENGTH = 28


@dataclass(frozen=True, slots=True)
class Look:
    """How one value is drawn."""

    color: str
    hatch: str


LOOKS: Mapping[StrEnum, Look] = {
    ExplicitOutcome.HELPFUL: Look("#0072B2", ""),
    ExplicitOutcome.NOT_HELPFUL: Look("#E69F00", "///"),
    ObservedOutcome.ACCEPTED_UNCHANGED: Look("#009E73", ""),
    ObservedOutcome.EDITED: Look("#F0E442", "///"),
    ObservedOutcome.DISCARDED: Look("#D55E00", "xxx"),
    ObservedOutcome.UNKNOWN: Look("#DDDDDD", "..."),
}


@dataclass(frozen=True, slots=True)
class Picture:
    """
    An SVG with its title and a description in words.

    :param topic: the table it belongs to
    """

    topic: str
    title: str
    description: str
    svg: str


def pictures_of(readout: Readout) -> list[Picture]:
    """Return the pictures of a readout; one for which there is no case is left out."""
    rated = [group for group in readout.groups if group.explicit.total][:PICTURE_GROUPS]
    observed = [group for group in readout.groups if group.observed.total][:PICTURE_GROUPS]
    pictures = []
    if rated:
        pictures.append(_helpful_dots(readout, rated))
        pictures.append(_days("explicit", readout.days, ExplicitOutcome, lambda day: day.explicit.counts))
    if observed:
        pictures.append(_observed_bars(readout, observed))
        pictures.append(_accepted_dots(readout, observed))
        pictures.append(_days("observed", readout.days, ObservedOutcome, lambda day: day.observed.counts))
    return pictures


def _observed_bars(readout: Readout, groups: Sequence[Group]) -> Picture:
    """Stacked bars of the four values among all observed runs, so that what is unknown is seen."""

    def draw(axes: Axes) -> None:
        left = [0.0] * len(groups)
        for value in ObservedOutcome:
            shares = [group.observed.counts.get(value, 0) / group.observed.total for group in groups]
            look = LOOKS[value]
            axes.barh(
                range(len(groups)), shares, left=left, height=0.7, label=words(value),
                color=look.color, hatch=look.hatch, edgecolor="#333333", linewidth=0.6,
            )  # fmt: skip
            left = [before + share for before, share in zip(left, shares, strict=True)]
        _name_rows(axes, [_name(readout, group, group.observed.total) for group in groups])
        axes.set_xlim(0, 1)
        axes.set_xlabel("Share of all observed runs")

    parts = (
        f"{_label(readout, group)}: "
        + ", ".join(f"{words(value)} {group.observed.counts.get(value, 0)}" for value in ObservedOutcome)
        for group in groups
    )
    title = "Observed outcomes of each group"
    described = f"Stacked bars of the shares of the four observed outcomes. Runs: {'; '.join(parts)}."
    return _picture("observed", title, described, draw, len(groups), legend=True)


def _helpful_dots(readout: Readout, groups: Sequence[Group]) -> Picture:
    return _dots(
        readout, groups, "explicit", "Share helpful among all ratings",
        ExplicitOutcome.HELPFUL, lambda group: group.explicit.share(ExplicitOutcome.HELPFUL),
    )  # fmt: skip


def _accepted_dots(readout: Readout, groups: Sequence[Group]) -> Picture:
    return _dots(
        readout, groups, "observed", "Share accepted unchanged among the decided runs",
        ObservedOutcome.ACCEPTED_UNCHANGED, lambda group: group.observed.share(ObservedOutcome.ACCEPTED_UNCHANGED),
    )  # fmt: skip


def _dots(
    readout: Readout,
    groups: Sequence[Group],
    topic: str,
    title: str,
    value: StrEnum,
    share_of: Callable[[Group], Share],
) -> Picture:
    """A dot for the share of each group, with its 95 % interval as a line; a group without a share has neither."""
    shares = [share_of(group) for group in groups]

    def draw(axes: Axes) -> None:
        for row, share in enumerate(shares):
            if share.value is None or share.interval is None:
                axes.annotate("no case", (0.01, row), va="center", fontsize=9, color="#333333")
                continue
            axes.hlines(row, *share.interval, color="#333333", linewidth=2)
            axes.plot(share.value, row, marker="o", markersize=9, color=LOOKS[value].color, markeredgecolor="#333333")
        _name_rows(axes, [_name(readout, group, share.of) for group, share in zip(groups, shares, strict=True)])
        axes.set_xlim(-0.02, 1.02)
        axes.set_xlabel("Share, with its 95 % interval")

    parts = (
        f"{_label(readout, group)}: {share.count} of {share.of}" for group, share in zip(groups, shares, strict=True)
    )
    described = f"A dot for each group, and a line for its 95 % interval. {'; '.join(parts)}."
    return _picture(topic, f"{title}, with its interval", described, draw, len(groups))


def _days(
    topic: str, days: Sequence[Day], values: type[StrEnum], counts_of: Callable[[Day], Mapping[Any, int]]
) -> Picture:
    """Steps of the outcomes of each day, the values on top of each other; a day without any is a gap."""
    by_day = {day.day: counts_of(day) for day in days}
    first, last = days[0].day, days[-1].day
    dates = [first + timedelta(days=number) for number in range((last - first).days + 1)]
    # Matplotlib counts days from the epoch.
    start = (first - date(1970, 1, 1)).days
    edges = list(range(start, start + len(dates) + 1))

    def draw(axes: Axes) -> None:
        bottom = [0] * len(dates)
        for value in values:
            top = [below + by_day.get(day, {}).get(value, 0) for day, below in zip(dates, bottom, strict=True)]
            look = LOOKS[value]
            axes.stairs(
                top, edges, baseline=bottom, fill=True, label=words(value),
                facecolor=look.color, hatch=look.hatch, edgecolor="#333333", linewidth=0.6,
            )  # fmt: skip
            bottom = top
        axes.xaxis_date()
        locator = AutoDateLocator(minticks=2, maxticks=10)
        axes.xaxis.set_major_locator(locator)
        axes.xaxis.set_major_formatter(ConciseDateFormatter(locator))
        axes.yaxis.set_major_locator(MaxNLocator(integer=True))
        axes.set_xlim(edges[0], edges[-1])
        axes.set_ylim(bottom=0)
        axes.set_xlabel("Day, UTC")
        axes.set_ylabel("Correlation ids")

    totals = ", ".join(f"{words(value)} {sum(counts.get(value, 0) for counts in by_day.values())}" for value in values)
    described = f"Outcomes of each day from {first} to {last}, on top of each other. In all: {totals}."
    return _picture(topic, f"{topic.capitalize()} outcomes per day", described, draw, 7, legend=True)


def _label(readout: Readout, group: Group) -> str:
    return readable(label_text(group.key, readout.grouping))


def _name(readout: Readout, group: Group, number: int) -> str:
    name = _label(readout, group)
    return f"{name if len(name) <= NAME_LENGTH else name[: NAME_LENGTH - 1] + '…'}  ({number})"


def _name_rows(axes: Axes, names: Sequence[str]) -> None:
    axes.set_yticks(range(len(names)))
    # A name is data: a dollar sign in it begins no formula.
    axes.set_yticklabels(names, parse_math=False)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.xaxis.set_major_formatter(PercentFormatter(1, symbol=" %"))
    axes.grid(axis="x", color="#cccccc", linewidth=0.6)
    axes.set_axisbelow(True)


def _picture(
    topic: str, title: str, description: str, draw: Callable[[Axes], None], rows: int, *, legend: bool = False
) -> Picture:
    """Draw without pyplot, which keeps global state; text stays text, so that it can be read aloud and found."""
    with warnings.catch_warnings(), rc_context({"svg.fonttype": "none", "svg.hashsalt": title, "hatch.linewidth": 0.6}):
        # An emoji in a name has no glyph in Matplotlib's font; the browser draws it.
        warnings.filterwarnings("ignore", message="Glyph")
        figure = Figure(figsize=(9.6, 1.6 + 0.42 * rows), layout="constrained")
        axes = figure.add_subplot()
        draw(axes)
        axes.spines[["top", "right"]].set_visible(False)
        if legend:
            handles, labels = axes.get_legend_handles_labels()
            figure.legend(handles, labels, loc="outside upper center", ncols=4, frameon=False)
        svg = embeddable(figure, title=title, description=description)
    return Picture(topic, title, description, svg)
