"""A readout as plain JSON, for programs. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from airflow_provider_nrllm.edits.acceptance import Acceptance
from airflow_provider_nrllm.edits.meanings import Meaning
from airflow_provider_nrllm.outcomes.rules import ExplicitOutcome, ObservedOutcome
from airflow_provider_nrllm.readout.audited import AuditedRuns
from airflow_provider_nrllm.readout.comparisons import Comparisons, explicit_comparisons, observed_comparisons
from airflow_provider_nrllm.readout.counts import (
    Group,
    Period,
    RangeOf,
    Readout,
    Usage,
    utc,
)
from airflow_provider_nrllm.readout.groups import GroupKey, Label
from airflow_provider_nrllm.readout.halves import Changes, changes_of
from airflow_provider_nrllm.readout.sentences import NO_RECOMMENDATION, OBSERVED_NOTES
from airflow_provider_nrllm.readout.shares import Difference, PooledDifference, Share
from airflow_provider_nrllm.readout.summary import summary_of

#: The most groups of an XCom.
XCOM_GROUPS = 200

#: The most periods of an XCom: the last ones.
XCOM_PERIODS = 366


def as_json(readout: Readout, limit: int | None = None) -> dict[str, Any]:
    """
    Return the readout as JSON values: text, numbers, lists, objects and null.

    :param limit: the most groups, and with it no group over time and the last :data:`XCOM_PERIODS` periods; how many
        were left out is said
    """
    groups = readout.groups if limit is None else readout.groups[:limit]
    periods = readout.periods if limit is None else readout.periods[-XCOM_PERIODS:]
    return {
        "note": NO_RECOMMENDATION,
        "summary": summary_of(readout)._asdict(),
        "range": {
            **range_json(readout.start, readout.end, readout.range_of),
            "dated": readout.dated_in_words,
        },
        "sites": list(readout.sites),
        "sites_failed": [{"site": site, "error": error} for site, error in readout.sites_failed.items()],
        "ratings_without_run": readout.without_run,
        "coverage": readout.coverage.counts,
        "where": {str(dimension): list(names) for dimension, names in readout.where.items()},
        "currency": readout.currency or None,
        "grouping": [str(dimension) for dimension in readout.grouping],
        "groups": [_group(group, over_time=limit is None) for group in groups],
        "groups_left_out": len(readout.groups) - len(groups),
        "explicit": {
            "groups": [{**key_json(g.key), **_explicit(g)} for g in groups if g.explicit.total],
            "compared": _comparisons(explicit_comparisons(readout.groups, readout.reference), groups),
            "changed": _changes(changes_of(readout, ExplicitOutcome.HELPFUL), groups),
        },
        "observed": {
            "notes": list(OBSERVED_NOTES),
            "groups": [{**key_json(g.key), **_observed(g)} for g in groups if g.observed.total],
            "compared": _comparisons(observed_comparisons(readout.groups, readout.reference), groups),
            "changed": _changes(changes_of(readout, ObservedOutcome.ACCEPTED_UNCHANGED), groups),
        },
        "period": str(readout.width),
        "periods": [_period(period) for period in periods],
        "periods_left_out": len(readout.periods) - len(periods),
    }


def range_json(start: int | None, end: int, range_of: RangeOf) -> dict[str, Any]:
    """Return a range as JSON values."""
    return {"start": None if start is None else utc(start), "end": utc(end), "of": str(range_of)}


def key_json(key: GroupKey) -> dict[str, Any]:
    return {"group": [_label(label) for label in key]}


def _label(label: Label) -> dict[str, str]:
    return {"kind": str(label.kind), "name": label.name}


def _group(group: Group, *, over_time: bool) -> dict[str, Any]:
    return {
        **key_json(group.key),
        "rated": group.explicit.total,
        "observed": group.observed.total,
        **({"periods": [_period(period) for period in group.periods]} if over_time else {}),
    }


def _period(period: Period) -> dict[str, Any]:
    return {
        "first_day": period.first.isoformat(),
        "explicit": _counts(period.explicit.counts, ExplicitOutcome),
        "observed": _counts(period.observed.counts, ObservedOutcome),
    }


def _usage(usage: Usage) -> dict[str, Any]:
    return {
        "calls": usage.calls,
        "cost": {
            "sum": round(usage.cost, 8) if usage.cost_known else None,
            "per_call": rounded(usage.cost_per_call, 8),
            "known_of_calls": usage.cost_known,
        },
        "latency_ms": {
            "per_call": rounded(usage.latency_per_call, 1),
            "known_of_calls": usage.latency_known,
        },
    }


def _explicit(group: Group) -> dict[str, Any]:
    return {
        "ratings": group.explicit.total,
        "took": _usage(group.explicit.usage),
        **_counts(group.explicit.counts, ExplicitOutcome),
        "shares": {"helpful": share_json(group.explicit.share(ExplicitOutcome.HELPFUL))},
    }


def _observed(group: Group) -> dict[str, Any]:
    values = {
        "runs": group.observed.total,
        "took": {
            **_usage(group.observed.usage),
            "cost_per_accepted_run": rounded(group.observed.cost_per_accepted, 8),
        },
        **_counts(group.observed.counts, ObservedOutcome),
        "shares": {str(value): share_json(group.observed.share(value)) for value in ObservedOutcome},
    }
    if group.audit is None:
        return values
    return {**values, "edited_are": edited_json(group.audit), **beside_edited_json(group.audit)}


def beside_edited_json(audit: AuditedRuns) -> dict[str, Any]:
    """Return what became of accepted runs, and in which ways runs ended, as JSON values."""
    accepted, several = audit.accepted, audit.several
    return {
        "accepted_are": {
            "accepted_runs": accepted.total,
            **_counts(accepted.counts, Acceptance),
            "shares": {str(kind): share_json(accepted.share(kind)) for kind in Acceptance},
        },
        "several_records": {
            "runs": several.runs,
            "cannot_be_told": several.untold,
            "in_several_ways": several.in_several_ways,
            "ways": dict(several.by_words),
            "shares": {
                "runs": share_json(audit.with_several_records),
                "in_several_ways": share_json(audit.in_several_ways),
            },
        },
    }


def edited_json(audit: AuditedRuns) -> dict[str, Any]:
    """Return what edits are to the run's text as JSON values."""
    edited = audit.edited
    return {
        "edited_runs": edited.total,
        **_counts(edited.counts, Meaning),
        "shares": {str(meaning): share_json(edited.share(meaning)) for meaning in Meaning},
        "over_report": share_json(edited.over_report),
    }


def _counts(counts: Mapping[Any, int], values: Iterable[Any]) -> dict[str, int]:
    return {str(value): counts.get(value, 0) for value in values}


def share_json(share: Share | Difference | PooledDifference) -> dict[str, Any]:
    """Return a share or a difference with its interval as JSON values; null where there is none."""
    low, high = share.interval or (None, None)
    counted = {"count": share.count, "of": share.of} if isinstance(share, Share) else {}
    return {**counted, "value": rounded(share.value), "low": rounded(low), "high": rounded(high)}


def _comparisons(comparisons: Comparisons | None, groups: Sequence[Group]) -> dict[str, Any] | None:
    if comparisons is None:
        return None
    return {
        "reference": _label(comparisons.reference),
        "differences": [
            {**key_json(row.group.key), **{value: _difference(found) for value, found in row.differences.items()}}
            for row in comparisons.among(groups).rows
        ],
        "pooled": [
            {
                **_label(row.label),
                "strata": row.strata,
                **{value: _difference(found) for value, found in row.differences.items()},
            }
            for row in comparisons.pooled
        ],
    }


def _changes(changes: Changes | None, groups: Sequence[Group]) -> dict[str, Any] | None:
    if changes is None:
        return None
    return {
        "since": changes.since.isoformat(),
        "value": str(changes.value),
        "groups": [
            {
                **key_json(row.group.key),
                "earlier": share_json(row.earlier),
                "later": share_json(row.later),
                "difference": _difference(row.difference),
            }
            for row in changes.among(groups).rows
        ],
    }


def _difference(difference: Difference | PooledDifference) -> dict[str, Any]:
    strata = {"strata": len(difference.strata)} if isinstance(difference, PooledDifference) else {}
    return {**strata, **share_json(difference), "told": difference.is_told}


def rounded(number: float | None, digits: int = 6) -> float | None:
    """Return a number without digits that say nothing."""
    return None if number is None else round(number, digits)
