"""NrLlmDeriveOutcomesOperator: what became of what the runs of a partition wrote."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any

from airflow.providers.common.compat.sdk import Asset, BaseOperator, Context

from airflow_provider_nrllm.exceptions import NrLlmPartitionError
from airflow_provider_nrllm.hooks.nrllm import NrLlmHook
from airflow_provider_nrllm.outcomes import ObservedOutcome
from airflow_provider_nrllm.pages import checked_page_size
from airflow_provider_nrllm.partitions import DAY, Partition, between, moment_of, partition_of, window_seconds


class NrLlmDeriveOutcomesOperator(BaseOperator):
    """
    Derive the observed outcome of every run that settled in a partition and has none yet.

    Writes rows of ``tx_nrllm_call_outcome`` and nothing else, each run once, whatever runs at the same time,
    was killed or is repeated. The partition is, in this order: ``interval_start`` and ``interval_end``; the
    run's data interval, if it has width; its partition date or key with ``partition_width``; else all that
    settled before the interval's end, or before now. Rules: ADR-176, ADR-185.

    Returns counts, and attaches them to its outlet assets: the partition, the window, the runs answered,
    the runs of each outcome, and the writes whose record could not be read.

    :param nrllm_conn_id: the Airflow connection to the TYPO3 database
    :param window: how long a record is watched after a write: whole days or a timedelta, at least 1 day
    :param interval_start: the start of the partition, included (templated; a datetime or ISO 8601 text, UTC)
    :param interval_end: the end of the partition, not included (templated; a datetime or ISO 8601 text, UTC)
    :param partition_width: how long a partition of a partitioned schedule is
    :param page_size: the most runs read and recorded at once, 1 to 5000
    :raises ValueError: for a window, page size, width or interval that cannot be, when the DAG is parsed
    """

    template_fields: Sequence[str] = ("nrllm_conn_id", "interval_start", "interval_end")
    ui_color = "#ffe9c9"

    def __init__(
        self,
        *,
        nrllm_conn_id: str = NrLlmHook.default_conn_name,
        window: int | timedelta = 7,
        interval_start: str | datetime | None = None,
        interval_end: str | datetime | None = None,
        partition_width: timedelta = timedelta(days=1),
        page_size: int = 1000,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        window_seconds(window)
        if not isinstance(partition_width, timedelta) or partition_width <= timedelta(0):
            raise ValueError(f"partition_width is {partition_width!r}; expected a timedelta longer than 0")
        _check_interval(interval_start, interval_end)
        self.nrllm_conn_id = nrllm_conn_id
        self.window = window
        self.interval_start = interval_start
        self.interval_end = interval_end
        self.partition_width = partition_width
        self.page_size = checked_page_size(page_size)

    @cached_property
    def hook(self) -> NrLlmHook:
        """The hook that reads and records."""
        return NrLlmHook(self.nrllm_conn_id)

    def execute(self, context: Context) -> dict[str, Any]:
        """Derive and record the outcomes of the partition, and return the counts."""
        partition = self._partition(context)
        window = window_seconds(self.window)
        self.log.info("Partition %s; window %d days", partition, window // DAY)
        outcomes: Counter[ObservedOutcome] = Counter()
        unreadable = 0
        pages = self.hook.pages(partition.start_second, partition.end_second, window=window, page_size=self.page_size)
        for number, page in enumerate(pages, start=1):
            answers = page.outcomes(int(time.time()))
            recorded = self.hook.record_observed(page.runs, answers)
            outcomes.update(answers[run.uuid] for run in recorded)
            unreadable += sum(run.unreadable_writes for run in recorded)
            reached = datetime.fromtimestamp(page.reached, UTC)
            self.log.info(
                "Page %d: %d runs answered, %d in all, up to %s",
                number, len(recorded), outcomes.total(), reached.strftime("%Y-%m-%dT%H:%M:%SZ"),
            )  # fmt: skip
        result: dict[str, Any] = {
            "interval_start": partition.start.astimezone(UTC).isoformat() if partition.start else None,
            "interval_end": partition.end.astimezone(UTC).isoformat(),
            "window_days": window // DAY,
            "runs_answered": outcomes.total(),
            "outcomes": {str(value): outcomes[value] for value in ObservedOutcome},
            "unreadable_writes": unreadable,
        }
        self.log.info("Answered: %s", result)
        for outlet in self.outlets:
            if isinstance(outlet, Asset):
                context["outlet_events"][outlet].extra.update(result)
        return result

    def _partition(self, context: Context) -> Partition:
        """
        Return the partition of this run.

        :raises NrLlmPartitionError: where it is no stretch of time, or not closed yet; not retried
        """
        now = datetime.now(UTC)
        try:
            partition = partition_of(
                arguments=(self.interval_start, self.interval_end),
                # A run without a logical date has no such keys, and only a partitioned run has the others.
                data_interval=(context.get("data_interval_start"), context.get("data_interval_end")),
                partition_date=context.get("partition_date"),
                partition_key=context.get("partition_key"),
                partition_width=self.partition_width,
                now=now,
            )
        except ValueError as error:
            raise NrLlmPartitionError(str(error)) from error
        if partition.end > now:
            raise NrLlmPartitionError(
                f"The partition {partition} ends after now, {now.isoformat()}; expected an end in the past: what "
                "settles until then cannot be known yet. Run it when it has closed; a schedule of partitions "
                "needs an offset of -1."
            )
        return partition


def _check_interval(start: str | datetime | None, end: str | datetime | None) -> None:
    """
    Check ends that are known when the DAG is parsed; a template is checked when it is rendered.

    :raises ValueError: where they are no stretch of time
    """
    if any(isinstance(value, str) and "{" in value for value in (start, end)):
        return
    moments = moment_of(start, "interval_start"), moment_of(end, "interval_end")
    if any(moments):
        between(*moments, "")
