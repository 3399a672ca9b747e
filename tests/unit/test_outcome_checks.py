"""Shares beside the bounds that a user sets."""

from __future__ import annotations

import pytest

from airflow_provider_nrllm.readout.checks import OnTooFew, Verdict, bounds_of, by_source, findings_of, unanswered
from airflow_provider_nrllm.readout.groups import Dimension
from airflow_provider_nrllm.readout.shares import Share
from tests.typo3.reports import group

BY_MODEL = (Dimension.SERVED_MODEL,)


def verdict(count, of, *, min_cases=30, certain=True, **bound):
    (only,) = bounds_of(bound)
    return only.verdict(Share(count, of), min_cases=min_cases, certain=certain)


# Wilson's 95 % intervals: 30 of 100 is 21.9 to 39.6 %, 25 of 100 is 17.5 to 34.3 %, 40 of 100 is 30.9 to 49.8 %.
@pytest.mark.parametrize(
    ("expected", "count", "of", "bound"),
    [
        (Verdict.BEYOND, 30, 100, {"max_unknown": 0.2}),
        (Verdict.CANNOT_BE_TOLD, 25, 100, {"max_unknown": 0.2}),
        (Verdict.WITHIN, 20, 100, {"max_unknown": 0.2}),
        (Verdict.WITHIN, 0, 100, {"max_unknown": 0}),
        (Verdict.BEYOND, 40, 100, {"min_accepted": 0.5}),
        (Verdict.CANNOT_BE_TOLD, 40, 100, {"min_accepted": 0.49}),
        (Verdict.WITHIN, 50, 100, {"min_accepted": 0.5}),
        (Verdict.WITHIN, 100, 100, {"min_accepted": 1}),
        (Verdict.BEYOND, 40, 100, {"min_helpful": 0.5}),
        (Verdict.BEYOND, 30, 100, {"max_not_helpful": 0.2}),
        (Verdict.BEYOND, 30, 100, {"max_edited": 0.2}),
        (Verdict.BEYOND, 30, 100, {"max_discarded": 0.2}),
    ],
)
def test_a_share_is_past_a_bound_only_where_its_whole_interval_is(expected, count, of, bound):
    assert expected == verdict(count, of, **bound)


def test_the_share_alone_may_be_asked_for():
    assert Verdict.BEYOND == verdict(21, 100, certain=False, max_unknown=0.2)
    assert Verdict.WITHIN == verdict(20, 100, certain=False, max_unknown=0.2)


def test_too_few_cases_are_an_answer_of_their_own_whatever_the_share_is():
    assert Verdict.TOO_FEW == verdict(29, 29, max_unknown=0.2)
    assert Verdict.TOO_FEW == verdict(0, 29, max_unknown=0.2)
    assert Verdict.TOO_FEW == verdict(0, 0, max_unknown=0.2, min_cases=1)
    assert Verdict.BEYOND == verdict(30, 30, max_unknown=0.2)


def findings(bounds, groups):
    return list(findings_of(bounds_of(bounds), groups, BY_MODEL, min_cases=30, certain=True))


def test_each_source_is_checked_for_itself():
    # 40 ratings and 100 runs, 10 of them unknown: 45 of 90 decided.
    found = findings({"min_accepted": 0.9, "min_helpful": 0.9}, [group("a", (20, 20), (45, 45, 0, 10))])
    assert [("observed", 45, 90), ("explicit", 20, 40)] == [(f.bound.source, f.share.count, f.share.of) for f in found]
    told = (
        "Observed: min_accepted: “a”: accepted unchanged 45 of 90 · 50.0 % (39.9 to 60.1), expected at least 90 %. "
        "Explicit: min_helpful: “a”: helpful 20 of 40 · 50.0 % (35.2 to 64.8), expected at least 90 %."
    )
    assert told == by_source(found)


def test_a_group_without_a_case_of_the_source_is_not_checked():
    found = findings({"min_helpful": 0.9}, [group("a", (40, 0)), group("only observed", (), (40, 0, 0, 0))])
    assert [("a", Verdict.WITHIN)] == [(one.group, one.verdict) for one in found]


def test_a_bound_without_a_case_has_too_few():
    found = findings({"min_helpful": 0.9, "max_unknown": 0.2}, [group("a", (), (40, 0, 0, 0))])
    assert ["min_helpful: helpful of no case, expected at least 90 %"] == [one.in_words for one in unanswered(found)]


def test_a_bound_is_answered_if_one_group_has_enough_cases():
    found = findings({"max_unknown": 0.2}, [group("a", (), (40, 0, 0, 0)), group("b", (), (2, 0, 0, 0))])
    assert [Verdict.WITHIN, Verdict.TOO_FEW] == [one.verdict for one in found]
    assert [] == unanswered(found)


def test_a_name_is_data_in_a_reason():
    (found,) = findings({"max_unknown": 0.2}, [group("a\nb", (), (0, 0, 0, 40))])
    assert "\n" not in found.in_words


@pytest.mark.parametrize(
    "bounds", [{}, {"max_unknown": None}, {"max_unknown": 20}, {"min_accepted": -0.1}, {"max_unknown": True}]
)
def test_what_is_no_share_is_refused(bounds):
    with pytest.raises(ValueError, match="expected"):
        bounds_of(bounds)


def test_an_unknown_action_is_refused():
    with pytest.raises(ValueError, match="on_too_few is 'pass'; expected 'skip', 'fail', 'warn'"):
        OnTooFew("pass")
