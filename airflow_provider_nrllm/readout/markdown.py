"""A readout as Markdown, for the log of a task. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from airflow_provider_nrllm.readout.cells import Table, by_words, cell_text, counted
from airflow_provider_nrllm.readout.counts import Group, Readout
from airflow_provider_nrllm.readout.groups import readable
from airflow_provider_nrllm.readout.sentences import NO_RECOMMENDATION, head_lines
from airflow_provider_nrllm.readout.summary import summary_of
from airflow_provider_nrllm.readout.tables import tables_of


def as_markdown(readout: Readout, limit: int) -> str:
    """
    Return the readout as Markdown.

    :param limit: the most groups; how many were left out is said
    """
    groups = readout.groups[:limit]
    return "\n".join(_lines(readout, groups))


def _lines(readout: Readout, groups: Sequence[Group]) -> Iterator[str]:
    yield f"# Outcomes by {by_words(readout.grouping)}"
    yield ""
    for title, line in summary_of(readout, code).titled:
        yield f"- {title}: {line}"
    for line in head_lines(readout):
        yield f"- {line}"
    if len(groups) < len(readout.groups):
        yield f"Left out here: {counted(len(readout.groups) - len(groups), 'smaller group')}."
    for table in tables_of(readout, groups):
        yield ""
        yield from table_lines(table)
    yield ""
    yield NO_RECOMMENDATION


def table_lines(table: Table) -> Iterator[str]:
    """Yield the lines of one table."""
    yield f"## {table.title}"
    yield ""
    yield readable(table.caption)
    yield ""
    if not table.rows:
        yield "None."
        return
    first, *others = table.head
    yield "| " + " | ".join([first, *(map(code, others) if table.groups_in_head else others)]) + " |"
    yield "| --- |" + " ---: |" * (len(table.head) - 1)
    for row in table.rows:
        yield "| " + " | ".join([code(row.name), *map(cell_text, row.cells)]) + " |"
    if table.notes:
        yield ""
        yield from table.notes


def code(name: str) -> str:
    """
    Return a name as a code span of a table's cell, whatever it is made of.

    Names are data: they must not begin a line of a log, nor be read as Markdown or HTML.
    """
    plain = readable(name) or " "
    fence = "`" * (max((len(run) for run in re.findall("`+", plain)), default=0) + 1)
    space = " " if plain[0] == "`" or plain[-1] == "`" else ""
    return f"{fence}{space}{plain}{space}{fence}".replace("|", "\\|")
