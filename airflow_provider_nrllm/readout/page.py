"""A readout as one self-contained HTML page. Needs Jinja, which the extra ``readout`` brings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from jinja2 import Environment, PackageLoader, StrictUndefined

from airflow_provider_nrllm.outcomes.rules import ExplicitOutcome, ObservedOutcome
from airflow_provider_nrllm.readout.cells import UNTOLD, Table, by_words, counted, lines_of, words
from airflow_provider_nrllm.readout.counts import Readout
from airflow_provider_nrllm.readout.pictures import bars_of, gaps_of
from airflow_provider_nrllm.readout.sentences import NO_RECOMMENDATION, head_lines
from airflow_provider_nrllm.readout.summary import summary_of
from airflow_provider_nrllm.readout.tables import tables_of
from airflow_provider_nrllm.readout.timelines import timelines_of

#: The most groups in a table of the page; JSON and CSV have all.
PAGE_GROUPS = 100

#: What tells values apart in black and white, as SVG paths in a square of 6 by 6.
HATCHES: Mapping[str, str] = {
    ExplicitOutcome.NOT_HELPFUL: "M-1 1 1-1M0 6 6 0M5 7 7 5",
    ObservedOutcome.EDITED: "M-1 1 1-1M0 6 6 0M5 7 7 5",
    ObservedOutcome.DISCARDED: "M0 0 6 6M0 6 6 0",
    ObservedOutcome.UNKNOWN: "M3 2v2M2 3h2",
}


def as_html(readout: Readout, runs: Mapping[str, Table] | None = None) -> str:
    """
    Return the readout as a page with all tables and pictures.

    Nothing in it is loaded from elsewhere, no script runs, and all text is escaped. It follows the reader's choice of
    light or dark.

    :param runs: the table of runs of each source, which stands behind the others of that source
    """
    environment = Environment(
        loader=PackageLoader("airflow_provider_nrllm.readout", ""),
        autoescape=True,
        undefined=StrictUndefined,
        keep_trailing_newline=True,
    )
    environment.globals.update(
        UNTOLD=UNTOLD,
        counted=counted,
        lines_of=lines_of,
        words=words,
        values=[*ExplicitOutcome, *ObservedOutcome],
        hatches=HATCHES,
        unbroken=_unbroken,
    )
    return environment.get_template("page.html.jinja").render(
        by=by_words(readout.grouping),
        summary=summary_of(readout),
        head=list(head_lines(readout)),
        note=NO_RECOMMENDATION,
        tables=_with_runs(list(tables_of(readout, readout.groups[:PAGE_GROUPS])), runs or {}),
        groups_left_out=max(len(readout.groups) - PAGE_GROUPS, 0),
        pictures=bars_of(readout),
        gaps=gaps_of(readout),
        timelines=timelines_of(readout),
    )


def _with_runs(tables: Sequence[Table], runs: Mapping[str, Table]) -> list[Table]:
    """Return all tables, those of runs behind the others of their source."""
    explicit = [table for table in tables if table.topic.startswith("explicit")]
    observed = [table for table in tables if table not in explicit]
    return [
        *observed,
        *(table for source, table in runs.items() if source == "observed"),
        *explicit,
        *(table for source, table in runs.items() if source == "explicit"),
    ]


def _unbroken(text: str) -> str:
    """Keep a number and its percent sign on one line."""
    return text.replace(" %", "\N{NO-BREAK SPACE}%")
