"""Shares and their intervals, against values published by Newcombe (1998) and worked by hand."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_nrllm.readout.shares import Difference, PooledDifference, Share, Z

#: Newcombe 1998, single proportion, table I, method 3.
PUBLISHED_SHARES = [
    (81, 263, 0.2553, 0.3662),
    (15, 148, 0.0624, 0.1605),
    (0, 20, 0.0000, 0.1611),
    (1, 29, 0.0061, 0.1718),
]

#: Newcombe 1998, difference of proportions, table II, method 10.
PUBLISHED_DIFFERENCES = [
    ((56, 70), (48, 80), 0.0524, 0.3339),
    ((9, 10), (3, 10), 0.1705, 0.8090),
    ((6, 7), (2, 7), 0.0582, 0.8062),
    ((5, 56), (0, 29), -0.0381, 0.1926),
    ((0, 10), (0, 20), -0.1611, 0.2775),
    ((0, 10), (0, 10), -0.2775, 0.2775),
    ((10, 10), (0, 20), 0.6791, 1.0000),
    ((10, 10), (0, 10), 0.6075, 1.0000),
]

shares = st.integers(0, 500).flatmap(lambda of: st.builds(Share, st.integers(0, of), st.just(of)))


@pytest.mark.parametrize(("count", "of", "low", "high"), PUBLISHED_SHARES)
def test_the_interval_of_a_share_is_wilsons(count, of, low, high):
    assert (low, high) == pytest.approx(Share(count, of).interval, abs=0.00005)


@pytest.mark.parametrize(("share", "other", "low", "high"), PUBLISHED_DIFFERENCES)
def test_the_interval_of_a_difference_is_newcombes(share, other, low, high):
    assert (low, high) == pytest.approx(Difference(Share(*share), Share(*other)).interval, abs=0.00005)


def test_one_of_two_worked_by_hand():
    # z^2 = 3.841459; middle 0.5 + 3.841459/4 = 1.460365; half 1.959964 * sqrt(0.125 + 3.841459/16) = 1.184650;
    # scale 1 + 3.841459/2 = 2.920729.
    assert (0.094531, 0.905469) == pytest.approx(Share(1, 2).interval, abs=0.000001)


def test_none_of_one_worked_by_hand():
    # z^2 / (1 + z^2) = 3.841459 / 4.841459
    assert (0.0, 0.793451) == pytest.approx(Share(0, 1).interval, abs=0.000001)


def test_all_of_one_worked_by_hand():
    assert (0.206549, 1.0) == pytest.approx(Share(1, 1).interval, abs=0.000001)


def test_of_nothing_there_is_no_share():
    assert (None, None) == (Share(0, 0).value, Share(0, 0).interval)


def test_with_a_group_of_nothing_there_is_no_difference():
    difference = Difference(Share(1, 2), Share(0, 0))
    assert (None, None) == (difference.value, difference.interval)


@pytest.mark.parametrize(("count", "of"), [(-1, 3), (4, 3), (0, -1)])
def test_more_than_all_is_no_share(count, of):
    with pytest.raises(ValueError, match="is no share"):
        Share(count, of)


def test_95_percent_is_1_96_standard_deviations():
    assert math.isclose(1.959963984540054, Z, rel_tol=1e-12)


@given(shares)
def test_the_interval_holds_the_share_and_stays_within_0_and_1(share):
    if share.interval is not None:
        assert 0 <= share.interval.low <= share.value <= share.interval.high <= 1


@given(shares, shares)
def test_the_other_way_round_a_difference_has_the_other_sign(share, other):
    there, back = Difference(share, other), Difference(other, share)
    if there.interval is not None:
        assert there.interval == pytest.approx((-back.interval.high, -back.interval.low))
        assert -1.000001 <= there.interval.low <= there.value <= there.interval.high <= 1.000001


#: The University Group Diabetes Program: deaths under tolbutamide and placebo, below 55 years and from 55 on. Rothman,
#: Greenland and Lash, Modern Epidemiology, 3rd edition 2008, table 15-1; they print 90 % limits.
DIABETES = (Difference(Share(8, 106), Share(5, 120)), Difference(Share(22, 98), Share(16, 85)))


def test_the_pooled_difference_is_mantel_and_haenszels():
    pooled = PooledDifference(DIABETES)
    # Published: 0.0349, from -0.0176 to 0.0874 with z = 1.644854; so the standard error is 0.031903.
    assert 0.0349 == pytest.approx(pooled.value, abs=0.00005)
    half = 0.08737551792809078 - 0.03490026933691816
    at_95 = half / 1.6448536269514722 * Z
    assert (0.0349003 - at_95, 0.0349003 + at_95) == pytest.approx(pooled.interval, abs=0.000001)


def test_a_pooled_difference_worked_by_hand():
    # Strata 6 of 10 beside 4 of 10, and 3 of 20 beside 1 of 10. Weights 100/20 = 5 and 200/30 = 6.666667.
    # (60 - 40)/20 + (30 - 20)/30 = 1.333333; over 11.666667 it is 0.114286.
    # P: (400 - 600 + 0)/400 = -0.5 and (400 - 300 - 1000)/900 = -1. Q: (36 + 16)/40 = 1.3 and (27 + 17)/60 = 0.733333.
    # (-0.114286 * 1.5 + 2.033333) / 136.111111 = 0.013679; its root is 0.116959.
    pooled = PooledDifference((Difference(Share(6, 10), Share(4, 10)), Difference(Share(3, 20), Share(1, 10))))
    assert 0.114286 == pytest.approx(pooled.value, abs=0.000001)
    assert (0.114286 - Z * 0.116959, 0.114286 + Z * 0.116959) == pytest.approx(pooled.interval, abs=0.000005)


def test_a_fair_comparison_is_not_turned_round_by_what_each_group_was_given():
    # Within each stratum the first group is better by 0.1; together it looks worse: 59 of 110 beside 84 of 110.
    pooled = PooledDifference((Difference(Share(9, 10), Share(80, 100)), Difference(Share(50, 100), Share(4, 10))))
    assert 0.1 == pytest.approx(pooled.value)
    assert Difference(Share(59, 110), Share(84, 110)).value < 0


def test_of_groups_that_are_all_alike_the_pooled_interval_tells_nothing():
    pooled = PooledDifference((Difference(Share(0, 3), Share(0, 3)),))
    assert (0.0, None, False) == (pooled.value, pooled.interval, pooled.is_told)


def test_without_a_stratum_there_is_no_pooled_difference():
    assert (None, None) == (PooledDifference(()).value, PooledDifference(()).interval)


def test_a_difference_is_told_where_its_interval_leaves_out_zero():
    told, untold = Difference(Share(9, 10), Share(3, 10)), Difference(Share(5, 56), Share(0, 29))
    assert (True, False) == (told.is_told, untold.is_told)
    assert (False, False) == (Difference(Share(1, 2), Share(0, 0)).is_told, PooledDifference(DIABETES).is_told)


@given(st.lists(st.builds(Difference, shares, shares), max_size=5))
def test_a_pooled_difference_lies_between_those_of_its_strata(strata):
    strata = [stratum for stratum in strata if stratum.value is not None]
    pooled = PooledDifference(tuple(strata))
    if strata:
        values = [stratum.value for stratum in strata]
        assert min(values) - 1e-9 <= pooled.value <= max(values) + 1e-9
        assert pooled.interval is None or -1 <= pooled.interval.low <= pooled.value <= pooled.interval.high <= 1
