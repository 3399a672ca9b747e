"""
The three lines that stand above a readout: what was asked, what can be told, what cannot be told yet. Pure.

They are made of the figures below them and recommend nothing (ADR-176).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from airflow_provider_nrllm.outcomes.rules import ExplicitOutcome, ObservedOutcome
from airflow_provider_nrllm.readout.cells import by_words, counted, lines_of
from airflow_provider_nrllm.readout.comparisons import Comparisons, explicit_comparisons, observed_comparisons
from airflow_provider_nrllm.readout.counts import Readout
from airflow_provider_nrllm.readout.groups import label_text, readable
from airflow_provider_nrllm.readout.halves import changes_of
from airflow_provider_nrllm.readout.over_time import period_text
from airflow_provider_nrllm.readout.shares import Difference, PooledDifference, Share

#: The most differences that a line names; the tables have all.
NAMED_DIFFERENCES = 4

_SAID: Mapping[ExplicitOutcome | ObservedOutcome, str] = {
    ObservedOutcome.ACCEPTED_UNCHANGED: "accepted unchanged",
    ExplicitOutcome.HELPFUL: "rated helpful",
}

#: Writes a name, which is data, into a line.
Quote = Callable[[str], str]


class Summary(NamedTuple):
    """
    What a readout says, each as one line.

    :param asked: what was asked, and how much there is to answer it
    :param told: the differences whose interval leaves out 0
    :param untold: the differences whose interval holds 0, and what is in no model's figures
    """

    asked: str
    told: str
    untold: str

    @property
    def titled(self) -> Iterator[tuple[str, str]]:
        """The lines with what stands before each."""
        return zip(("Asked", "Can be told", "Cannot be told yet"), self, strict=True)


def in_quotes(name: str) -> str:
    """Return a name in quotation marks."""
    return f"“{readable(name)}”"


def summary_of(readout: Readout, quote: Quote = in_quotes) -> Summary:
    """
    Return the summary of a readout.

    :param quote: how a name is written
    """
    observed, explicit = ObservedOutcome.ACCEPTED_UNCHANGED, ExplicitOutcome.HELPFUL
    differences = [
        *_differences(readout, observed_comparisons(readout.groups, readout.reference), observed, quote),
        *_changes(readout, observed, quote),
        *_differences(readout, explicit_comparisons(readout.groups, readout.reference), explicit, quote),
        *_changes(readout, explicit, quote),
    ]
    told = [line for is_told, line in differences if is_told]
    untold = [line for is_told, line in differences if not is_told]
    return Summary(_asked(readout), _told(told, untold), " ".join(_untold(readout, untold)))


def _differences(
    readout: Readout, compared: Comparisons | None, value: ExplicitOutcome | ObservedOutcome, quote: Quote
) -> Iterator[tuple[bool, str]]:
    """Yield whether each difference from the reference can be told, and the words for it."""
    if compared is None:
        return
    last = readout.grouping[-1]
    found: list[tuple[str, Difference | PooledDifference, str]] = [
        (row.label.text(last), row.differences[str(value)], f", over {counted(row.strata, readout.grouping[0].words)}")
        for row in compared.pooled
    ] or [(label_text(row.group.key, readout.grouping), row.differences[str(value)], "") for row in compared.rows]
    reference = quote(compared.reference.text(last))
    for name, difference, pooled in found:
        if difference.value is None:
            continue
        if difference.is_told:
            yield True, f"{quote(name)} was {_often(difference, value)} than {reference}{pooled}: {_points(difference)}"
        else:
            yield False, f"whether {quote(name)} was {_SAID[value]} more or less often than {reference}{pooled}"


def _changes(readout: Readout, value: ExplicitOutcome | ObservedOutcome, quote: Quote) -> Iterator[tuple[bool, str]]:
    """Yield the words for each change over time that can be told."""
    changes = changes_of(readout, value)
    if changes is None:
        return
    since = period_text(changes.since, readout.width)
    for change in changes.rows:
        if change.difference.is_told:
            name = label_text(change.group.key, readout.grouping)
            often, points = _often(change.difference, value), _points(change.difference)
            yield True, f"{quote(name)} was {often} from {since} on than before: {points}"


def _often(difference: Difference | PooledDifference, value: ExplicitOutcome | ObservedOutcome) -> str:
    return f"{_SAID[value]} {'more' if (difference.value or 0) > 0 else 'less'} often"


def _points(difference: Difference | PooledDifference) -> str:
    points, interval = lines_of(difference)
    return f"{points} points ({interval})"


def _asked(readout: Readout) -> str:
    observed = sum(group.observed.total for group in readout.groups)
    rated = sum(group.explicit.total for group in readout.groups)
    return (
        f"Outcomes by {by_words(readout.grouping)}, {readout.in_words}: "
        f"{counted(observed, 'observed run')} and {counted(rated, 'rating')}."
    )


def _told(told: Sequence[str], untold: Sequence[str]) -> str:
    if told:
        # What a 95 % interval means, where several are looked at.
        return f"{_some(told)}. Of twenty comparisons of equals, one would be told apart by chance."
    if untold:
        return "No difference: the interval of each holds 0."
    return "Nothing: no two groups can be compared."


def _untold(readout: Readout, untold: Sequence[str]) -> Iterator[str]:
    if untold:
        yield f"W{_some(untold)[1:]}."
    observed = sum(group.observed.total for group in readout.groups)
    if not observed:
        yield "No run is observed."
        return
    unknown = sum(group.observed.counts.get(ObservedOutcome.UNKNOWN, 0) for group in readout.groups)
    apart = sum(group.observed.total for group in readout.groups if not group.named)
    no_single = " or ".join(dimension.words for dimension in readout.grouping)
    yield f"Of the observed runs, {_part(unknown, observed)} unknown,"
    yield f"and {_part(apart, observed)} of no single {no_single}."


def _part(count: int, of: int) -> str:
    share, counts, _ = lines_of(Share(count, of))
    return f"{counts} ({share}) {'is' if count == 1 else 'are'}"


def _some(lines: Sequence[str]) -> str:
    more = len(lines) - NAMED_DIFFERENCES
    return "; ".join(lines[:NAMED_DIFFERENCES]) + (f"; and {more} more, in the tables" if more > 0 else "")
