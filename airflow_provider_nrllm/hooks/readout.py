"""NrLlmReadoutHook: outcomes counted by the database, by what telemetry says of the calls."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from airflow_provider_nrllm.database.hook import SiteHook
from airflow_provider_nrllm.database.requirements import Requirements
from airflow_provider_nrllm.outcomes.partitions import DAY
from airflow_provider_nrllm.readout.counts import Group, RangeOf, Readout, in_order, pooled, together
from airflow_provider_nrllm.readout.groups import Dimension
from airflow_provider_nrllm.readout.periods import PeriodWidth
from airflow_provider_nrllm.readout.reading import read_coverage, read_first_time, read_periods, statements_of
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
        """
        with self.database.snapshot() as connection:
            statements = statements_of(connection, start, end, range_of, grouping, where, window)
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
