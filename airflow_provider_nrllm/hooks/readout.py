"""NrLlmReadoutHook: outcomes counted by the database, by what telemetry says of the calls."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property

from airflow_provider_nrllm.database.hook import SiteHook
from airflow_provider_nrllm.database.requirements import Requirements
from airflow_provider_nrllm.database.site import SiteDatabase
from airflow_provider_nrllm.database.tables import DERIVATION_TABLES
from airflow_provider_nrllm.exceptions import NrLlmPrivilegeError
from airflow_provider_nrllm.outcomes.partitions import DAY
from airflow_provider_nrllm.outcomes.reasons import NOT_LOOKED_UP
from airflow_provider_nrllm.readout.behind import Explain, read_reasons, runs_behind
from airflow_provider_nrllm.readout.counts import Group, RangeOf, Readout, in_order, pooled, together
from airflow_provider_nrllm.readout.groups import Dimension
from airflow_provider_nrllm.readout.periods import PeriodWidth
from airflow_provider_nrllm.readout.reading import read_coverage, read_first_time, read_periods, statements_of
from airflow_provider_nrllm.readout.runs import AnsweredRun
from airflow_provider_nrllm.readout.telemetry import READOUT_TABLES


class NrLlmReadoutHook(SiteHook):
    """
    Read how outcomes are spread over models, configurations and the like.

    Writes nothing; reads no record content, no user id and no approval. Works over any Airflow connection of
    type ``mysql`` (MariaDB, MySQL), ``postgres`` or ``sqlite``.

    :param nrllm_conn_id: the Airflow connection to the TYPO3 database
    """

    hook_name = "nr_llm readout"
    requirements = Requirements(READOUT_TABLES, page="docs/how-to/read-outcomes-by-model.md")

    def readout(
        self,
        start: int | None,
        end: int,
        *,
        grouping: Sequence[Dimension],
        range_of: RangeOf = RangeOf.OUTCOME,
        where: Mapping[Dimension, Sequence[str]] | None = None,
        window: int = 7 * DAY,
        now: int | None = None,
        width: PeriodWidth | None = None,
    ) -> Readout:
        """
        Count the outcomes of a range of time.

        At most four statements in one snapshot, whatever the number of outcomes; a row a group and period comes
        out of the database, never a row an outcome. A correlation id counts once in a source
        (ADR-176); if its calls name several models, under "several", and without calls, under "no telemetry".

        :param start: the first second of the range, None for an open one
        :param end: the first second after it
        :param grouping: by what to group: one dimension, or two for an arm
        :param range_of: whose time has to be in the range
        :param where: the names that count, by dimension; without it, all
        :param window: how long the derivation watches a record after a write, in seconds
        :param now: the moment of asking, by which runs without an outcome are overdue; without it, the clock's
        :param width: how long a period is; without it, as the range is long
        """
        with self.database.snapshot() as connection:
            statements = statements_of(connection, start, end, range_of, grouping, where, window, self.nrllm_conn_id)
            if width is None:
                first = start if start is not None else read_first_time(connection, statements)
                width = PeriodWidth.of_range(first, end)
            periods = read_periods(connection, statements, width)
            coverage = read_coverage(connection, statements, int(time.time()) if now is None else now)
            without_run = 0
            if range_of is RangeOf.RUN:
                without_run = int(connection.execute(statements.ratings_without_run()).scalar_one())
        return Readout(
            start,
            end,
            range_of,
            tuple(grouping),
            in_order(Group(key, *pooled(own), periods=own) for key, own in periods.items()),
            together(periods.values()),
            without_run,
            width=width,
            window=window,
            where=dict(where or {}),
            coverage=coverage,
        )

    def width_of(
        self, start: int | None, end: int, *, range_of: RangeOf = RangeOf.OUTCOME, window: int = 7 * DAY
    ) -> PeriodWidth:
        """Return how long a period of a readout is; the parameters are those of :meth:`readout`."""
        if start is not None:
            return PeriodWidth.of_range(start, end)
        with self.database.snapshot() as connection:
            statements = statements_of(connection, start, end, range_of, (), None, window, self.nrllm_conn_id)
            return PeriodWidth.of_range(read_first_time(connection, statements), end)

    def runs(
        self,
        start: int | None,
        end: int,
        *,
        grouping: Sequence[Dimension],
        range_of: RangeOf = RangeOf.OUTCOME,
        where: Mapping[Dimension, Sequence[str]] | None = None,
        window: int = 7 * DAY,
        explain: Mapping[str, Explain] | None = None,
        page_size: int = 1000,
    ) -> Iterator[AnsweredRun]:
        """
        Yield the outcomes that a readout counts, one by one, each with its run and the records that this wrote.

        Reads a page at a time, each in a snapshot of its own: memory does not grow with the range, and what is
        recorded meanwhile may be among them. The first parameters are those of :meth:`readout`.

        :param explain: what says of the runs of an outcome what this is about, by the outcome
        :param page_size: the most outcomes read at once
        """
        with self.database.snapshot() as connection:
            statements = statements_of(connection, start, end, range_of, grouping, where, window, self.nrllm_conn_id)
        yield from runs_behind(self.database, statements, explain or {}, page_size)

    @cached_property
    def evidence(self) -> SiteDatabase:
        """The same database for what a readout of figures does not read: the history, and the written records."""
        requirements = Requirements(DERIVATION_TABLES, page="docs/how-to/database-user.md")
        return SiteDatabase(self.nrllm_conn_id, requirements, seconds=self.database.seconds)

    def reasons_of_unknown(self, uuids: Collection[str], *, window: int = 7 * DAY) -> dict[str, str]:
        """
        Return why runs are ``unknown``, in words, by the evidence that is there now.

        Needs the right to read what a derivation reads.

        :param uuids: of the runs
        :param window: the window the outcomes were derived with, in seconds
        """
        with self.evidence.snapshot() as connection:
            return read_reasons(connection, uuids, window)

    def explain_unknown(self, window: int) -> Explain:
        """Return what says why runs are ``unknown``, or that the user of the connection may not look it up."""
        refused: list[NrLlmPrivilegeError] = []

        def explain(uuids: Collection[str]) -> Mapping[str, str]:
            if not refused:
                try:
                    return self.reasons_of_unknown(uuids, window=window)
                except NrLlmPrivilegeError as error:
                    refused.append(error)
                    self.log.warning("Why runs are unknown is not looked up. %s", error)
            return dict.fromkeys(uuids, NOT_LOOKED_UP)

        return explain
