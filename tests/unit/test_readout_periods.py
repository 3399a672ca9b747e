"""The days, weeks and months of a range."""

from datetime import date

import pytest

from airflow_provider_nrllm.readout.periods import PeriodWidth, between
from tests.typo3.readouts import DAY, MARCH


@pytest.mark.parametrize(
    ("days", "width"),
    [
        (1, PeriodWidth.DAY),
        (56, PeriodWidth.DAY),
        (57, PeriodWidth.WEEK),
        (732, PeriodWidth.WEEK),
        (733, PeriodWidth.MONTH),
    ],
)
def test_days_up_to_eight_weeks_weeks_up_to_two_years_and_months_past_them(days, width):
    assert width is PeriodWidth.of_range(MARCH, MARCH + days * DAY)


@pytest.mark.parametrize(
    ("width", "first"),
    [
        (PeriodWidth.DAY, date(2026, 3, 1)),
        (PeriodWidth.WEEK, date(2026, 2, 23)),
        (PeriodWidth.MONTH, date(2026, 3, 1)),
    ],
)
def test_a_week_begins_on_monday_and_a_month_on_its_first(width, first):
    assert (first, first) == (width.first_day(MARCH), width.first_day(MARCH + DAY - 1))


def test_periods_without_a_case_are_between_too():
    assert [date(2025, 11, 1), date(2025, 12, 1), date(2026, 1, 1)] == list(
        between(date(2025, 11, 1), date(2026, 1, 1), PeriodWidth.MONTH)
    )
    assert 3 == len(list(between(date(2026, 2, 23), date(2026, 3, 9), PeriodWidth.WEEK)))
