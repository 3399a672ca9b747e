"""The audits of observed outcomes by group, as JSON for an XCom and as Markdown for a log. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from airflow_provider_nrllm.outcomes.partitions import DAY
from airflow_provider_nrllm.readout.audited import AuditedRuns
from airflow_provider_nrllm.readout.cells import by_words, counted
from airflow_provider_nrllm.readout.counts import (
    Explicit,
    Group,
    Observed,
    RangeOf,
    dated_in_words,
    in_order,
    range_in_words,
)
from airflow_provider_nrllm.readout.exports import beside_edited_json, edited_json, key_json, range_json
from airflow_provider_nrllm.readout.groups import Dimension, GroupKey
from airflow_provider_nrllm.readout.markdown import table_lines
from airflow_provider_nrllm.readout.sentences import NO_RECOMMENDATION
from airflow_provider_nrllm.readout.tables import audit_tables


@dataclass(frozen=True, slots=True)
class Audit:
    """
    What was found.

    :param start: the first second of the range, None for an open one
    :param end: the first second after it
    :param range_of: whose time is in the range
    :param grouping: by what it is grouped
    :param audited: the observed runs of each group
    :param window: how long a record is watched after a write, in seconds
    """

    start: int | None
    end: int
    range_of: RangeOf
    grouping: tuple[Dimension, ...]
    audited: Mapping[GroupKey, AuditedRuns]
    window: int = 7 * DAY

    @property
    def in_all(self) -> AuditedRuns:
        """All observed runs."""
        return AuditedRuns.together(self.audited.values())

    @property
    def groups(self) -> tuple[Group, ...]:
        """The groups with nothing but what the audit says of them, those with the most runs first."""
        return in_order(
            (Group(key, Explicit({}), Observed({}), audit=runs) for key, runs in self.audited.items()),
            size=lambda group: group.audit.runs if group.audit else 0,
        )


def audit_json(audit: Audit, limit: int) -> dict[str, Any]:
    """
    Return the audit as JSON values.

    :param limit: the most groups; how many were left out is in ``groups_left_out``
    """
    groups = audit.groups
    return {
        "note": NO_RECOMMENDATION,
        "range": range_json(audit.start, audit.end, audit.range_of),
        "grouping": [str(dimension) for dimension in audit.grouping],
        "in_all": _runs_json(audit.in_all),
        "groups": [
            {**key_json(group.key), **_runs_json(group.audit)} for group in groups[:limit] if group.audit is not None
        ],
        "groups_left_out": max(len(groups) - limit, 0),
    }


def _runs_json(runs: AuditedRuns) -> dict[str, Any]:
    return {**edited_json(runs), **beside_edited_json(runs)}


def audit_markdown(audit: Audit, limit: int) -> str:
    """
    Return the audit as Markdown.

    :param limit: the most groups; how many were left out is said
    """
    groups = audit.groups
    lines = [f"# EDITED and ACCEPTED UNCHANGED by {by_words(audit.grouping)}", ""]
    lines.append(f"Range: {range_in_words(audit.start, audit.end)}. {dated_in_words(audit.range_of, audit.window)}")
    if len(groups) > limit:
        lines.append(f"Left out here: {counted(len(groups) - limit, 'smaller group')}.")
    for table in audit_tables(audit.grouping, groups[:limit]):
        lines += ["", *table_lines(table)]
    return "\n".join([*lines, "", NO_RECOMMENDATION])
