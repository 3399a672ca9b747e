"""Folders of readouts are named by the end of their range, and sorted by it."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from airflow_provider_nrllm.readout.folders import end_of, folder_of, newest_first

MARCH = datetime(2026, 3, 1, 6, 30, 5, tzinfo=UTC)


def test_a_folder_is_named_by_the_end_of_the_range():
    assert "2026-03-01T063005Z" == folder_of(int(MARCH.timestamp()))


def test_the_name_gives_the_end_back():
    assert MARCH == end_of(folder_of(int(MARCH.timestamp())))


def test_the_newest_comes_first():
    assert ["2026-10-01T000000Z", "2026-09-30T235959Z"] == newest_first(["2026-09-30T235959Z", "2026-10-01T000000Z"])


@pytest.mark.parametrize(
    "name",
    [
        "latest",
        "",
        "..",
        "2026-03-01",
        "2026-13-01T000000Z",
        "2026-03-01T000000Z\n",
        "x2026-03-01T000000Z",
        "2026-03-01T250000Z",
    ],
)
def test_any_other_name_is_no_folder_of_a_readout(name):
    assert [] == newest_first([name])
