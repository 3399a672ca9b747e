"""How much of EDITED is about the run's text, by group: as JSON for an XCom and as Markdown for a log. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from airflow_provider_nrllm.edits.meanings import Meaning
from airflow_provider_nrllm.outcomes.partitions import DAY
from airflow_provider_nrllm.readout.cells import by_words, counted
from airflow_provider_nrllm.readout.counts import (
    EditedRuns,
    Explicit,
    Group,
    Observed,
    RangeOf,
    dated_in_words,
    in_order,
    range_in_words,
)
from airflow_provider_nrllm.readout.exports import edited_json, key_json, range_json
from airflow_provider_nrllm.readout.groups import Dimension, GroupKey
from airflow_provider_nrllm.readout.markdown import table_lines
from airflow_provider_nrllm.readout.sentences import NO_RECOMMENDATION
from airflow_provider_nrllm.readout.tables import edited_table


@dataclass(frozen=True, slots=True)
class Audit:
    """
    What was found.

    :param start: the first second of the range, None for an open one
    :param end: the first second after it
    :param range_of: whose time is in the range
    :param grouping: by what it is grouped
    :param edited: the edited runs of each group
    :param window: how long a record is watched after a write, in seconds
    """

    start: int | None
    end: int
    range_of: RangeOf
    grouping: tuple[Dimension, ...]
    edited: Mapping[GroupKey, EditedRuns]
    window: int = 7 * DAY

    @property
    def in_all(self) -> EditedRuns:
        """All edited runs."""
        counts: Counter[Meaning] = Counter()
        for runs in self.edited.values():
            counts.update(runs.counts)
        return EditedRuns(counts)

    @property
    def groups(self) -> tuple[Group, ...]:
        """The groups with nothing but their edited runs, the most first."""
        return in_order(
            (Group(key, Explicit({}), Observed({}), edited=runs) for key, runs in self.edited.items()),
            size=lambda group: group.edited.total if group.edited else 0,
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
        "in_all": edited_json(audit.in_all),
        "groups": [
            {**key_json(group.key), **edited_json(group.edited)} for group in groups[:limit] if group.edited is not None
        ],
        "groups_left_out": max(len(groups) - limit, 0),
    }


def audit_markdown(audit: Audit, limit: int) -> str:
    """
    Return the audit as Markdown.

    :param limit: the most groups; how many were left out is said
    """
    groups = audit.groups
    lines = [f"# EDITED by {by_words(audit.grouping)}", ""]
    lines.append(f"Range: {range_in_words(audit.start, audit.end)}. {dated_in_words(audit.range_of, audit.window)}")
    if len(groups) > limit:
        lines.append(f"Left out here: {counted(len(groups) - limit, 'smaller group')}.")
    return "\n".join([*lines, "", *table_lines(edited_table(audit.grouping, groups[:limit])), "", NO_RECOMMENDATION])
