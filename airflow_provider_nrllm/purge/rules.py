"""
Runs that the extension's purge would delete before they have an outcome, and settings that lead to ``unknown``. Pure.

``nrllm:privacy:purge`` deletes the runs that have ended and were made longer ago than the retention. All times
are Unix seconds, UTC, and all lengths are seconds; the moment of asking is an argument.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from airflow_provider_nrllm.outcomes.partitions import DAY, MAX_DAYS


class Category(StrEnum):
    """The categories of data that nr_llm's four purge commands delete: ``nrllm:<category>:purge``."""

    PRIVACY = "privacy"
    TELEMETRY = "telemetry"
    SESSION = "session"
    GOVERNANCE = "governance"


class OnUnanswered(StrEnum):
    """The reaction to a purge that would delete runs without an outcome."""

    SKIP = "skip"
    FAIL = "fail"
    WARN = "warn"


def retention_days(retention: int | str | timedelta) -> int:
    """
    Return a retention in days.

    :param retention: whole days as a number, as its digits (a rendered template) or as a timedelta, 1 to 36500
    :raises ValueError: for anything else, as the purge commands refuse it too
    """
    days: object = retention
    if isinstance(retention, timedelta):
        days = retention.days if retention == timedelta(days=retention.days) else None
    elif isinstance(retention, str):
        text = retention.strip()
        days = int(text) if text.isascii() and text.isdigit() else None
    if not isinstance(days, int) or isinstance(days, bool) or not 1 <= days <= MAX_DAYS:
        raise ValueError(f"the retention is {retention!r}; expected a whole number of days, 1 to {MAX_DAYS}")
    return days


@dataclass(frozen=True, slots=True)
class AtRisk:
    """
    How many runs a purge would delete that have a write and no observed outcome, or that are needed by such a run.

    Runs that share a uuid are one, as they are answered as one (ADR-185). Runs without a uuid are not counted:
    they are never answered.

    :param settled: those that can be answered now
    :param unsettled: those of which a write is still watched, or a run with the same uuid goes on
    :param settles_by: when the last of the unsettled settles; None where there is none, or where a run goes
        on, which may take any time
    :param needed: runs that have an outcome, and also changed a record of a run that has none yet: without their
        events, what they changed would count as a person's edit
    """

    settled: int = 0
    unsettled: int = 0
    settles_by: int | None = None
    needed: int = 0

    @property
    def total(self) -> int:
        """The number of runs that the purge would delete too early."""
        return self.settled + self.unsettled + self.needed


def at_risk(settled: Iterable[int | None], now: int) -> AtRisk:
    """
    Return how many runs are at risk.

    :param settled: when each of them settles, None where one goes on, as
        :func:`~airflow_provider_nrllm.outcomes.rules.settled_at` tells
    :param now: the moment of asking
    """
    answerable, waiting, last = 0, 0, now
    goes_on = False
    for at in settled:
        # A partition's end is not in it: what settles in this very second is answered from the next one on.
        if at is not None and at < now:
            answerable += 1
        else:
            waiting += 1
            goes_on = goes_on or at is None
            last = max(last, at or 0)
    return AtRisk(answerable, waiting, last if waiting and not goes_on else None)


def settings_to_mend(
    *, window: int, partition: int, retention: int, outcome_retention: int, history: int | None
) -> list[str]:
    """
    Return what is wrong with an installation's settings, a sentence each.

    A run is answered up to a partition after its window has closed, and needs its row, its events and the
    history of its records until then.

    :param window: how long a record is watched after a write
    :param partition: how long a partition of the derivation's schedule is
    :param retention: how long runs are kept, from when they were made
    :param outcome_retention: how long call outcomes are kept: ``nrllm:privacy:purge`` deletes them, by the
        retention that is set for telemetry or by its own ``--days``
    :param history: how far back TYPO3's history reaches; None: there is none
    """
    needed = window + partition
    found = history_to_mend(window=window, partition=partition, history=history)
    if retention <= needed:
        found.append(
            f"Runs are kept {_days(retention)}, and the window of {_days(window)} with a partition of "
            f"{_days(partition)} needs more: runs are purged before they can be answered. Give "
            "nrllm:privacy:purge more --days, or watch records for fewer days."
        )
    if outcome_retention < retention:
        found.append(
            f"Call outcomes are kept {_days(outcome_retention)}, shorter than runs, {_days(retention)}: a run "
            "whose outcome was purged looks as if it had never been answered. nrllm:privacy:purge deletes "
            "outcomes by the retention set for telemetry: set that to at least the retention of runs, or give "
            "nrllm:privacy:purge its --days, which holds for both."
        )
    return found


def history_to_mend(*, window: int, partition: int, history: int | None) -> list[str]:
    """
    Return what is wrong with how long TYPO3's history is kept, a sentence each: it leads to ``unknown``.

    The parameters are those of :func:`settings_to_mend`.
    """
    needed = window + partition
    if history is None:
        return [
            "sys_history is empty: without history a write can only become 'unknown' (or 'discarded'). If runs "
            "have written already, something trims it."
        ]
    if history > needed:
        return []
    outlook = "a derivation can only lead to 'unknown'" if history < window else "some runs become 'unknown'"
    return [
        f"sys_history reaches back {_days(history)}, and the window of {_days(window)} with a partition of "
        f"{_days(partition)} needs more: {outlook}. If the site is older than that, keep its history longer "
        "(TYPO3's clean-up of sys_history) or watch records for fewer days."
    ]


def _days(seconds: int) -> str:
    return f"{seconds / DAY:.3g} days"
