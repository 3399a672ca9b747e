"""
Shares and how sure they are: Wilson's interval of one share, Newcombe's of the difference of two, and the
Mantel-Haenszel difference over several strata with the variance of Sato.

Pure arithmetic. R. G. Newcombe, "Two-sided confidence intervals for the single proportion" (method 3) and
"Interval estimation for the difference between independent proportions" (method 10), Statistics in Medicine
17 (1998). S. Greenland and J. M. Robins, "Estimation of a common effect parameter from sparse follow-up data",
Biometrics 41 (1985). T. Sato, "On the variance estimator for the Mantel-Haenszel risk difference", Biometrics 45
(1989).
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

    @property
    def is_told(self) -> bool:
        """Whether the interval leaves out 0: else it cannot be told yet which of the two shares is higher."""
        return _leaves_out_zero(self.interval)


@dataclass(frozen=True, slots=True)
class PooledDifference:
    """
    The difference of two shares within several strata, as one figure: Mantel and Haenszel's risk difference.

    Each stratum weighs by the sizes of both groups in it, so that a group is never compared across strata. It
    takes the difference for the same in all strata; where it is not, it is their weighted mean.

    :param strata: the difference within each stratum in which both groups have a case
    """

    strata: tuple[Difference, ...]

    @property
    def value(self) -> float | None:
        """The pooled difference, from -1 to 1; None without a stratum."""
        weight = sum(_weight(stratum) for stratum in self.strata)
        if not weight:
            return None
        above = sum(
            (s.share.count * s.other.of - s.other.count * s.share.of) / (s.share.of + s.other.of) for s in self.strata
        )
        return above / weight

    @property
    def interval(self) -> Interval | None:
        """The 95 % interval by Sato's variance; None where that is 0, as of groups all alike, and tells nothing."""
        difference = self.value
        if difference is None:
            return None
        ps, qs = zip(*map(_sato, self.strata), strict=True)
        variance = (difference * sum(ps) + sum(qs)) / sum(_weight(stratum) for stratum in self.strata) ** 2
        if variance <= 0:
            return None
        half = Z * sqrt(variance)
        return Interval(max(difference - half, -1.0), min(difference + half, 1.0))

    @property
    def is_told(self) -> bool:
        """Whether the interval leaves out 0: else it cannot be told yet which of the two shares is higher."""
        return _leaves_out_zero(self.interval)


def _leaves_out_zero(interval: Interval | None) -> bool:
    return interval is not None and not interval.low <= 0 <= interval.high


def _weight(stratum: Difference) -> float:
    n1, n0 = stratum.share.of, stratum.other.of
    return n1 * n0 / (n1 + n0) if n1 and n0 else 0.0


def _sato(stratum: Difference) -> tuple[float, float]:
    """Return what one stratum adds to the two sums of Sato's variance."""
    a, n1, c, n0 = stratum.share.count, stratum.share.of, stratum.other.count, stratum.other.of
    n = n1 + n0
    p = (n1**2 * c - n0**2 * a + n1 * n0 * (n0 - n1) / 2) / n**2
    q = (a * (n0 - c) + c * (n1 - a)) / (2 * n)
    return p, q
