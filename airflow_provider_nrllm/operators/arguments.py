"""The stretch of time that an Airflow run is about."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from airflow.providers.common.compat.sdk import Context

from airflow_provider_nrllm.database.site import MAX_PAGE_SIZE
from airflow_provider_nrllm.exceptions import NrLlmPartitionError
from airflow_provider_nrllm.outcomes.partitions import Partition, between, moment_of, partition_of

End = str | datetime | None


def check_interval(start: End, end: End) -> None:
    """
    Check ends that are known when the DAG is parsed; a template is checked when it is rendered.

    :raises ValueError: where they are no stretch of time
    """
    if is_template(start) or is_template(end):
        return
    moments = moment_of(start, "interval_start"), moment_of(end, "interval_end")
    if any(moments):
        between(*moments, "")


def partition_of_run(context: Context, *, start: End, end: End, partition_width: timedelta) -> Partition:
    """
    Return the partition that a run is about; its end may be in the future.

    :param context: of the run
    :param start: the operator's ``interval_start``, rendered
    :param end: the operator's ``interval_end``, rendered
    :param partition_width: how long a partition of a partitioned schedule is
    :raises NrLlmPartitionError: where it is no stretch of time; not retried
    """
    try:
        return partition_of(
            arguments=(start, end),
            data_interval=(context.get("data_interval_start"), context.get("data_interval_end")),
            partition_date=context.get("partition_date"),
            partition_key=context.get("partition_key"),
            partition_width=partition_width,
            now=datetime.now(UTC),
        )
    except ValueError as error:
        raise NrLlmPartitionError(str(error)) from error


def is_template(value: object) -> bool:
    """Whether a value is text that Airflow renders before the task runs, and so can be checked only then."""
    return isinstance(value, str) and "{" in value


def checked_page_size(page_size: object) -> int:
    """
    Return a page size.

    :raises ValueError: where it is no whole number from 1 to 5000
    """
    if not isinstance(page_size, int) or isinstance(page_size, bool) or not 1 <= page_size <= MAX_PAGE_SIZE:
        raise ValueError(f"page_size is {page_size!r}; expected a whole number from 1 to {MAX_PAGE_SIZE}")
    return page_size


def checked_machine_users(names: Sequence[str]) -> tuple[str, ...]:
    """
    Return the names of TYPO3 users.

    :raises ValueError: unless it is a list of names
    """
    if isinstance(names, str) or not all(isinstance(name, str) and name for name in names):
        raise ValueError(f"machine_users is {names!r}; expected a list of names of TYPO3 users")
    return tuple(names)
