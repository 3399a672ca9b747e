"""Partitions over Airflow's own timetable: every moment is in one of them, whatever the clocks do."""

from __future__ import annotations

from datetime import timedelta
from itertools import pairwise
from types import SimpleNamespace

import pendulum
import pytest

from airflow_provider_nrllm.operators.arguments import partition_of_run

timetables = pytest.importorskip("airflow.timetables.trigger")


def contexts(cron, zone):
    """Return the contexts of the runs that Airflow makes in two years."""
    timetable = timetables.CronPartitionTimetable(cron, timezone=zone, run_offset=-1)
    at, found = timetable._get_next(pendulum.datetime(2026, 1, 1)), []
    while at.year < 2028:
        at = timetable._get_next(at)
        date, key = timetable._get_partition_info(at)
        found.append({"partition_date": date, "partition_key": key, "dag": SimpleNamespace(timetable=timetable)})
    return found


@pytest.mark.skipif(not hasattr(timetables, "CronPartitionTimetable"), reason="partitions come with Airflow 3.2")
@pytest.mark.parametrize("names", ["partition_date", "partition_key"])
@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe"])
@pytest.mark.parametrize(
    ("cron", "width"),
    [("0 0 * * *", timedelta(days=1)), ("0 0 * * 1", timedelta(days=7)), ("0 0 1 * *", "month")],
    ids=["days", "weeks", "months"],
)
def test_no_moment_of_two_years_is_in_no_partition_or_in_two(cron, width, zone, names):
    partitions = [
        partition_of_run({"dag": run["dag"], names: run[names]}, start=None, end=None, partition_width=width)
        for run in contexts(cron, zone)
    ]
    assert [] == [(before, after) for before, after in pairwise(partitions) if before.end != after.start]
