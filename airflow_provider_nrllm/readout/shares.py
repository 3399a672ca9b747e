"""
Shares and how sure they are: Wilson's interval of one share, Newcombe's of the difference of two.

Pure arithmetic. R. G. Newcombe, "Two-sided confidence intervals for the single proportion" (method 3) and
"Interval estimation for the difference between independent proportions" (method 10), Statistics in Medicine
17 (1998).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import hypot, sqrt
from statistics import NormalDist
from typing import NamedTuple

#: The two-sided 95 % point of the normal distribution, 1.959964.
Z = NormalDist().inv_cdf(0.975)


class Interval(NamedTuple):
    """A 95 % interval, both ends included."""

    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Share:
    """
    How many of how many.

    Of nothing there is no share: ``value`` and ``interval`` are None, which is not zero.

    :raises ValueError: unless ``0 <= count <= of``
    """

    count: int
    of: int

    def __post_init__(self) -> None:
        if not 0 <= self.count <= self.of:
            raise ValueError(f"{self.count} of {self.of} is no share")

    @property
    def value(self) -> float | None:
        """The share itself, from 0 to 1."""
        return self.count / self.of if self.of else None

    @property
    def interval(self) -> Interval | None:
        """Wilson's 95 % score interval, which stays within 0 and 1 and has width also for none and all of few."""
        if not self.of:
            return None
        n, share = self.of, self.count / self.of
        middle = share + Z**2 / (2 * n)
        half = Z * sqrt(share * (1 - share) / n + Z**2 / (4 * n**2))
        scale = 1 + Z**2 / n
        # The ends at 0 and n are 0 and 1 exactly; rounding would leave them beside.
        low = 0.0 if self.count == 0 else (middle - half) / scale
        high = 1.0 if self.count == n else (middle + half) / scale
        return Interval(low, high)


@dataclass(frozen=True, slots=True)
class Difference:
    """
    By how much the share of one group is above that of another.

    ``value`` and ``interval`` are None where one of the two has no share.
    """

    share: Share
    other: Share

    @property
    def value(self) -> float | None:
        """The share less the other, from -1 to 1."""
        if self.share.value is None or self.other.value is None:
            return None
        return self.share.value - self.other.value

    @property
    def interval(self) -> Interval | None:
        """Newcombe's 95 % interval, made of the two Wilson intervals; the groups must not share a case."""
        difference, ours, theirs = self.value, self.share.interval, self.other.interval
        if difference is None or ours is None or theirs is None:
            return None
        share, other = self.share.count / self.share.of, self.other.count / self.other.of
        return Interval(
            difference - hypot(share - ours.low, theirs.high - other),
            difference + hypot(ours.high - share, other - theirs.low),
        )
