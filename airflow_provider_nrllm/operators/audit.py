"""NrLlmEditedAuditOperator: how much of EDITED is about the text that runs wrote, and of ACCEPTED was taken up."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from airflow.providers.common.compat.sdk import BaseOperator, Context

from airflow_provider_nrllm.edits.meanings import (
    AUTOMATIC_FIELDS,
    PLACE_FIELDS,
    RELEASE_FIELDS,
    EditedMeans,
    IgnoredFields,
)
from airflow_provider_nrllm.hooks.audit import NrLlmEditedAuditHook
from airflow_provider_nrllm.operators.arguments import (
    check_interval,
    check_partitions,
    checked_machine_users,
    checked_page_size,
    partition_of_run,
)
from airflow_provider_nrllm.outcomes.partitions import DAY, window_seconds
from airflow_provider_nrllm.readout.audits import Audit, audit_json, audit_markdown
from airflow_provider_nrllm.readout.counts import RangeOf
from airflow_provider_nrllm.readout.exports import XCOM_GROUPS
from airflow_provider_nrllm.readout.groups import grouping_of


class NrLlmEditedAuditOperator(BaseOperator):
    """
    Tell what observed outcomes are worth: which edits are none of the run's text, which accepted drafts nobody took up.

    ADR-185 says that EDITED over-reports, and that a hidden draft that nobody opened is accepted; this measures by
    how much. Changes no outcome row and writes nothing. Only the names of fields are read, which the database takes
    out, and the column that hides a record; no other value, no user id, no approval. Safe to repeat; where history
    was trimmed since, more of it cannot be told.

    Returns for each group, at most 200 of them, each with its share and its 95 % interval: how many edited runs are an
    edit of the run's text, beside it, a release, a move, a restore, no change, or cannot be told; how many accepted
    runs wrote records that were released, were visible already, are still hidden, or cannot be told; and how many runs
    wrote several records, and of these ended in more than one way.

    :param nrllm_conn_id: the Airflow connection to the TYPO3 database; its user needs the right to read
        ``sys_history.history_data`` and ``hidden``, ``disabled`` or ``disable`` of the written tables
    :param group_by: as of ``NrLlmOutcomeReadoutOperator``
    :param range_of: ``outcome``: when the outcome was recorded has to be in the range; ``run``: when the run was
        made
    :param interval_start: the start of the range, included (templated; a datetime or ISO 8601 text, UTC)
    :param interval_end: the end of the range, not included (templated; a datetime or ISO 8601 text, UTC)
    :param partition_width: how long a partition of a partitioned schedule is: a timedelta, of which whole days are
        counted by the wall clock, or ``month``
    :param partition_timezone: the time zone of that schedule, and of a partition key without an offset; None: that of
        the DAG's timetable, or UTC where it has none
    :param window: the window the outcomes were derived with: whole days or a timedelta, at least 1 day
    :param release_fields: the fields that release a record
    :param automatic_fields: the fields TYPO3 changes by itself; ``*`` stands for any rest of a name
    :param place_fields: the fields that tell where a record stands, which a move changes
    :param edited_means: what made a run ``edited`` when the outcomes were derived; by it the ways are told in which
        the records of a run ended
    :param page_size: the most runs looked at at once, 1 to 5000
    :param machine_users: those the outcomes were derived with
    :raises ValueError: for an invalid argument, when the DAG is parsed
    """

    template_fields: Sequence[str] = ("nrllm_conn_id", "interval_start", "interval_end")
    ui_color = "#d7ebf7"

    def __init__(
        self,
        *,
        nrllm_conn_id: str = NrLlmEditedAuditHook.default_conn_name,
        group_by: str | Sequence[str] = "served_model",
        range_of: str = "outcome",
        interval_start: str | datetime | None = None,
        interval_end: str | datetime | None = None,
        partition_width: timedelta | str = timedelta(days=1),
        partition_timezone: str | None = None,
        window: int | timedelta = 7,
        release_fields: Sequence[str] = RELEASE_FIELDS,
        automatic_fields: Sequence[str] = AUTOMATIC_FIELDS,
        place_fields: Sequence[str] = PLACE_FIELDS,
        edited_means: str = "any change",
        page_size: int = 500,
        machine_users: Sequence[str] = (),
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        grouping_of(group_by)
        RangeOf(range_of)
        window_seconds(window)
        IgnoredFields.of(release_fields, automatic_fields, place_fields)
        EditedMeans(edited_means)
        check_interval(interval_start, interval_end)
        check_partitions(partition_width, partition_timezone)
        self.nrllm_conn_id = nrllm_conn_id
        self.group_by = group_by
        self.range_of = range_of
        self.interval_start = interval_start
        self.interval_end = interval_end
        self.partition_width = partition_width
        self.partition_timezone = partition_timezone
        self.window = window
        self.release_fields = release_fields
        self.automatic_fields = automatic_fields
        self.place_fields = place_fields
        self.edited_means = edited_means
        self.page_size = checked_page_size(page_size)
        self.machine_users = checked_machine_users(machine_users)

    def execute(self, context: Context) -> dict[str, Any]:
        """Look at the observed runs page by page, log the figures and return them."""
        partition = partition_of_run(context, self)
        grouping, window = grouping_of(self.group_by), window_seconds(self.window)
        self.log.info("Range %s; window %d days", partition, window // DAY)
        audited = NrLlmEditedAuditHook(
            self.nrllm_conn_id, machine_users=self.machine_users, statement_timeout=self.execution_timeout
        ).audited_by_group(
            partition.start_second,
            partition.end_second,
            grouping=grouping,
            window=window,
            ignored=IgnoredFields.of(self.release_fields, self.automatic_fields, self.place_fields),
            edited_means=EditedMeans(self.edited_means),
            range_of=RangeOf(self.range_of),
            page_size=self.page_size,
        )
        audit = Audit(partition.start_second, partition.end_second, RangeOf(self.range_of), grouping, audited, window)
        self.log.info("Audit of EDITED and ACCEPTED UNCHANGED\n%s", audit_markdown(audit, XCOM_GROUPS))
        return {**audit_json(audit, XCOM_GROUPS), "window_days": window // DAY}
