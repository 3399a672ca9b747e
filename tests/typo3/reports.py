"""Readouts made by hand, without a database, for the tests of what people and programs get of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date, timedelta

from airflow_provider_nrllm.edits.acceptance import Acceptance
from airflow_provider_nrllm.edits.meanings import Meaning
from airflow_provider_nrllm.outcomes.evidence import Target
from airflow_provider_nrllm.outcomes.reasons import Reason
from airflow_provider_nrllm.outcomes.rules import ExplicitOutcome, ObservedOutcome
from airflow_provider_nrllm.outcomes.ways import SeveralRecords
from airflow_provider_nrllm.readout.audited import AuditedRuns
from airflow_provider_nrllm.readout.counts import (
    Explicit,
    Group,
    Observed,
    Period,
    RangeOf,
    Readout,
    Usage,
    in_order,
    pooled,
)
from airflow_provider_nrllm.readout.groups import Dimension, Kind, Label
from airflow_provider_nrllm.readout.periods import PeriodWidth
from airflow_provider_nrllm.readout.runs import AnsweredRun
from tests.typo3.readouts import CRAB, DAY, FORMULA, LONG, MARCH, QUOTES, ROCKET, SCRIPT

HEADING = "$x^2$ &amp; _a_\n# no heading"
#: Names that are hard to write.
NAMES = [QUOTES, SCRIPT, ROCKET, CRAB, LONG, FORMULA, HEADING]


def explicit(helpful: int = 0, not_helpful: int = 0) -> Explicit:
    """Return counts of ratings."""
    return Explicit(dict(zip(ExplicitOutcome, (helpful, not_helpful), strict=True)))


def observed(accepted: int = 0, edited: int = 0, discarded: int = 0, unknown: int = 0) -> Observed:
    """Return counts of observed outcomes."""
    return Observed(dict(zip(ObservedOutcome, (accepted, edited, discarded, unknown), strict=True)))


def group(
    label: str | Label,
    rated: Sequence[int] = (),
    became: Sequence[int] = (),
    usage: Usage = Usage(),  # noqa: B008
    audit: AuditedRuns | None = None,
    periods: Iterable[Period] = (),
) -> Group:
    """Return a group of one dimension; a text is its name."""
    label = Label(Kind.NAMED, label) if isinstance(label, str) else label
    return Group(
        (label,),
        replace(explicit(*rated), usage=usage),
        replace(observed(*became), usage=usage),
        audit,
        tuple(periods),
    )


def arm(first: str, second: str, *became: int) -> Group:
    """Return an observed group of two dimensions."""
    return Group((Label(Kind.NAMED, first), Label(Kind.NAMED, second)), explicit(), observed(*became))


def over_time(
    label: str, periods: Mapping[date, tuple[Sequence[int], Sequence[int]]], audit: AuditedRuns | None = None
) -> Group:
    """
    Return a group made of its periods.

    :param periods: of each first day the ratings and the observed outcomes
    """
    told = [Period(first, explicit(*rated), observed(*became)) for first, (rated, became) in periods.items()]
    in_all = pooled(told)
    usage = Usage(in_all[1].total, 0.5, in_all[1].total, 60_000, in_all[1].total)
    rated, became = (replace(source, usage=usage) for source in in_all)
    return Group((Label(Kind.NAMED, label),), rated, became, audit, tuple(told))


def readout(
    groups: Iterable[Group],
    periods: Iterable[Period] = (),
    audited: bool = False,
    width: PeriodWidth = PeriodWidth.DAY,
) -> Readout:
    """Return a readout of March 2026 by served model."""
    by_model = (Dimension.SERVED_MODEL,)
    end = MARCH + 30 * DAY
    return Readout(MARCH, end, RangeOf.OUTCOME, by_model, in_order(groups), tuple(periods), 0, audited, width=width)


#: What an audit may say of a group: more than one of each.
AUDIT = AuditedRuns(
    113,
    Counter({Meaning.RUN_TEXT: 6, Meaning.RELEASE: 3, Meaning.NO_CHANGE: 2, Meaning.CANNOT_BE_TOLD: 1}),
    Counter({Acceptance.STILL_HIDDEN: 30, Acceptance.VISIBLE_ALREADY: 40, Acceptance.RELEASED: 10}),
    SeveralRecords(
        20,
        Counter(
            {
                (ObservedOutcome.EDITED, ObservedOutcome.ACCEPTED_UNCHANGED): 4,
                (ObservedOutcome.DISCARDED, ObservedOutcome.EDITED): 1,
            }
        ),
        untold=2,
    ),
)

PERIODS = [
    Period(date(2026, 3, 1) + timedelta(days=n), explicit(n % 4, n % 3), observed(n % 5, n % 3, n % 2, 1))
    for n in (0, 1, 2, 5, 6, 7, 20, 28)
]

#: All there can be in a readout: each kind of group, groups without a source, names that are hard to write.
WORLD = readout(
    [
        group("model-a", (40, 12), (80, 12, 9, 12), Usage(150, 0.5, 100, 60_000, 150), AUDIT, PERIODS),
        *(group(name, (number, 7 - number), (3, number, 2, 1), Usage(12)) for number, name in enumerate(NAMES)),
        group("only unknown", (), (0, 0, 0, 5)),
        group("only rated", (0, 1), ()),
        group(Label(Kind.SEVERAL), (5, 5), (5, 5, 5, 5)),
        group(Label(Kind.NO_TELEMETRY), (9, 1), (5, 5, 5, 5)),
    ],
    PERIODS,
    audited=True,
)


def answered(run: str, outcome: str, at: int = MARCH, model: str = "model-a", **of: object) -> AnsweredRun:
    """Return a run behind a readout by served model, which settled when it counts."""
    key = (Label(Kind.NAMED, model),)
    return AnsweredRun(**{"site": "nrllm_default", "settled": at, **of}, run=run, outcome=outcome, at=at, key=key)  # type: ignore[arg-type]


#: Of each outcome a run of each name, with no, one and many records.
RUNS = [
    answered(
        f"{number:08}-1111-4111-8111-{place:012}",
        value,
        MARCH + DAY * number,
        name,
        records=tuple(Target("tx_news_domain_model_news", uid + 1) for uid in range((0, 1, 12)[number % 3])),
        reason=f"{Reason.GONE}; {Reason.TRIMMED}" if value == "unknown" else "",
    )
    for number, name in enumerate(["model-a", *NAMES])
    for place, value in enumerate([*ObservedOutcome, *ExplicitOutcome])
]
