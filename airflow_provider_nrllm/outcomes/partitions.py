"""The partition of the time line that an Airflow run stands for, and the length of a window. Pure: time is given."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo

DAY = 86400

#: The longest that a window, a retention or a partition can be, in days: a hundred years.
MAX_DAYS = 36500

#: The width of a partition that is a month of the calendar.
MONTH = "month"


def window_seconds(window: int | float | timedelta) -> int:
    """
    Return a window in seconds.

    :param window: whole days as a number or a timedelta, at least 1 (ADR-185)
    :raises ValueError: for anything else
    """
    days: object = window / timedelta(days=1) if isinstance(window, timedelta) else window
    if isinstance(days, bool) or not isinstance(days, int | float) or not math.isfinite(days) or days != int(days):
        raise ValueError(f"window is {window!r}; expected a whole number of days, or a timedelta of whole days")
    if not 1 <= days <= MAX_DAYS:
        raise ValueError(f"window is {window!r}; expected 1 to {MAX_DAYS} days: a record is watched for days, not less")
    return int(days) * DAY


@dataclass(frozen=True, slots=True)
class Partition:
    """
    The half-open span ``[start, end)`` of the time line; a run belongs where it settles.

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


Width = timedelta | str


def zone_of(name: object) -> tzinfo:
    """
    Return a time zone.

    :param name: of the IANA database, such as ``Europe/Berlin``, or a tzinfo
    :raises ValueError: for any other name or type
    """
    if isinstance(name, tzinfo):
        return name
    try:
        return ZoneInfo(name)  # type: ignore[arg-type]
    except (TypeError, ValueError, OSError, LookupError) as error:
        expected = "expected the name of a time zone, such as Europe/Berlin"
        raise ValueError(f"partition_timezone is {name!r}; {expected}") from error


def check_width(width: object, zone: tzinfo | None = None) -> None:
    """
    Check how long a partition is.

    :param width: whole days, which are counted by the wall clock; a timedelta of less than a day; or ``month``
    :param zone: None, where it is not known yet
    :raises ValueError: for anything else, and for a part of a day by which the clocks of the zone do not change:
        Airflow makes such a partition longer or shorter on the day of the change, which only it can tell
    """
    if width == MONTH:
        return
    if not isinstance(width, timedelta) or not timedelta(0) < width <= timedelta(days=MAX_DAYS):
        expected = f"expected a timedelta of more than 0 and at most {MAX_DAYS} days, or {MONTH!r}"
        raise ValueError(f"partition_width is {width!r}; {expected}")
    if width > timedelta(days=1) and width % timedelta(days=1):
        raise ValueError(f"partition_width is {width}; expected whole days, or less than a day")
    if zone is not None and width < timedelta(days=1) and not _divides_clock_changes(width, zone):
        raise ValueError(
            f"partition_width is {width} in the time zone {zone}, where a day has not always 24 hours; expected whole "
            "days, a month, or a width by which its clocks change. For other widths let the timetable keep UTC."
        )


def _divides_clock_changes(width: timedelta, zone: tzinfo) -> bool:
    """Whether clocks of a zone are put forward and back by whole widths, if they are."""
    moments = (datetime(2020 + number // 12, number % 12 + 1, 1, tzinfo=UTC) for number in range(240))
    offsets = {moment.astimezone(zone).utcoffset() or timedelta(0) for moment in moments}
    return not any((offset - min(offsets)) % width for offset in offsets)


def partition_from(start: datetime, width: Width, zone: tzinfo, source: str) -> Partition:
    """
    Return the partition that begins at a moment.

    Days, weeks and months are counted by the wall clock of the zone, as Airflow's timetable counts them: a day on
    which clocks change has 23 or 25 hours. Where the clocks skip midnight, the day begins when they go on.

    :param start: aware
    :raises ValueError: where the width is not to be had in this zone, or the start of a month is not its first day
    """
    check_width(width, zone)
    # Airflow's own datetimes lose the zone of the standard library when something is added to them.
    start = datetime.fromtimestamp(start.timestamp(), UTC)
    if isinstance(width, timedelta) and width % timedelta(days=1):
        return Partition(start, start + width, source)
    wall = _wall_clock(start, zone)
    if isinstance(width, timedelta):
        return Partition(start, at_wall_clock(wall + width, zone), source)
    if wall.day != 1:
        raise ValueError(f"the partition begins at {wall} in {zone}; expected the first day of a month")
    month = wall.replace(year=wall.year + wall.month // 12, month=wall.month % 12 + 1)
    return Partition(start, at_wall_clock(month, zone), source)


def _wall_clock(moment: datetime, zone: tzinfo) -> datetime:
    """Return what clocks show, without a zone; midnight where they skipped it and this is when they went on."""
    wall = moment.astimezone(zone).replace(tzinfo=None, fold=0)
    midnight = datetime(wall.year, wall.month, wall.day)
    return midnight if at_wall_clock(midnight, zone) == moment else wall


def at_wall_clock(wall: datetime, zone: tzinfo) -> datetime:
    """
    Return when clocks show this time, UTC.

    As Airflow decides it: of a time that they show twice the later, and for one that they skip as long after the
    change as it is after the skipped hour's start.
    """
    earlier, later = (wall.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1))
    # A skipped time comes out in the wrong order.
    return max(earlier, later)


_KEYS = (
    (re.compile(r"\d{4}-\d{2}"), MONTH),
    (re.compile(r"\d{4}-?W\d{2}"), timedelta(days=7)),
    (re.compile(r"\d{4}-\d{2}-\d{2}|\d{8}|\d{4}-?W\d{2}-?\d"), timedelta(days=1)),
    (re.compile(r"[^T ]+[T ]\d{2}(Z|[+-]\d{2}(:?\d{2})?)?"), timedelta(hours=1)),
)


def partition_of_key(key: str, width: Width, zone: tzinfo) -> Partition:
    """
    Return the partition that a key names.

    :param key: ISO 8601: a time, which without an offset is one of the zone, as Airflow writes it; a day; with
        the width of it also an hour (``2026-01-08T05``), a week (``2026-W02``) or a month (``2026-01``)
    :raises ValueError: for any other text, for a key that names a shorter or longer time than the width, and for a
        time that clocks show twice
    """
    named = next((length for pattern, length in _KEYS if pattern.fullmatch(key)), None)
    days = timedelta(days=1)
    # A day may be the first of several, and of a month: that is how Airflow's timetable formats them.
    first_day = named == days and (width == MONTH or (isinstance(width, timedelta) and width % days == timedelta(0)))
    if named is not None and named != width and not first_day:
        raise ValueError(
            f"partition_key is {key!r}, which names {_in_words(named)}, and partition_width is {_in_words(width)}; "
            "expected a key and a width of one length, or a key with hour and minute"
        )
    try:
        moment = datetime.fromisoformat(f"{key}-01" if named == MONTH else key)
    except ValueError as error:
        raise ValueError(f"partition_key is {key!r}; expected an ISO 8601 date or time") from error
    if moment.tzinfo is None:
        start = at_wall_clock(moment, zone)
        twice = moment.replace(tzinfo=zone).utcoffset() != moment.replace(tzinfo=zone, fold=1).utcoffset()
        shorter_than_a_day = isinstance(width, timedelta) and width < days
        if twice and shorter_than_a_day:
            raise ValueError(
                f"partition_key is {key!r}, which the clocks of {zone} show twice or never; expected a key with an "
                "offset: add %z to the timetable's key_format"
            )
    else:
        start = moment
    return partition_from(start, width, zone, "from the run's partition key")


def _in_words(width: Width) -> str:
    return f"a {width}" if isinstance(width, str) else str(width)


def partition_of(
    *,
    arguments: tuple[str | datetime | None, str | datetime | None],
    data_interval: tuple[datetime | None, datetime | None],
    partition_date: datetime | None,
    partition_key: str | None,
    partition_width: Width,
    now: datetime,
    zone: tzinfo = UTC,
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
    :param zone: the time zone of the timetable, by whose wall clock a partition is as long as it is
    :raises ValueError: where what was given is no range of time
    """
    start, end = moment_of(arguments[0], "interval_start"), moment_of(arguments[1], "interval_end")
    if start is not None or end is not None:
        return between(start, end, "from the operator's arguments")
    interval_start, interval_end = (moment_of(end, "the data interval") for end in data_interval)
    if interval_start is not None and interval_end is not None and interval_start < interval_end:
        return Partition(interval_start, interval_end, "from the run's data interval")
    try:
        if partition_date is not None:
            return partition_from(partition_date, partition_width, zone, "from the run's partition date")
        if partition_key not in (None, "", "None"):
            return partition_of_key(str(partition_key).strip(), partition_width, zone)
    except OverflowError as error:
        raise ValueError("the partition ends after the year 9999; expected an end in the past") from error
    if interval_end is not None:
        source = (
            "all that settled before the end of the run's data interval, which has no width: a plain cron schedule "
            "gives none since Airflow 3, a CronDataIntervalTimetable does"
        )
        return Partition(None, interval_end, source)
    return Partition(None, now.replace(microsecond=0), "all that settled before now")
