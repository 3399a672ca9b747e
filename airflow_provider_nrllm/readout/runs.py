"""
The runs behind a readout's figures, one by one: as CSV, JSON and tables. Each row is of one source (ADR-176). Pure.

There is no person and no content in them.
"""

from __future__ import annotations

import csv
import heapq
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TextIO
from urllib.parse import quote

from airflow_provider_nrllm.outcomes.evidence import Target
from airflow_provider_nrllm.outcomes.rules import EXPLICIT
from airflow_provider_nrllm.readout.cells import NO_SHARE, Link, Links, Row, Table, by_words, words
from airflow_provider_nrllm.readout.counts import utc
from airflow_provider_nrllm.readout.exports import key_json
from airflow_provider_nrllm.readout.groups import Dimension, GroupKey, label_text
from airflow_provider_nrllm.readout.spreadsheet import csv_cell, csv_labels

#: The most runs of each source on the page: those that came last. The CSV has all.
PAGE_RUNS = 200

#: The most records of a run on the page.
PAGE_RECORDS = 3

RUN_COLUMNS = (
    "site", "run", "source", "outcome", "at", "settled", "group_1", "kind_1", "group_2", "kind_2",
    "records", "links", "reason",
)  # fmt: skip

#: What a link's template may name.
_PLACES = {"table": "tt_content", "uid": "42", "run": "uuid", "site": "nrllm_default"}


@dataclass(frozen=True, slots=True)
class AnsweredRun:
    """
    One outcome that counts, and what it is of.

    :param site: the Airflow connection that it was read over
    :param run: the run's uuid; of a rating, its correlation id
    :param at: by which it is in the range
    :param settled: when the run settled; None for one that goes on, wrote nothing, or is purged
    :param key: its group
    :param records: what the run wrote, each once, as far as its writes can be read
    :param reason: in words, why it is ``unknown``, or what an audit says of it; empty where nothing is to be said
    """

    site: str
    run: str
    outcome: str
    at: int
    settled: int | None
    key: GroupKey
    records: tuple[Target, ...] = ()
    reason: str = ""

    @property
    def source(self) -> str:
        """The source of its outcome."""
        return "explicit" if self.outcome in EXPLICIT else "observed"


@dataclass(frozen=True, slots=True)
class LinkTemplate:
    """
    How a record's address in the TYPO3 backend is made.

    :param text: an address with ``{table}`` and ``{uid}``, and if need be ``{run}`` and ``{site}``
    """

    text: str

    @classmethod
    def of(cls, text: str) -> LinkTemplate:
        """
        Return the template that an operator's argument gives.

        :raises ValueError: unless it is an address of the web with known places
        """
        try:
            made = text.format(**_PLACES)
        except (AttributeError, IndexError, KeyError, ValueError) as error:
            raise ValueError(f"link_template is {text!r}: {error!r}; {_EXPECTED}") from error
        if not made.startswith(("https://", "http://")):
            # A page must not hold an address that runs a script.
            raise ValueError(f"link_template is {text!r}; {_EXPECTED}")
        return cls(text)

    def address(self, run: AnsweredRun, record: Target) -> str:
        """Return the address of a record."""
        told = {"table": record.table, "uid": str(record.uid), "run": run.run, "site": run.site}
        return self.text.format(**{place: quote(value, safe="") for place, value in told.items()})


_EXPECTED = (
    "expected an address such as 'https://www.example.org/typo3/record/edit?edit[{table}][{uid}]=edit', in which "
    "{table}, {uid}, {run} and {site} stand for those of a record"
)


@dataclass
class RunsShown:
    """
    The last runs of each source, kept while all go by: memory holds no more than the page shows.

    :ivar counts: how many runs of each source went by
    """

    limit: int = PAGE_RUNS
    counts: dict[str, int] = field(default_factory=lambda: {"observed": 0, "explicit": 0})
    _last: dict[str, list[tuple[int, int, AnsweredRun]]] = field(default_factory=dict)

    def add(self, run: AnsweredRun) -> None:
        """Take a run, and forget one that came earlier if there are too many."""
        self.counts[run.source] += 1
        kept = self._last.setdefault(run.source, [])
        # The number tells apart what came at the same second; runs themselves have no order.
        entry = (run.at, sum(self.counts.values()), run)
        if len(kept) < self.limit:
            heapq.heappush(kept, entry)
        else:
            heapq.heappushpop(kept, entry)

    def of(self, source: str) -> list[AnsweredRun]:
        """Return the last runs of a source, the last one first."""
        return [run for *_, run in sorted(self._last.get(source, ()), key=lambda entry: entry[:2], reverse=True)]


def write_csv(file: TextIO, runs: Iterable[AnsweredRun], link: LinkTemplate | None = None) -> RunsShown:
    """
    Write a row a run, as they come, and return those that the page shows.

    :param runs: in any order
    :param link: how a record's address is made; None for no links
    """
    shown = RunsShown()
    writer = csv.writer(file)
    writer.writerow(RUN_COLUMNS)
    for run in runs:
        shown.add(run)
        writer.writerow(_csv_row(run, link))
    return shown


def _csv_row(run: AnsweredRun, link: LinkTemplate | None) -> list[str]:
    return [
        csv_cell(run.site),
        csv_cell(run.run),
        run.source,
        run.outcome,
        utc(run.at),
        "" if run.settled is None else utc(run.settled),
        *csv_labels(run.key),
        " ".join(f"{table}:{uid}" for table, uid in run.records),
        " ".join(link.address(run, record) for record in run.records) if link else "",
        csv_cell(run.reason),
    ]


def runs_json(shown: RunsShown, link: LinkTemplate | None = None) -> dict[str, Any]:
    """Return the runs that the page shows as JSON values, and how many there are."""
    return {
        source: {"count": count, "last": [_run_json(run, link) for run in shown.of(source)]}
        for source, count in shown.counts.items()
    }


def _run_json(run: AnsweredRun, link: LinkTemplate | None) -> dict[str, Any]:
    return {
        "site": run.site,
        "run": run.run,
        "outcome": run.outcome,
        "at": utc(run.at),
        "settled": None if run.settled is None else utc(run.settled),
        **key_json(run.key),
        "records": [
            {"table": record.table, "uid": record.uid, **({"link": link.address(run, record)} if link else {})}
            for record in run.records
        ],
        "reason": run.reason,
    }


def runs_tables(
    shown: RunsShown, grouping: Sequence[Dimension], link: LinkTemplate | None = None
) -> Mapping[str, Table]:
    """Return the table of the last runs of each source that has any."""
    return {source: _table(shown, source, grouping, link) for source, count in shown.counts.items() if count}


def _table(shown: RunsShown, source: str, grouping: Sequence[Dimension], link: LinkTemplate | None) -> Table:
    runs, count = shown.of(source), shown.counts[source]
    of_many_sites = len({run.site for run in runs}) > 1
    head = ("Run", "Outcome", "At", by_words(grouping).capitalize(), "Records", "Reason")
    rows = (
        (
            words(run.outcome),
            utc(run.at).replace("T", " "),
            label_text(run.key, grouping),
            _records(run, link),
            run.reason or NO_SHARE,
        )
        for run in runs
    )
    return Table(
        f"{source}-runs",
        f"{source.capitalize()}: the {'runs' if source == 'observed' else 'rated results'} behind the figures",
        f"Shown here: {len(runs):,} of {count:,}, the latest first, with the records that each run wrote. "
        "The file runs.csv has all.",
        (*head, "Site") if of_many_sites else head,
        tuple(Row(run.run, (*row, run.site) if of_many_sites else row) for run, row in zip(runs, rows, strict=True)),
        texts=True,
    )


def _records(run: AnsweredRun, link: LinkTemplate | None) -> Links:
    links = [
        Link(f"{record.table}:{record.uid}", link.address(run, record) if link else "")
        for record in run.records[:PAGE_RECORDS]
    ]
    more = len(run.records) - len(links)
    return Links((*links, Link(f"and {more:,} more")) if more else tuple(links))
