"""NrLlmOutcomeScoresOperator: hands the outcomes recorded in a partition on as scores."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any

from airflow.providers.common.compat.sdk import BaseOperator, Context

from airflow_provider_nrllm.assets import attach_counts
from airflow_provider_nrllm.exceptions import NrLlmScoresError, NrLlmSettingError
from airflow_provider_nrllm.hooks.scores import HandedOn, NrLlmScoresHook, target_of
from airflow_provider_nrllm.operators.arguments import (
    check_interval,
    check_one_site,
    check_partitions,
    checked_page_size,
    is_resolved_later,
    partition_of_run,
)
from airflow_provider_nrllm.outcomes.partitions import Partition
from airflow_provider_nrllm.scores.exchanges import Fate

MOST_REQUESTS_AT_ONCE = 64


class NrLlmOutcomeScoresOperator(BaseOperator):
    """
    Hand each outcome recorded in a partition on as one score of its run's trace.

    ``nrllm.observed`` is given by code, ``nrllm.explicit`` by a human; the value is the stored word, never a number
    (ADR-176). The partition is, in this order: ``interval_start`` and ``interval_end``; the run's data interval, if
    it has width; its partition date or key with ``partition_width``; else all that was recorded before the interval's
    end, or before now. What counts is when the outcome was recorded. Writes nothing into the TYPO3 database. Safe
    to repeat, to run twice at once and to be killed: each outcome is one score, and a rating that changed is updated.

    Returns counts, and attaches them to its outlet assets.

    :param target: ``mlflow`` or ``langfuse`` (templated)
    :param scores_conn_id: the Airflow connection of type ``http`` with the target's host and keys (templated)
    :param nrllm_conn_id: the Airflow connection to the TYPO3 database (templated)
    :param interval_start: the start of the partition, included (templated; a datetime or ISO 8601 text, UTC)
    :param interval_end: the end of the partition, not included (templated; a datetime or ISO 8601 text, UTC)
    :param partition_width: how long a partition of a partitioned schedule is: a timedelta or ``month``
    :param partition_timezone: the time zone of that schedule; None: that of the DAG's timetable, or UTC
    :param experiment_id: of MLflow, the id of the experiment that traces are laid into (templated)
    :param traces: whether traces are sent first; None: to MLflow yes, to Langfuse no
    :param page_size: the most outcomes read and held at once, 1 to 5000
    :param requests_at_once: the most requests under way, 1 to 64
    :param without_tls: whether a host that is not this machine may be asked without TLS, its keys in the clear
    :raises ValueError: for an invalid argument, when the DAG is parsed
    """

    template_fields: Sequence[str] = (
        "target", "scores_conn_id", "nrllm_conn_id", "interval_start", "interval_end", "experiment_id",
    )  # fmt: skip
    ui_color = "#e3d9ff"

    def __init__(
        self,
        *,
        target: str,
        scores_conn_id: str,
        nrllm_conn_id: str = NrLlmScoresHook.default_conn_name,
        interval_start: str | datetime | None = None,
        interval_end: str | datetime | None = None,
        partition_width: timedelta | str = timedelta(days=1),
        partition_timezone: str | None = None,
        experiment_id: str = "0",
        traces: bool | None = None,
        page_size: int = 500,
        requests_at_once: int = 4,
        without_tls: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if not is_resolved_later(target):
            target_of(target)
        check_one_site(nrllm_conn_id)
        check_partitions(partition_width, partition_timezone)
        check_interval(interval_start, interval_end)
        whole = isinstance(requests_at_once, int) and not isinstance(requests_at_once, bool)
        if not whole or not 1 <= requests_at_once <= MOST_REQUESTS_AT_ONCE:
            raise ValueError(
                f"requests_at_once is {requests_at_once!r}; expected a whole number from 1 to {MOST_REQUESTS_AT_ONCE}"
            )
        self.target = target
        self.scores_conn_id = scores_conn_id
        self.nrllm_conn_id = nrllm_conn_id
        self.interval_start = interval_start
        self.interval_end = interval_end
        self.partition_width = partition_width
        self.partition_timezone = partition_timezone
        self.experiment_id = experiment_id
        self.traces = traces
        self.page_size = checked_page_size(page_size)
        self.requests_at_once = requests_at_once
        self.without_tls = without_tls

    @cached_property
    def hook(self) -> NrLlmScoresHook:
        """The hook that reads and sends."""
        try:
            return NrLlmScoresHook(
                self.nrllm_conn_id,
                scores_conn_id=self.scores_conn_id,
                target=self.target,
                experiment_id=self.experiment_id,
                traces=self.traces,
                requests_at_once=self.requests_at_once,
                without_tls=self.without_tls,
                statement_timeout=self.execution_timeout,
            )
        except ValueError as error:
            raise NrLlmSettingError(str(error)) from error

    def execute(self, context: Context) -> dict[str, Any]:
        """
        Hand the outcomes of the partition on, and return the counts.

        :raises NrLlmScoresError: at the end, if the target refused some of them; all others are sent
        """
        partition = partition_of_run(context, self)
        self.log.info("Outcomes recorded in the partition %s, to %s", partition, self.target)
        done = HandedOn()
        for number, done in enumerate(
            self.hook.hand_on(partition.start_second, partition.end_second, page_size=self.page_size), start=1
        ):
            self.log.info("Page %d: in all %s", number, _in_words(done))
        counts = self._counts(partition, done)
        self.log.info("Handed on: %s", _in_words(done))
        if done.refused:
            raise NrLlmScoresError(
                f"{self.target} refused {done.fate(Fate.REFUSED)} scores and {done.refused_traces} traces, and took "
                f"all others. Correlation ids, the first {len(done.refused)}: {', '.join(done.refused)}. "
                "The target's own log says why."
            )
        attach_counts(self, context, counts)
        return counts

    def _counts(self, partition: Partition, done: HandedOn) -> dict[str, Any]:
        return {
            "interval_start": partition.start.astimezone(UTC).isoformat() if partition.start else None,
            "interval_end": partition.end.astimezone(UTC).isoformat(),
            "target": self.target,
            "scores": {name: {str(fate): fates[fate] for fate in Fate} for name, fates in done.scores.items()},
            "traces": done.traces - done.refused_traces,
            "without_trace_id": done.without_trace_id,
        }


def _in_words(done: HandedOn) -> str:
    return (
        f"{done.fate(Fate.SENT)} scores sent, {done.fate(Fate.UNCHANGED)} there already, {done.fate(Fate.NO_TRACE)} "
        f"without a trace, {done.fate(Fate.REFUSED)} refused; {done.traces} traces; "
        f"{done.without_trace_id} outcomes whose id is no trace's"
    )
