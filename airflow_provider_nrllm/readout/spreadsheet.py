"""A readout as CSV, for spreadsheets and programs. Pure."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from typing import Any

from airflow_provider_nrllm.edits.acceptance import Acceptance
from airflow_provider_nrllm.edits.meanings import Meaning
from airflow_provider_nrllm.outcomes.rules import ExplicitOutcome, ObservedOutcome
from airflow_provider_nrllm.readout.audited import AuditedRuns
from airflow_provider_nrllm.readout.comparisons import explicit_comparisons, observed_comparisons
from airflow_provider_nrllm.readout.counts import Group, Readout, Usage, utc
from airflow_provider_nrllm.readout.exports import rounded, share_json
from airflow_provider_nrllm.readout.groups import GroupKey, Kind
from airflow_provider_nrllm.readout.halves import changes_of
from airflow_provider_nrllm.readout.periods import PeriodWidth
from airflow_provider_nrllm.readout.sentences import NO_RECOMMENDATION, OBSERVED_NOTES
from airflow_provider_nrllm.readout.shares import Difference, PooledDifference, Share
from airflow_provider_nrllm.readout.summary import summary_of

CSV_COLUMNS = ("table", "group_1", "kind_1", "group_2", "kind_2", "figure", "value", "count", "of", "low", "high")


def as_csv(readout: Readout) -> str:
    """
    Return all figures of all groups as one CSV, a row a figure.

    A name that a spreadsheet would take for a formula gets an apostrophe in front.
    """
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(CSV_COLUMNS)
    writer.writerows(_csv_head(readout))
    for group in readout.groups:
        labels = csv_labels(group.key)
        writer.writerows([table, *labels, *figures] for table, *figures in _csv_figures(group))
        writer.writerows([table, *labels, *figures] for table, *figures in _csv_over_time(group, readout.width))
    writer.writerows(_csv_differences(readout))
    writer.writerows(_csv_changes(readout))
    for told, line in summary_of(readout)._asdict().items():
        writer.writerow(["summary", "", "", "", "", f"{told}: {line}", "", "", "", "", ""])
    for period in readout.periods:
        for source, counts in (("explicit", period.explicit.counts), ("observed", period.observed.counts)):
            for value, count in counts.items():
                figure = f"{period.first.isoformat()} {value}"
                writer.writerow([f"{source} per {readout.width}", "", "", "", "", figure, "", count, "", "", ""])
    return text.getvalue()


def _csv_head(readout: Readout) -> Iterator[list[Any]]:
    start = "" if readout.start is None else utc(readout.start)
    told = {"start": start, "end": utc(readout.end), "range_of": str(readout.range_of), "currency": readout.currency}
    for name, text in told.items():
        yield ["readout", "", "", "", "", name, csv_cell(text), "", "", "", ""]
    for dimension, names in readout.where.items():
        for name in names:
            yield ["where", csv_cell(name), str(Kind.NAMED), "", "", str(dimension), "", "", "", "", ""]
    for site in readout.sites:
        yield ["readout", csv_cell(site), str(Kind.NAMED), "", "", "site", "", "", "", "", ""]
    for site, error in readout.sites_failed.items():
        yield ["readout", csv_cell(site), str(Kind.NAMED), "", "", "site_failed", csv_cell(error), "", "", "", ""]
    for name, count in readout.coverage.counts.items():
        yield ["coverage", "", "", "", "", name, "", count, readout.coverage.made, "", ""]
    for note in (NO_RECOMMENDATION, readout.dated_in_words, *OBSERVED_NOTES):
        yield ["note", "", "", "", "", note, "", "", "", "", ""]
    if readout.without_run:
        yield ["readout", "", "", "", "", "ratings_without_run", "", readout.without_run, "", "", ""]


def _csv_figures(group: Group) -> Iterator[list[Any]]:
    if group.explicit.total:
        for rating in ExplicitOutcome:
            yield ["explicit", str(rating), *_csv_share(group.explicit.share(rating))]
        yield from _csv_usage("explicit took", group.explicit.usage)
    if group.observed.total:
        for outcome in ObservedOutcome:
            yield ["observed", str(outcome), *_csv_share(group.observed.share(outcome))]
        yield from _csv_usage("observed took", group.observed.usage)
        accepted = group.observed.counts.get(ObservedOutcome.ACCEPTED_UNCHANGED, 0)
        per_accepted = rounded(group.observed.cost_per_accepted, 8)
        yield ["observed took", "cost_per_accepted_run", per_accepted, accepted, group.observed.total, "", ""]
    if group.audit is not None:
        yield from _csv_audit(group.audit)


def _csv_audit(audit: AuditedRuns) -> Iterator[list[Any]]:
    if audit.edited.total:
        for meaning in Meaning:
            yield ["edited", str(meaning), *_csv_share(audit.edited.share(meaning))]
    if audit.accepted.total:
        for kind in Acceptance:
            yield ["accepted", str(kind), *_csv_share(audit.accepted.share(kind))]
    if audit.runs:
        yield ["several records", "runs", *_csv_share(audit.with_several_records)]
        yield ["several records", "in_several_ways", *_csv_share(audit.in_several_ways)]
        yield ["several records", "cannot_be_told", "", audit.several.untold, audit.several.runs, "", ""]
        for ways, count in audit.several.by_words.items():
            yield ["several records", ways, "", count, audit.several.in_several_ways, "", ""]


def _csv_usage(table: str, usage: Usage) -> Iterator[list[Any]]:
    yield [table, "calls", usage.calls, usage.calls, "", "", ""]
    yield [table, "cost", rounded(usage.cost, 8) if usage.cost_known else None, usage.cost_known, usage.calls, "", ""]
    yield [table, "cost_per_call", rounded(usage.cost_per_call, 8), usage.cost_known, usage.calls, "", ""]
    latency = rounded(usage.latency_per_call, 1)
    yield [table, "latency_ms_per_call", latency, usage.latency_known, usage.calls, "", ""]


def _csv_differences(readout: Readout) -> Iterator[list[Any]]:
    for source, compare in (("explicit", explicit_comparisons), ("observed", observed_comparisons)):
        compared = compare(readout.groups, readout.reference)
        if compared is None:
            continue
        for row in compared.rows:
            for value, difference in row.differences.items():
                yield [f"{source} compared", *csv_labels(row.group.key), value, *_csv_share(difference)]
        for pooled in compared.pooled:
            labels = ["", "", *csv_labels((pooled.label,))[:2]]
            for value, over_all in pooled.differences.items():
                figures = _csv_share(over_all)
                # Of how many strata it is.
                yield [f"{source} pooled", *labels, value, figures[0], len(over_all.strata), *figures[2:]]


def _csv_changes(readout: Readout) -> Iterator[list[Any]]:
    for source, value in (("explicit", ExplicitOutcome.HELPFUL), ("observed", ObservedOutcome.ACCEPTED_UNCHANGED)):
        changes = changes_of(readout, value)
        for row in changes.rows if changes else ():
            table, labels, since = f"{source} changed", csv_labels(row.group.key), changes.since if changes else ""
            yield [table, *labels, f"{value} before {since}", *_csv_share(row.earlier)]
            yield [table, *labels, f"{value} from {since} on", *_csv_share(row.later)]
            yield [table, *labels, f"{value} change", *_csv_share(row.difference)]


def csv_labels(key: GroupKey) -> list[str]:
    """Return the name and the kind of a group in each of two dimensions."""
    cells = [cell for label in key for cell in (csv_cell(label.name), str(label.kind))]
    return cells + [""] * (4 - len(cells))


def _csv_over_time(group: Group, width: PeriodWidth) -> Iterator[list[Any]]:
    for source, values in (("explicit", ExplicitOutcome), ("observed", ObservedOutcome)):
        for value in values:
            for point in group.over_time(value):
                yield [f"{source} per {width}", f"{point.first.isoformat()} {value}", *_csv_share(point.share)]


def _csv_share(share: Share | Difference | PooledDifference) -> list[Any]:
    figures = share_json(share)
    return [figures.get(name, "") for name in ("value", "count", "of", "low", "high")]


def csv_cell(name: str) -> str:
    """Return a name, with an apostrophe in front if a spreadsheet would take it for a formula."""
    return f"'{name}" if name.startswith(("=", "+", "-", "@", "\t", "\r")) else name
