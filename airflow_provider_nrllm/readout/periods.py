"""
Outcomes over time: the days, weeks and months of a range, and a share in each of them. Pure.

All dates are UTC. A week begins on Monday. The first and the last period of a range may be cut by it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum

from airflow_provider_nrllm.readout.shares import Share

#: The longest range that is shown by the day, and the longest that is shown by the week.
DAYS_UP_TO = timedelta(weeks=8)
WEEKS_UP_TO = timedelta(days=2 * 366)


class PeriodWidth(StrEnum):
    """The length of a period."""

    DAY = "day"
    WEEK = "week"
    MONTH = "month"

    @classmethod
    def of_range(cls, start: int, end: int) -> PeriodWidth:
        """
        Return days for a range of up to eight weeks, weeks for up to two years, else months.

        :param start: the first second of the range
        :param end: the first second after it
        """
        length = timedelta(seconds=end - start)
        if length <= DAYS_UP_TO:
            return cls.DAY
        return cls.WEEK if length <= WEEKS_UP_TO else cls.MONTH

    def first_day(self, second: int) -> date:
        """Return the first day of the period that a Unix time lies in."""
        return self.begin(datetime.fromtimestamp(second, UTC).date())

    def begin(self, day: date) -> date:
        """Return the first day of the period that a day lies in."""
        if self is PeriodWidth.WEEK:
            return day - timedelta(days=day.weekday())
        return day.replace(day=1) if self is PeriodWidth.MONTH else day

    def after(self, first: date) -> date:
        """Return the first day of the next period."""
        if self is PeriodWidth.MONTH:
            return date(first.year + first.month // 12, first.month % 12 + 1, 1)
        return first + timedelta(days=7 if self is PeriodWidth.WEEK else 1)


def between(first: date, last: date, width: PeriodWidth) -> Iterator[date]:
    """Yield the first day of each period from one to another, both included, those without a case too."""
    while first <= last:
        yield first
        first = width.after(first)


@dataclass(frozen=True, slots=True)
class Point:
    """
    A share in one period; it carries its number of cases and its interval.

    :param first: the first day of the period
    """

    first: date
    share: Share
