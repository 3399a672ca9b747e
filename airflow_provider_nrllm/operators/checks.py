"""NrLlmOutcomeCheckOperator: fails where a share of outcomes is past a bound that the user set."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any

from airflow.providers.common.compat.sdk import AirflowSkipException, BaseOperator, Context

from airflow_provider_nrllm.exceptions import NrLlmOutcomeCheckError, NrLlmPrivilegeError, NrLlmSchemaError
from airflow_provider_nrllm.hooks.readout import NrLlmReadoutHook
from airflow_provider_nrllm.operators.arguments import (
    check_interval,
    check_one_site,
    check_partitions,
    partition_of_run,
)
from airflow_provider_nrllm.outcomes.partitions import window_seconds
from airflow_provider_nrllm.outcomes.rules import ObservedOutcome
from airflow_provider_nrllm.purge.reading import PurgeReader
from airflow_provider_nrllm.purge.rules import history_to_mend
from airflow_provider_nrllm.readout.cells import counted
from airflow_provider_nrllm.readout.checks import (
    Finding,
    OnTooFew,
    Verdict,
    bounds_of,
    by_source,
    findings_of,
    unanswered,
)
from airflow_provider_nrllm.readout.counts import RangeOf
from airflow_provider_nrllm.readout.exports import XCOM_GROUPS
from airflow_provider_nrllm.readout.groups import filters_of, grouping_of

#: How long a partition of the derivation is where nothing else is known.
_A_DAY = timedelta(days=1)


class NrLlmOutcomeCheckOperator(BaseOperator):
    """
    Fail where a share of outcomes is past a bound that the user sets, with all reasons in one error.

    Each bound is of one source (ADR-176). It decides nothing about models: the bound is the user's (ADR-185). By
    default a share is past its bound only where its whole 95 % interval is. With too few cases the task neither fails
    nor passes: it is skipped. Reads only, no record content, user id or approval; safe to repeat, and not retried.

    Returns, and where it skips pushes as its ``return_value``, the bounds beside the shares with what each is:
    ``within``, ``beyond``, ``cannot be told yet`` or ``too few cases``.

    :param nrllm_conn_id: the Airflow connection to the TYPO3 database
    :param min_accepted: the least share of ``accepted_unchanged`` among the decided runs, from 0 to 1
    :param max_edited: the greatest share of ``edited`` among the decided runs
    :param max_discarded: the greatest share of ``discarded`` among the decided runs
    :param max_unknown: the greatest share of ``unknown`` among all observed runs
    :param min_helpful: the least share of ``helpful`` among all ratings
    :param max_not_helpful: the greatest share of ``not_helpful`` among all ratings
    :param certain: whether the whole interval has to lie beyond a bound; else the share itself
    :param min_cases: the fewest cases that a share has to be of, at least 1
    :param on_too_few: where no group has so many cases for a bound: ``skip`` the task, ``fail`` it, or ``warn``
    :param group_by: None for all outcomes together, or as of ``NrLlmOutcomeReadoutOperator``: each group is checked
    :param where: as of ``NrLlmOutcomeReadoutOperator``
    :param range_of: as of ``NrLlmOutcomeReadoutOperator``
    :param interval_start: the start of the range, included (templated; a datetime or ISO 8601 text, UTC)
    :param interval_end: the end of the range, not included (templated; a datetime or ISO 8601 text, UTC)
    :param partition_width: how long a partition of a partitioned schedule is: a timedelta, of which whole days are
        counted by the wall clock, or ``month``
    :param partition_timezone: the time zone of that schedule, and of a partition key without an offset; None: that of
        the DAG's timetable, or UTC where it has none
    :param window: the window the outcomes were derived with: whole days or a timedelta
    :raises ValueError: for an invalid argument, when the DAG is parsed
    """

    template_fields: Sequence[str] = ("nrllm_conn_id", "interval_start", "interval_end")
    ui_color = "#d7ebf7"

    def __init__(
        self,
        *,
        nrllm_conn_id: str = NrLlmReadoutHook.default_conn_name,
        min_accepted: float | None = None,
        max_edited: float | None = None,
        max_discarded: float | None = None,
        max_unknown: float | None = None,
        min_helpful: float | None = None,
        max_not_helpful: float | None = None,
        certain: bool = True,
        min_cases: int = 30,
        on_too_few: str = OnTooFew.SKIP,
        group_by: str | Sequence[str] | None = None,
        where: Mapping[str, Sequence[str]] | None = None,
        range_of: str = "outcome",
        interval_start: str | datetime | None = None,
        interval_end: str | datetime | None = None,
        partition_width: timedelta | str = _A_DAY,
        partition_timezone: str | None = None,
        window: int | timedelta = 7,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if isinstance(min_cases, bool) or not isinstance(min_cases, int) or min_cases < 1:
            raise ValueError(f"min_cases is {min_cases!r}; expected a whole number of at least 1")
        check_one_site(nrllm_conn_id)
        if group_by is not None:
            grouping_of(group_by)
        filters_of(where)
        RangeOf(range_of)
        window_seconds(window)
        check_interval(interval_start, interval_end)
        check_partitions(partition_width, partition_timezone)
        self.nrllm_conn_id = nrllm_conn_id
        self.min_accepted = min_accepted
        self.max_edited = max_edited
        self.max_discarded = max_discarded
        self.max_unknown = max_unknown
        self.min_helpful = min_helpful
        self.max_not_helpful = max_not_helpful
        self.bounds = bounds_of(
            {
                "min_accepted": min_accepted,
                "max_edited": max_edited,
                "max_discarded": max_discarded,
                "max_unknown": max_unknown,
                "min_helpful": min_helpful,
                "max_not_helpful": max_not_helpful,
            }
        )
        self.certain = certain
        self.min_cases = min_cases
        self.on_too_few = str(OnTooFew(on_too_few))
        self.group_by = group_by
        self.where = where
        self.range_of = range_of
        self.interval_start = interval_start
        self.interval_end = interval_end
        self.partition_width = partition_width
        self.partition_timezone = partition_timezone
        self.window = window

    @cached_property
    def hook(self) -> NrLlmReadoutHook:
        """The hook that counts."""
        return NrLlmReadoutHook(self.nrllm_conn_id, statement_timeout=self.execution_timeout)

    def execute(self, context: Context) -> dict[str, Any]:
        """
        Count, and lay the bounds beside the shares.

        :raises NrLlmOutcomeCheckError: where a share is past a bound, or with too few cases and ``fail``; not retried
        :raises AirflowSkipException: with too few cases and ``skip``
        """
        partition = partition_of_run(context, self)
        self.log.info("Range %s", partition)
        grouping = grouping_of(self.group_by) if self.group_by is not None else ()
        readout = self.hook.readout(
            partition.start_second,
            partition.end_second,
            grouping=grouping,
            range_of=RangeOf(self.range_of),
            where=filters_of(self.where),
            window=window_seconds(self.window),
        )
        findings = list(
            findings_of(self.bounds, readout.groups, grouping, min_cases=self.min_cases, certain=self.certain)
        )
        for verdict in Verdict:
            for one in findings:
                if one.verdict is verdict:
                    self.log.info("%s: %s", verdict.capitalize(), one.in_words)
        beyond = [one for one in findings if one.verdict is Verdict.BEYOND]
        if beyond:
            raise NrLlmOutcomeCheckError(f"Connection {self.nrllm_conn_id!r}, {readout.in_words}: {self._why(beyond)}")
        figures = {
            "findings": [one.as_json for one in findings[:XCOM_GROUPS]],
            "findings_left_out": max(len(findings) - XCOM_GROUPS, 0),
        }
        if too_few := unanswered(findings):
            fewer = f"fewer than {counted(self.min_cases, 'case')}{' in every group' if grouping else ''}"
            message = f"Connection {self.nrllm_conn_id!r}, {readout.in_words}: {fewer}. {by_source(too_few)}"
            self._too_few(context, figures, message)
        return figures

    def _why(self, beyond: Sequence[Finding]) -> str:
        """Return all reasons, and what to look at where many runs are unknown."""
        reasons = [f"past a bound. {by_source(beyond)}"]
        if any(one.bound.value is ObservedOutcome.UNKNOWN for one in beyond):
            reasons += [*self._settings_to_mend(), "See docs/how-to/many-unknown.md."]
        return " ".join(reasons)

    def _settings_to_mend(self) -> list[str]:
        """Return what leads to many ``unknown``, in the words of the purge guard."""
        try:
            oldest = PurgeReader(self.hook.evidence).oldest_history()
        except (NrLlmPrivilegeError, NrLlmSchemaError) as error:
            return [f"How far sys_history reaches back is not known. {error}"]
        return history_to_mend(
            window=window_seconds(self.window),
            partition=int(_A_DAY.total_seconds()),
            history=None if oldest is None else int(time.time()) - oldest,
        )

    def _too_few(self, context: Context, figures: Mapping[str, Any], message: str) -> None:
        if self.on_too_few == OnTooFew.FAIL:
            raise NrLlmOutcomeCheckError(message)
        self.log.warning("%s", message)
        if self.on_too_few == OnTooFew.SKIP:
            # A task that skips returns nothing.
            context["ti"].xcom_push(key="return_value", value=figures)
            raise AirflowSkipException(message)
