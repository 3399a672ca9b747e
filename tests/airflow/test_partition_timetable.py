"""Partitions over Airflow's own timetable: no moment of two years is in none of them, or in two."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pendulum
import pytest
from airflow.timetables import trigger
from airflow.timetables.base import TimeRestriction

from airflow_provider_nrllm.outcomes.partitions import partition_of, zone_of

DAY = timedelta(days=1)
FIRST, LAST = datetime(2025, 1, 1, tzinfo=UTC), datetime(2027, 1, 1, tzinfo=UTC)

#: Clocks change by an hour, by half an hour, at midnight, or not at all.
ZONES = ["UTC", "Europe/Berlin", "America/New_York", "America/Santiago", "Africa/Cairo", "Australia/Lord_Howe"]
WIDTHS = {"0 0 * * *": DAY, "0 0 * * 1": 7 * DAY, "0 0 1 * *": "month", "30 6 * * *": DAY}


def partition(*, date=None, key=None, width=DAY, zone="UTC"):
    """Return the partition of a run with this date or key."""
    return partition_of(
        arguments=(None, None),
        data_interval=(None, None),
        partition_date=date,
        partition_key=key,
        partition_width=width,
        now=LAST,
        zone=zone_of(zone),
    )


# Airflow names the partitions of a range since 3.3.
if hasattr(getattr(trigger, "CronPartitionTimetable", None), "iter_partition_dagrun_infos"):

    def runs(cron, zone, first=FIRST, last=LAST):
        """Yield the date and key of each partitioned run of two years."""
        timetable = trigger.CronPartitionTimetable(cron, timezone=zone, run_offset=-1)
        for info in timetable.iter_partition_dagrun_infos(earliest=first, latest=last):
            yield info.partition_date, info.partition_key

    @pytest.mark.parametrize("zone", ZONES)
    @pytest.mark.parametrize("cron", WIDTHS)
    def test_no_moment_of_two_years_is_in_no_partition_or_in_two(cron, zone):
        partitions = [partition(date=date, width=WIDTHS[cron], zone=zone) for date, _ in runs(cron, zone)]
        assert [] == [(one, other) for one, other in pairwise(partitions) if one.end_second != other.start_second]

    @pytest.mark.parametrize("month", [3, 10])
    def test_no_half_hour_of_a_month_in_which_clocks_change_is_missed(month):
        first, last = datetime(2026, month, 20, tzinfo=UTC), datetime(2026, month + 1, 1, tzinfo=UTC)
        dates = [date for date, _ in runs("*/30 * * * *", "Europe/Berlin", first, last)]
        partitions = [partition(date=date, width=DAY / 48, zone="Europe/Berlin") for date in dates]
        assert [] == [(one, other) for one, other in pairwise(partitions) if one.end_second != other.start_second]

    @pytest.mark.parametrize("zone", ZONES)
    @pytest.mark.parametrize("cron", WIDTHS)
    def test_a_key_that_airflow_writes_names_the_partition_of_its_date(cron, zone):
        width = WIDTHS[cron]
        found = [
            (partition(date=date, width=width, zone=zone), partition(key=key, width=width, zone=zone))
            for date, key in runs(cron, zone)
        ]
        assert len(found) > 20
        assert [] == [pair for pair in found if (pair[0].start, pair[0].end) != (pair[1].start, pair[1].end)]


@pytest.mark.skipif(not hasattr(trigger, "CronPartitionTimetable"), reason="Airflow has partitions since 3.2")
def test_the_schedule_names_no_partition_before_a_time_of_day_that_clocks_skip():
    """As docs/how-to/schedule.md warns: should Airflow mend it, the page is to be mended too."""
    timetable = trigger.CronPartitionTimetable("30 2 * * *", timezone="Europe/Berlin", run_offset=-1)
    restriction = TimeRestriction(earliest=pendulum.datetime(2026, 3, 26, tz="UTC"), latest=None, catchup=True)
    info, dates = None, []
    for _ in range(6):
        info = timetable.next_dagrun_info_v2(last_dagrun_info=info, restriction=restriction)
        dates.append(info.partition_date.in_timezone("Europe/Berlin").date().isoformat())
    assert ["2026-03-27", "2026-03-29", "2026-03-29"] == [
        date for date in dates if "2026-03-27" <= date <= "2026-03-29"
    ]


def test_a_day_on_which_clocks_change_has_23_or_25_hours():
    spring = partition(date=datetime(2026, 3, 29, tzinfo=ZoneInfo("Europe/Berlin")), zone="Europe/Berlin")
    autumn = partition(date=datetime(2026, 10, 25, tzinfo=ZoneInfo("Europe/Berlin")), zone="Europe/Berlin")
    assert (23, 25) == tuple((part.end - part.start) / timedelta(hours=1) for part in (spring, autumn))
    assert datetime(2026, 10, 25, 23, tzinfo=UTC) == autumn.end


@pytest.mark.parametrize(
    ("key", "width", "expected"),
    [
        ("2026-01-08T00:00:00", DAY, (datetime(2026, 1, 7, 23, tzinfo=UTC), datetime(2026, 1, 8, 23, tzinfo=UTC))),
        ("2026-01-08", DAY, (datetime(2026, 1, 7, 23, tzinfo=UTC), datetime(2026, 1, 8, 23, tzinfo=UTC))),
        ("2026-01-08T00:00:00Z", DAY, (datetime(2026, 1, 8, tzinfo=UTC), datetime(2026, 1, 9, tzinfo=UTC))),
        ("2026-W02", 7 * DAY, (datetime(2026, 1, 4, 23, tzinfo=UTC), datetime(2026, 1, 11, 23, tzinfo=UTC))),
        ("2026-01", "month", (datetime(2025, 12, 31, 23, tzinfo=UTC), datetime(2026, 1, 31, 23, tzinfo=UTC))),
        ("2026-01-08T05", DAY / 24, (datetime(2026, 1, 8, 4, tzinfo=UTC), datetime(2026, 1, 8, 5, tzinfo=UTC))),
    ],
)
def test_a_key_without_an_offset_is_a_time_of_the_timetables_zone(key, width, expected):
    found = partition(key=key, width=width, zone="Europe/Berlin")
    assert (found.start, found.end) == expected


@pytest.mark.parametrize(
    ("key", "width"), [("2026-W02", DAY), ("2026-01-08T05", DAY), ("2026-01", DAY), ("2026-01-08", DAY / 24)]
)
def test_a_key_of_another_length_than_the_width_is_an_error_and_no_silent_part(key, width):
    with pytest.raises(ValueError, match="expected a key and a width of one length"):
        partition(key=key, width=width)


def test_an_hour_that_clocks_show_twice_needs_an_offset_in_its_key():
    with pytest.raises(ValueError, match="expected a key with an offset"):
        partition(key="2026-10-25T02:00:00", width=DAY / 24, zone="Europe/Berlin")
    found = partition(key="2026-10-25T02:00:00+01:00", width=DAY / 24, zone="Europe/Berlin")
    assert datetime(2026, 10, 25, 1, tzinfo=UTC) == found.start


@pytest.mark.parametrize("hours", [2, 6, 12])
def test_a_part_of_a_day_that_clocks_cut_is_refused_in_a_zone_that_changes_them(hours):
    with pytest.raises(ValueError, match="where a day has not always 24 hours"):
        partition(date=FIRST, width=timedelta(hours=hours), zone="Europe/Berlin")
    assert timedelta(hours=hours) == (part := partition(date=FIRST, width=timedelta(hours=hours))).end - part.start
