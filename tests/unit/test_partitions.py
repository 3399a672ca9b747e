"""Which part of the time line an Airflow run stands for."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from airflow_provider_nrllm.outcomes.partitions import (
    MONTH,
    Partition,
    between,
    moment_of,
    partition_of,
    partition_of_key,
    window_seconds,
)
from airflow_provider_nrllm.outcomes.spans import lacking, merged


def day(number, hour=0):
    return datetime(2026, 1, number, hour, tzinfo=UTC)


NOW = day(20)


def partition(*, arguments=(None, None), data_interval=(None, None), partition_date=None, partition_key=None, now=NOW):
    found = partition_of(
        arguments=arguments,
        data_interval=data_interval,
        partition_date=partition_date,
        partition_key=partition_key,
        partition_width=timedelta(days=1),
        now=now,
    )
    return found.start, found.end


EVERYTHING = {
    "arguments": (day(1), day(2)),
    "data_interval": (day(3), day(4)),
    "partition_date": day(5),
    "partition_key": "2026-01-07",
}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (["arguments", "data_interval", "partition_date", "partition_key"], (day(1), day(2))),
        (["data_interval", "partition_date", "partition_key"], (day(3), day(4))),
        (["partition_date", "partition_key"], (day(5), day(6))),
        (["partition_key"], (day(7), day(8))),
        ([], (None, day(20))),
    ],
)
def test_arguments_come_before_the_data_interval_the_partition_date_and_the_key(given, expected):
    assert partition(**{name: EVERYTHING[name] for name in given}) == expected


def test_a_data_interval_without_width_is_all_that_settled_before_its_end():
    assert partition(data_interval=(day(3), day(3))) == (None, day(3))


@pytest.mark.parametrize("given", ["arguments", "data_interval"])
def test_the_hour_that_clocks_show_twice_is_an_hour(given):
    first = datetime(2026, 11, 1, 1, 30, tzinfo=ZoneInfo("America/New_York"))
    found = partition(**{given: (first, first.replace(fold=1))})
    assert found == (datetime(2026, 11, 1, 5, 30, tzinfo=UTC), datetime(2026, 11, 1, 6, 30, tzinfo=UTC))


@pytest.mark.parametrize("value", ["0001-01-01T00:00:00+01:00", "9999-12-31T23:59:59-01:00"])
def test_a_moment_before_or_after_all_years_is_refused(value):
    with pytest.raises(ValueError, match="expected a moment in the years 1 to 9999"):
        moment_of(value, "interval_start")


def test_an_end_alone_is_all_that_settled_before_it():
    assert partition(arguments=(None, "2026-01-05")) == (None, day(5))


def test_without_anything_it_is_all_that_settled_before_the_second_of_now():
    assert partition(now=day(20) + timedelta(microseconds=7)) == (None, day(20))


@pytest.mark.parametrize("unset", [None, "", "None"])
def test_what_a_template_renders_for_nothing_counts_as_not_given(unset):
    assert partition(arguments=(unset, unset), data_interval=(day(3), day(4))) == (day(3), day(4))


def test_a_start_alone_is_refused():
    with pytest.raises(ValueError, match="without an interval_end"):
        partition(arguments=(day(1), None))


@pytest.mark.parametrize("end", [day(1), day(2)])
def test_an_end_not_after_its_start_is_refused(end):
    with pytest.raises(ValueError, match="expected an end after the start"):
        between(day(2), end, "")


@pytest.mark.parametrize(
    "text", ["2026-01-01", "2026-01-01T00:00:00", "2026-01-01T00:00:00Z", "2026-01-01T02:00+02:00"]
)
def test_a_moment_without_an_offset_is_utc(text):
    assert moment_of(text, "interval_end") == day(1)


@pytest.mark.parametrize("value", ["europe", "2026-13-01", 1767225600])
def test_what_is_no_moment_is_refused_by_name(value):
    with pytest.raises(ValueError, match=r"interval_end is .*; expected"):
        moment_of(value, "interval_end")


def test_fractions_of_a_second_belong_to_exactly_one_of_two_neighbours():
    cut = day(2) + timedelta(milliseconds=500)
    earlier, later = Partition(day(1), cut, ""), Partition(cut, day(3), "")
    assert earlier.end_second == later.start_second


def test_a_partition_is_said_in_utc():
    berlin = datetime.fromisoformat("2026-01-01T01:00+01:00")
    assert "[2026-01-01T00:00:00Z, 2026-01-02T00:00:00Z), from somewhere" == str(
        Partition(berlin, day(2), "from somewhere")
    )


@pytest.mark.parametrize("window", [7, 7.0, timedelta(days=7)])
def test_a_window_is_whole_days(window):
    assert 604800 == window_seconds(window)


@pytest.mark.parametrize(
    "window",
    [
        0,
        -1,
        0.5,
        1.5,
        float("nan"),
        float("inf"),
        True,
        None,
        "7",
        timedelta(0),
        timedelta(hours=36),
        timedelta(days=-1),
        10**10,
    ],
)
def test_a_window_of_less_than_a_day_or_no_whole_days_is_refused(window):
    with pytest.raises(ValueError, match=r"window is .*; expected"):
        window_seconds(window)


def test_stretches_that_touch_are_one():
    assert [(1, 9), (20, 30)] == merged([(5, 9), (1, 3), (4, 4), (20, 30), (25, 26)])


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        ([], [(10, 20)]),
        ([(0, 9), (21, 30)], [(10, 20)]),
        ([(10, 20)], []),
        ([(0, 12)], [(13, 20)]),
        ([(18, 30)], [(10, 17)]),
        ([(12, 13), (15, 15)], [(10, 11), (14, 14), (16, 20)]),
    ],
)
def test_what_is_needed_and_not_known_is_lacking(known, expected):
    assert lacking([(10, 20)], known) == expected


BERLIN = ZoneInfo("Europe/Berlin")
HOUR, WHOLE_DAY, WEEK = timedelta(hours=1), timedelta(days=1), timedelta(days=7)


@pytest.mark.parametrize(
    ("key", "width", "start", "end"),
    [
        ("2026-10-25", WHOLE_DAY, "2026-10-24T22:00Z", "2026-10-25T23:00Z"),
        ("2026-03-29T00:00:00", WHOLE_DAY, "2026-03-28T23:00Z", "2026-03-29T22:00Z"),
        ("2026-W13", WEEK, "2026-03-22T23:00Z", "2026-03-29T22:00Z"),
        ("2026-03-23", WEEK, "2026-03-22T23:00Z", "2026-03-29T22:00Z"),
        ("2026-10", MONTH, "2026-09-30T22:00Z", "2026-10-31T23:00Z"),
        ("2026-12-01", MONTH, "2026-11-30T23:00Z", "2026-12-31T23:00Z"),
        ("2026-01-08T05", HOUR, "2026-01-08T04:00Z", "2026-01-08T05:00Z"),
        ("2026-10-25T02:00:00+01:00", HOUR, "2026-10-25T01:00Z", "2026-10-25T02:00Z"),
    ],
)
def test_a_key_names_a_partition_by_the_wall_clock_of_its_zone(key, width, start, end):
    found = partition_of_key(key, width, BERLIN)
    assert (found.start, found.end) == (datetime.fromisoformat(start), datetime.fromisoformat(end))


@pytest.mark.parametrize(
    ("key", "width"),
    [
        ("2026-W02", WHOLE_DAY),
        ("2026-01", WHOLE_DAY),
        ("2026-01-08T05", WHOLE_DAY),
        ("2026-01-08", HOUR),
        ("2026-01-02", MONTH),
        ("2026-10-25T02:00:00", HOUR),
        ("europe", WHOLE_DAY),
    ],
)
def test_a_key_that_does_not_name_a_partition_of_the_width_is_refused(key, width):
    with pytest.raises(ValueError, match="expected"):
        partition_of_key(key, width, BERLIN)
