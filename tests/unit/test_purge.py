"""What a purge would destroy, and settings that can only lead to 'unknown': the rules."""

from datetime import timedelta

import pytest

from airflow_provider_nrllm.purge.rules import DAY, AtRisk, at_risk, retention_days, settings_to_mend

NOW = 1_800_000_000


@pytest.mark.parametrize(
    ("settled", "expected"),
    [
        pytest.param([], AtRisk(0, 0, None), id="nothing at risk"),
        pytest.param([NOW - 1], AtRisk(1, 0, None), id="settled a second ago"),
        pytest.param([NOW], AtRisk(0, 1, NOW), id="settles in this second, which no partition up to now holds"),
        pytest.param([NOW + 5, NOW + 9, NOW - 9], AtRisk(1, 2, NOW + 9), id="the last of the unsettled counts"),
        pytest.param([NOW + 5, None], AtRisk(0, 2, None), id="one that goes on has no date"),
    ],
)
def test_runs_at_risk_are_told_apart_by_whether_they_have_settled(settled, expected):
    assert at_risk(settled, NOW) == expected


@pytest.mark.parametrize("retention", [30, "30", " 30 ", timedelta(days=30)])
def test_a_retention_is_whole_days(retention):
    assert 30 == retention_days(retention)


@pytest.mark.parametrize("retention", [0, -1, 1.5, True, None, "", "0", "x", "-1", "3.0", "٣", timedelta(hours=36)])
def test_what_the_purge_commands_refuse_is_no_retention(retention):
    with pytest.raises(ValueError, match="expected a whole number of days, 1 to 36500"):
        retention_days(retention)


def to_mend(*, window=7, partition=1, retention=30, outcomes=30, history=30 * DAY):
    """Ask with lengths in days, the history's in seconds."""
    return settings_to_mend(
        window=window * DAY,
        partition=partition * DAY,
        retention=retention * DAY,
        outcome_retention=outcomes * DAY,
        history=history,
    )


def test_the_defaults_of_typo3_and_nr_llm_are_right():
    assert [] == to_mend()


def test_a_history_shorter_than_the_window_can_only_lead_to_unknown():
    (sentence,) = to_mend(history=7 * DAY - 1)
    assert "can only lead to 'unknown'" in sentence


def test_a_history_that_ends_within_the_partition_leads_some_runs_to_unknown():
    (sentence,) = to_mend(history=8 * DAY)
    assert "some runs become 'unknown'" in sentence


def test_a_history_a_second_longer_than_window_and_partition_is_enough():
    assert [] == to_mend(history=8 * DAY + 1)


def test_no_history_at_all_is_said():
    (sentence,) = to_mend(history=None)
    assert sentence.startswith("sys_history is empty")


def test_runs_kept_as_long_as_window_and_partition_are_kept_too_short():
    (sentence,) = to_mend(window=29, history=60 * DAY)
    assert sentence.startswith("Runs are kept 30 days")


def test_runs_kept_a_day_longer_than_window_and_partition_are_kept_long_enough():
    assert [] == to_mend(window=28, history=60 * DAY)


def test_outcomes_kept_shorter_than_runs_look_as_if_never_answered():
    (sentence,) = to_mend(retention=60, outcomes=59)
    assert sentence.startswith("Call outcomes are kept 59 days, shorter than runs, 60 days")
