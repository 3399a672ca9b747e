"""The span of time that an Airflow run is about."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Protocol

from airflow.providers.common.compat.sdk import Context

from airflow_provider_nrllm.database.site import MAX_PAGE_SIZE
from airflow_provider_nrllm.exceptions import NrLlmPartitionError, NrLlmSettingError
from airflow_provider_nrllm.outcomes.partitions import (
    Partition,
    Width,
    between,
    check_width,
    moment_of,
    partition_of,
    zone_of,
)

End = str | datetime | None


def check_interval(start: object, end: object) -> None:
    """
    Check ends that are known when the DAG is parsed; what Airflow resolves later is checked then.

    :raises ValueError: where they are no range of time
    """
    if is_resolved_later(start) or is_resolved_later(end):
        return
    moments = moment_of(start, "interval_start"), moment_of(end, "interval_end")  # type: ignore[arg-type]
    if any(moments):
        between(*moments, "")


def check_partitions(width: object, timezone: object) -> None:
    """
    Check ``partition_width`` and ``partition_timezone``.

    :raises ValueError: where there is no such width, no such zone, or no such width in this zone
    """
    check_width(width, None if timezone is None else zone_of(timezone))


class Partitioned(Protocol):
    """An operator with the arguments that say which span of time it is about."""

    interval_start: End
    interval_end: End
    partition_width: Width
    partition_timezone: str | None


def partition_of_run(context: Context, operator: Partitioned) -> Partition:
    """
    Return the partition that a run is about; its end may be in the future.

    :param context: of the run
    :param operator: with its arguments rendered; without a ``partition_timezone``, that of the DAG's timetable
        counts, or UTC where it has none
    :raises NrLlmSettingError: where an argument was rendered to no range of time; not retried
    :raises NrLlmPartitionError: where the run stands for no range of time; not retried
    """
    start, end = operator.interval_start, operator.interval_end
    try:
        check_interval(start, end)
    except ValueError as error:
        raise NrLlmSettingError(str(error)) from error
    timetable = getattr(context.get("dag"), "timetable", None)
    try:
        return partition_of(
            arguments=(start, end),
            data_interval=(context.get("data_interval_start"), context.get("data_interval_end")),
            partition_date=context.get("partition_date"),
            partition_key=context.get("partition_key"),
            partition_width=operator.partition_width,
            now=datetime.now(UTC),
            zone=zone_of(operator.partition_timezone or _timezone_of(timetable) or "UTC"),
        )
    except ValueError as error:
        raise NrLlmPartitionError(str(error)) from error


def _timezone_of(timetable: object) -> object:
    """Return the time zone of a timetable, as Airflow's task SDK and its scheduler name it; None if it has none."""
    return getattr(timetable, "timezone", None) or getattr(timetable, "_timezone", None)


def is_resolved_later(value: object) -> bool:
    """
    Return whether Airflow resolves a value only before the task runs, so that it can be checked only then.

    That is a template, an ``XComArg``, a ``dag.param()``, and a list that holds one of them.
    """
    if isinstance(value, str):
        return "{" in value
    if isinstance(value, list | tuple):
        return any(is_resolved_later(item) for item in value)
    # The two kinds of arguments share it, at another place of Airflow in each version.
    return hasattr(value, "iter_references")


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


def checked_sites(conn_ids: object) -> tuple[str, ...]:
    """
    Return the connections of several sites.

    :raises ValueError: unless it is a list of different names
    """
    names = tuple(conn_ids) if isinstance(conn_ids, list | tuple) else ()
    if not names or not all(isinstance(name, str) and name for name in names) or len(set(names)) < len(names):
        raise ValueError(f"nrllm_conn_id is {conn_ids!r}; expected an Airflow connection, or a list of different ones")
    return names


def check_one_site(conn_id: object) -> None:
    """
    Check that a connection is one.

    :raises ValueError: for a list of them
    """
    if not isinstance(conn_id, str) and not is_resolved_later(conn_id):
        raise ValueError(f"nrllm_conn_id is {conn_id!r}; expected one Airflow connection: map the task over several")
