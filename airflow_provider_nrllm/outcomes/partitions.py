"""Which part of the time line an Airflow run stands for, and how long a window is. Pure: time is an argument."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

DAY = 86400


def window_seconds(window: int | float | timedelta) -> int:
    """
    Return a window in seconds.

    :param window: whole days as a number or a timedelta, at least 1 (ADR-185)
    :raises ValueError: for anything else
    """
    days: object = window / timedelta(days=1) if isinstance(window, timedelta) else window
    if isinstance(days, bool) or not isinstance(days, int | float) or not math.isfinite(days) or days != int(days):
        raise ValueError(f"window is {window!r}; expected a whole number of days, or a timedelta of whole days")
    if not 1 <= days <= timedelta.max.days:
        raise ValueError(f"window is {window!r}; expected at least 1 day: a record is watched for days, not less")
    return int(days) * DAY


@dataclass(frozen=True, slots=True)
class Partition:
    """
    The half-open stretch ``[start, end)`` of the time line; a run belongs where it settles.

    :param start: None: all that settled before the end
    :param end: never in the future when it is derived
    :param source: where the two were taken from, in words for a log
    """

    start: datetime | None
    end: datetime
    source: str

    @property
    def start_second(self) -> int | None:
        """The first whole second in the partition, as Unix time."""
        return None if self.start is None else math.ceil(self.start.timestamp())

    @property
    def end_second(self) -> int:
        """The first whole second after the partition, as Unix time."""
        return math.ceil(self.end.timestamp())

    def __str__(self) -> str:
        start = "the beginning" if self.start is None else _utc(self.start)
        return f"[{start}, {_utc(self.end)}), {self.source}"


def _utc(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def moment_of(value: str | datetime | None, name: str) -> datetime | None:
    """
    Return a moment in UTC that was given as a datetime or as ISO 8601 text; without an offset it is UTC.

    Nothing, an empty text, and the ``None`` that a template renders for what is not set, are None.

    :param name: of the argument, for the error
    :raises ValueError: for any other text or type
    """
    if value is None or value in ("", "None"):
        return None
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value.strip())
        except ValueError as error:
            raise ValueError(f"{name} is {value!r}; expected an ISO 8601 date or time") from error
    if not isinstance(value, datetime):
        raise ValueError(f"{name} is {value!r}; expected a datetime or an ISO 8601 text")
    try:
        # Two moments of one zone would compare by what its clocks show, also in the hour that they show twice.
        return (value if value.tzinfo else value.replace(tzinfo=UTC)).astimezone(UTC)
    except OverflowError as error:
        raise ValueError(f"{name} is {value!r}; expected a moment in the years 1 to 9999, UTC") from error


def between(start: datetime | None, end: datetime | None, source: str) -> Partition:
    """
    Return the partition of two given ends.

    :raises ValueError: where the end is missing, or not after the start
    """
    if end is None:
        raise ValueError(f"interval_start is {start} without an interval_end; expected both, or only an end")
    if start is not None and end <= start:
        raise ValueError(f"interval_end is {_utc(end)}, interval_start {_utc(start)}; expected an end after the start")
    return Partition(start, end, source)


def partition_of(
    *,
    arguments: tuple[str | datetime | None, str | datetime | None],
    data_interval: tuple[datetime | None, datetime | None],
    partition_date: datetime | None,
    partition_key: str | None,
    partition_width: timedelta,
    now: datetime,
) -> Partition:
    """
    Return the partition that an Airflow run stands for.

    In this order: the operator's own arguments; the run's data interval, if it has width; the date of its
    partition, or the key read as one, with the partition's width; else all that settled before the
    interval's end, or before now.

    :param arguments: ``interval_start`` and ``interval_end``, rendered
    :param data_interval: the run's data interval; both None for a run without one
    :param partition_date: of a partitioned run, on Airflow 3.3 and later
    :param partition_key: of a partitioned run, on Airflow 3.2 and later; an ISO 8601 date or time
    :param partition_width: how long a partition is
    :param now: the moment of asking
    :raises ValueError: where what was given is no stretch of time
    """
    start, end = moment_of(arguments[0], "interval_start"), moment_of(arguments[1], "interval_end")
    if start is not None or end is not None:
        return between(start, end, "from the operator's arguments")
    interval_start, interval_end = (moment_of(end, "the data interval") for end in data_interval)
    if interval_start is not None and interval_end is not None and interval_start < interval_end:
        return Partition(interval_start, interval_end, "from the run's data interval")
    if partition_date is not None:
        return Partition(partition_date, partition_date + partition_width, "from the run's partition date")
    key = moment_of(partition_key, "partition_key")
    if key is not None:
        return Partition(key, key + partition_width, "from the run's partition key")
    if interval_end is not None:
        return Partition(None, interval_end, "all that settled before the end of the run's data interval")
    return Partition(None, now.replace(microsecond=0), "all that settled before now")
