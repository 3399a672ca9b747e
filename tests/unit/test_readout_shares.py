"""Shares and their intervals, against values published by Newcombe (1998) and worked by hand."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_nrllm.readout.shares import Difference, Share, Z

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
