"""
Shares of outcomes beside bounds that a user sets. Pure.

It decides nothing about models (ADR-185 builds no promotion rule): the bound is the user's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Never

from airflow_provider_nrllm.outcomes.rules import EXPLICIT, ExplicitOutcome, ObservedOutcome
from airflow_provider_nrllm.readout.cells import cell_text, words
from airflow_provider_nrllm.readout.counts import Explicit, Group, Observed
from airflow_provider_nrllm.readout.groups import Dimension, label_text
from airflow_provider_nrllm.readout.shares import Share
from airflow_provider_nrllm.readout.summary import in_quotes


class Verdict(StrEnum):
    """The answer to one bound."""

    WITHIN = "within"
    BEYOND = "beyond"
    CANNOT_BE_TOLD = "cannot be told yet"
    TOO_FEW = "too few cases"


class OnTooFew(StrEnum):
    """The reaction to a bound with too few cases in every group, where no share is past a bound."""

    SKIP = "skip"
    FAIL = "fail"
    WARN = "warn"

    @classmethod
    def _missing_(cls, value: object) -> Never:
        raise ValueError(f"on_too_few is {value!r}; expected {', '.join(map(repr, map(str, cls)))}")


@dataclass(frozen=True, slots=True)
class Bound:
    """
    What a share may be at most, or has to be at least.

    :param name: the argument that sets it
    :param value: the outcome whose share it is of, in its own source
    :param at: the bound, from 0 to 1
    :param is_most: whether it is the most; else it is the least
    """

    name: str
    value: ExplicitOutcome | ObservedOutcome
    at: float
    is_most: bool

    @property
    def source(self) -> str:
        """The source that the share is of (ADR-176)."""
        return "explicit" if self.value in EXPLICIT else "observed"

    def share_of(self, explicit: Explicit, observed: Observed) -> Share:
        """Return the share that the bound is of."""
        return explicit.share(self.value) if isinstance(self.value, ExplicitOutcome) else observed.share(self.value)

    def verdict(self, share: Share, *, min_cases: int, certain: bool) -> Verdict:
        """
        Return the answer for one share.

        :param min_cases: the fewest cases that tell anything
        :param certain: whether the whole interval has to lie beyond the bound, or the share alone
        """
        if share.of < max(min_cases, 1) or share.value is None or share.interval is None:
            return Verdict.TOO_FEW
        if not self._is_past(share.value):
            return Verdict.WITHIN
        nearest = share.interval.low if self.is_most else share.interval.high
        return Verdict.BEYOND if not certain or self._is_past(nearest) else Verdict.CANNOT_BE_TOLD

    def _is_past(self, share: float) -> bool:
        return share > self.at if self.is_most else share < self.at


#: What each argument is a bound of; ``max_`` is the most, ``min_`` the least.
BOUNDS: Mapping[str, ExplicitOutcome | ObservedOutcome] = {
    "min_accepted": ObservedOutcome.ACCEPTED_UNCHANGED,
    "max_edited": ObservedOutcome.EDITED,
    "max_discarded": ObservedOutcome.DISCARDED,
    "max_unknown": ObservedOutcome.UNKNOWN,
    "min_helpful": ExplicitOutcome.HELPFUL,
    "max_not_helpful": ExplicitOutcome.NOT_HELPFUL,
}


def bounds_of(arguments: Mapping[str, float | None]) -> tuple[Bound, ...]:
    """
    Return the bounds that an operator's arguments set.

    :param arguments: shares from 0 to 1 by the names of :data:`BOUNDS`; None sets none
    :raises ValueError: where there is none, or one is no share
    """
    given = {name: at for name, at in arguments.items() if at is not None}
    if not given:
        raise ValueError(f"no bound is set; expected one or more of {', '.join(BOUNDS)}")
    for name, at in given.items():
        if isinstance(at, bool) or not isinstance(at, int | float) or not 0 <= at <= 1:
            raise ValueError(f"{name} is {at!r}; expected a share from 0 to 1, such as 0.2 for 20 %")
    return tuple(Bound(name, BOUNDS[name], float(at), name.startswith("max_")) for name, at in given.items())


@dataclass(frozen=True, slots=True)
class Finding:
    """
    One bound beside the share of one group.

    :param group: what the group is called; empty for all outcomes together
    """

    bound: Bound
    group: str
    share: Share
    verdict: Verdict

    @property
    def in_words(self) -> str:
        """The share, how sure it is, and the bound, as one line."""
        side = "at most" if self.bound.is_most else "at least"
        of = f"{in_quotes(self.group)}: " if self.group else ""
        found = cell_text(self.share) if self.share.of else "of no case"
        return f"{self.bound.name}: {of}{words(self.bound.value)} {found}, expected {side} {100 * self.bound.at:.6g} %"

    @property
    def as_json(self) -> dict[str, object]:
        """The finding as JSON values."""
        low, high = self.share.interval or (None, None)
        return {
            "bound": self.bound.name,
            "at": self.bound.at,
            "source": self.bound.source,
            "group": self.group or None,
            "count": self.share.count,
            "of": self.share.of,
            "low": low,
            "high": high,
            "verdict": str(self.verdict),
        }


def findings_of(
    bounds: Sequence[Bound],
    groups: Sequence[Group],
    grouping: Sequence[Dimension],
    *,
    min_cases: int,
    certain: bool,
) -> Iterator[Finding]:
    """
    Yield each bound beside each group that has a case of its source; beside none, too few.

    :param min_cases: the fewest cases that tell anything
    :param certain: whether the whole interval has to lie beyond a bound
    """
    for bound in bounds:
        found = [(label_text(group.key, grouping), bound.share_of(group.explicit, group.observed)) for group in groups]
        for name, share in [one for one in found if one[1].of] or [("", Share(0, 0))]:
            yield Finding(bound, name, share, bound.verdict(share, min_cases=min_cases, certain=certain))


def unanswered(findings: Sequence[Finding]) -> list[Finding]:
    """Return the findings of the bounds that have too few cases in every group."""
    answered = {one.bound for one in findings if one.verdict is not Verdict.TOO_FEW}
    return [one for one in findings if one.bound not in answered]


def by_source(findings: Sequence[Finding]) -> str:
    """Return findings in words, the two sources apart (ADR-176)."""
    told = (
        f"{source.capitalize()}: {'; '.join(one.in_words for one in findings if one.bound.source == source)}."
        for source in ("observed", "explicit")
        if any(one.bound.source == source for one in findings)
    )
    return " ".join(told)
