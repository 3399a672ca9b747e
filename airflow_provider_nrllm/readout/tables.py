"""The tables of a readout, as text cells, for all that people read. Each is of one source (ADR-176). Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from airflow_provider_nrllm.edits.acceptance import Acceptance
from airflow_provider_nrllm.edits.meanings import Meaning
from airflow_provider_nrllm.outcomes.rules import ExplicitOutcome, ObservedOutcome
from airflow_provider_nrllm.readout.cells import NO_SHARE, Cell, Row, Table, by_words, words
from airflow_provider_nrllm.readout.comparisons import Comparisons, explicit_comparisons, observed_comparisons
from airflow_provider_nrllm.readout.counts import Group, Readout
from airflow_provider_nrllm.readout.groups import Dimension, label_text
from airflow_provider_nrllm.readout.halves import tables_of_change
from airflow_provider_nrllm.readout.over_time import tables_over_time
from airflow_provider_nrllm.readout.sentences import OBSERVED_NOTES


def tables_of(readout: Readout, groups: Sequence[Group]) -> Iterator[Table]:
    """
    Yield the tables of a readout: each source with its groups side by side and what their calls took.

    :param groups: those of the readout that are shown
    """
    grouping = readout.grouping
    yield _observed(grouping, groups)
    yield from tables_over_time(readout, "observed", ObservedOutcome.ACCEPTED_UNCHANGED, "among the decided runs")
    yield from tables_of_change(readout, groups, "observed", ObservedOutcome.ACCEPTED_UNCHANGED)
    if compared := observed_comparisons(readout.groups, readout.reference):
        yield from _side_by_side("observed", readout, compared.among(groups))
    if readout.audited:
        yield from audit_tables(grouping, groups)
    yield _took("observed", readout, groups)
    yield _explicit(grouping, groups)
    yield from tables_over_time(readout, "explicit", ExplicitOutcome.HELPFUL, "among all ratings")
    yield from tables_of_change(readout, groups, "explicit", ExplicitOutcome.HELPFUL)
    if compared := explicit_comparisons(readout.groups, readout.reference):
        yield from _side_by_side("explicit", readout, compared.among(groups))
    yield _took("explicit", readout, groups)


def _explicit(grouping: Sequence[Dimension], groups: Sequence[Group]) -> Table:
    by = by_words(grouping)
    rows = [
        _row(grouping, group, f"{group.explicit.total:,}", *map(group.explicit.share, ExplicitOutcome))
        for group in groups
        if group.explicit.total
    ]
    return Table(
        "explicit",
        "Explicit: how people rated results",
        f"Ratings by {by}; a correlation id counts once. Shares among all ratings, each with its 95 % interval.",
        (by.capitalize(), "Ratings", *(words(value).capitalize() for value in ExplicitOutcome)),
        tuple(rows),
    )


def _observed(grouping: Sequence[Dimension], groups: Sequence[Group]) -> Table:
    by = by_words(grouping)
    rows = [
        _row(grouping, group, f"{group.observed.total:,}", *map(group.observed.share, ObservedOutcome))
        for group in groups
        if group.observed.total
    ]
    return Table(
        "observed",
        "Observed: what became of what runs wrote",
        f"Observed runs by {by}; a run counts once. Shares among the decided, of unknown among all, "
        "each with its 95 % interval.",
        (by.capitalize(), "Runs", *(words(value).capitalize() for value in ObservedOutcome)),
        tuple(rows),
        notes=OBSERVED_NOTES,
    )


def _side_by_side(source: str, readout: Readout, compared: Comparisons) -> Iterator[Table]:
    values = [str(value) for value in (ObservedOutcome if source == "observed" else [ExplicitOutcome.HELPFUL])]
    grouping, last = readout.grouping, readout.grouping[-1]
    chosen = "" if readout.reference is not None else f", the {last.words} with the most cases"
    beside = f"“{compared.reference.text(last)}”{chosen}"
    within = f" Compared within each {grouping[0].words}." if len(grouping) > 1 else ""
    rows = [_row(grouping, row.group, *(row.differences[value] for value in values)) for row in compared.rows]
    yield Table(
        f"{source}-compared",
        f"{source.capitalize()}: groups side by side",
        f"By how many percentage points the share of a group is above that of {beside}, with Newcombe's 95 % "
        f"interval.{within} Where the interval holds 0, it cannot be told yet which is higher. With many groups, some "
        "intervals miss by chance.",
        (by_words(grouping).capitalize(), *(words(value).capitalize() for value in values)),
        tuple(rows),
    )
    if not compared.pooled:
        return
    pooled = [
        Row(row.label.text(last), (str(row.strata), *(row.differences[value] for value in values)))
        for row in compared.pooled
    ]
    yield Table(
        f"{source}-pooled",
        f"{source.capitalize()}: {last.words}s side by side over all {grouping[0].words}s",
        f"The same differences from {beside}, pooled over each {grouping[0].words} in which both have a case: Mantel "
        "and Haenszel's difference in percentage points, with a 95 % interval by Sato's variance. Where the interval "
        "holds 0, it cannot be told yet which is higher.",
        (
            last.words.capitalize(),
            f"{grouping[0].words.capitalize()}s",
            *(words(value).capitalize() for value in values),
        ),
        tuple(pooled),
    )


def audit_tables(grouping: Sequence[Dimension], groups: Sequence[Group]) -> Iterator[Table]:
    """Yield what an audit says of each group: of its edits, of its acceptances, and of the ways its runs ended in."""
    audited = [(group, group.audit) for group in groups if group.audit is not None]
    by = by_words(grouping)
    rows = [
        _row(grouping, group, f"{edited.total:,}", *map(edited.share, Meaning), edited.over_report)
        for group, audit in audited
        if (edited := audit.edited).total
    ]
    yield Table(
        "edited",
        "Observed: how much of EDITED is about the run's text",
        f"The runs answered edited, by {by} and by what their strongest edit is to the run's text: share, its "
        "95 % interval and count. The over-report would not be EDITED if only changes of fields that the run set "
        "counted.",
        (by.capitalize(), "Edited runs", *(m.words.capitalize() for m in Meaning), "Over-report"),
        tuple(rows),
    )
    rows = [
        _row(grouping, group, f"{accepted.total:,}", *map(accepted.share, Acceptance))
        for group, audit in audited
        if (accepted := audit.accepted).total
    ]
    yield Table(
        "accepted",
        "Observed: how much of ACCEPTED UNCHANGED was taken up",
        f"The runs answered accepted unchanged, by {by} and by what became of the weakest of their records up to the "
        "end of its window: share, its 95 % interval and count. Still hidden is a draft that nobody took up; visible "
        "already is what was on the site without a person's doing, or was deleted; released is what a person made "
        "visible in the window.",
        (by.capitalize(), "Accepted runs", *(kind.words.capitalize() for kind in Acceptance)),
        tuple(rows),
    )
    rows = [
        _row(
            grouping,
            group,
            f"{audit.runs:,}",
            audit.with_several_records,
            audit.in_several_ways,
            f"{audit.several.untold:,}",
            "; ".join(f"{count:,} {words(ways)}" for ways, count in audit.several.by_words.items()) or NO_SHARE,
        )
        for group, audit in audited
        if audit.runs
    ]
    yield Table(
        "several",
        "Observed: runs that end in more than one way",
        f"The observed runs by {by}: how many wrote several records, how many of these ended in more than one way, and "
        "in which. A run has the first of these that any of its records has: discarded, edited, unknown, accepted "
        "unchanged. Where the evidence has changed since a run was answered, it cannot be told.",
        (by.capitalize(), "Runs", "Several records", "More than one way", "Cannot be told", "Ways"),
        tuple(rows),
    )


def _row(grouping: Sequence[Dimension], group: Group, *cells: Cell) -> Row:
    return Row(label_text(group.key, grouping), cells, apart=not group.named)


def _took(source: str, readout: Readout, groups: Sequence[Group]) -> Table:
    by, unit = by_words(readout.grouping), f" {readout.currency}" if readout.currency else ""
    observed = source == "observed"
    rows = []
    for group in groups:
        cases = group.observed if observed else group.explicit
        if not cases.total:
            continue
        usage = cases.usage
        accepted = (_money(group.observed.cost_per_accepted, unit),) if observed else ()
        cells = (
            f"{usage.calls:,}",
            _money(usage.cost if usage.cost_known else None, unit),
            _money(usage.cost_per_call, unit),
            *accepted,
            f"{usage.cost_known:,} of {usage.calls:,}",
            NOT_MEASURED if usage.latency_per_call is None else f"{usage.latency_per_call:,.0f} ms",
            f"{usage.latency_known:,} of {usage.calls:,}",
        )
        rows.append(_row(readout.grouping, group, *cells))
    named = "in the unit of telemetry" if not unit else f"in{unit}, not converted"
    each = " The cost of all runs is told by accepted run only if it is known of every call." if observed else ""
    return Table(
        f"{source}-took",
        f"{source.capitalize()}: what the {'runs' if observed else 'rated results'} took",
        f"By {by}: the provider calls of the {'observed runs' if observed else 'rated correlation ids'}, their cost, "
        f"{named}, and mean latency, as far as they were measured.{each}",
        (
            by.capitalize(),
            "Calls",
            "Cost",
            "Cost of a call",
            *(("Cost per accepted run",) if observed else ()),
            "Cost known of",
            "Latency",
            "Latency known of",
        ),
        tuple(rows),
    )


#: Of what telemetry has no figure of; it is not zero.
NOT_MEASURED = "not measured"


def _money(amount: float | None, unit: str) -> str:
    return NOT_MEASURED if amount is None else f"{amount:,.6f}{unit}"
