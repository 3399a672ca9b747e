"""Whether a share changed: the later half of a source's cases beside the earlier."""

from __future__ import annotations

from datetime import date, timedelta

import pytest

from airflow_provider_nrllm.outcomes.rules import ExplicitOutcome, ObservedOutcome
from airflow_provider_nrllm.readout.counts import together
from airflow_provider_nrllm.readout.exports import as_json
from airflow_provider_nrllm.readout.groups import Kind, Label
from airflow_provider_nrllm.readout.halves import changes_of
from airflow_provider_nrllm.readout.page import as_html
from airflow_provider_nrllm.readout.periods import PeriodWidth
from airflow_provider_nrllm.readout.shares import Share
from airflow_provider_nrllm.readout.spreadsheet import as_csv
from airflow_provider_nrllm.readout.summary import summary_of
from airflow_provider_nrllm.readout.tables import tables_of
from tests.typo3.reports import group, over_time, readout

ACCEPTED = ObservedOutcome.ACCEPTED_UNCHANGED
MONDAY = date(2026, 3, 2)


def weekly(*groups):
    return readout(groups, together(each.periods for each in groups), width=PeriodWidth.WEEK)


def accepted(name, *weeks):
    """A group with some accepted and some edited runs in each week, None for a week without a run."""
    found = {MONDAY + timedelta(weeks=n): ((), week) for n, week in enumerate(weeks) if week}
    return over_time(name, found)


@pytest.mark.parametrize(
    ("weeks", "since"),
    [
        ([(1,), (1,)], 1),
        ([(1,), (1,), (1,), (1,)], 2),
        ([(1,), (1,), (1,)], 2),
        # The first week holds more than half, and cannot be halved.
        ([(9,), (1,), (1,)], 1),
        ([(1,), (1,), (9,)], 2),
        # An outcome of long ago does not move the middle.
        ([(1,), *[None] * 50, (5,), (5,), (5,), (5,)], 53),
    ],
)
def test_the_later_half_begins_with_the_period_before_which_half_of_the_cases_are(weeks, since):
    assert MONDAY + timedelta(weeks=since) == changes_of(weekly(accepted("a", *weeks)), ACCEPTED).since


def test_a_change_is_the_later_share_less_the_earlier():
    (change,) = changes_of(weekly(accepted("a", (40, 10), (40, 10), (20, 30), (20, 30))), ACCEPTED).rows
    assert (change.earlier, change.later) == (Share(80, 100), Share(40, 100))
    assert -0.4 == round(change.difference.value, 6)
    assert change.difference.is_told


def test_all_groups_are_halved_at_one_time_and_each_source_at_its_own():
    rated = over_time("b", {MONDAY + timedelta(weeks=n): ((1, 1), (n + 1,)) for n in range(4)})
    both = weekly(accepted("a", (1,), (1,)), rated)
    assert MONDAY + timedelta(weeks=2) == changes_of(both, ExplicitOutcome.HELPFUL).since
    # Of 12 observed runs, 2, 3, 3 and 4: five before the third week, eight before the fourth.
    assert MONDAY + timedelta(weeks=3) == changes_of(both, ACCEPTED).since
    assert [Share(6, 6), Share(2, 2)] == [change.earlier for change in changes_of(both, ACCEPTED).rows]


def test_a_group_of_one_half_has_no_change():
    changes = changes_of(weekly(accepted("a", (5,), (5,)), accepted("new", None, (2,))), ACCEPTED)
    assert [("a", 0.0), ("new", None)] == [(row.group.key[0].name, row.difference.value) for row in changes.rows]


def test_one_period_has_no_halves():
    assert changes_of(weekly(accepted("a", (5, 5))), ACCEPTED) is None
    assert changes_of(weekly(), ACCEPTED) is None
    assert "later half" not in as_html(weekly(accepted("a", (5, 5))))


def test_what_is_of_no_one_name_has_no_change():
    several = group(Label(Kind.SEVERAL), (), (2, 0), periods=accepted("", (1,), (1,)).periods)
    assert () == changes_of(weekly(several), ACCEPTED).rows
    assert "later half" not in as_html(weekly(several))


def test_the_table_says_when_the_halves_meet():
    world = weekly(accepted("a", (40, 10), (20, 30)))
    table = next(table for table in tables_of(world, world.groups) if "observed-change" == table.topic)
    assert ("Served model", "Before 2026-03-09", "From 2026-03-09 on", "Change") == table.head
    assert [("a", Share(40, 50), Share(20, 50))] == [(row.name, *row.cells[:2]) for row in table.rows]


def test_the_summary_names_a_change_that_can_be_told_and_no_other():
    fallen, steady = accepted("a", (40, 10), (20, 30)), accepted("b", (40, 10), (39, 11))
    # 40 % less 80 %; Wilson's ends of 20 of 50 are 0.2761 and 0.5382, of 40 of 50 0.6696 and 0.8876.
    told = "“a” was accepted unchanged less often from 2026-03-09 on than before: −40.0 points (−55.2 to −21.0)."
    assert summary_of(weekly(fallen)).told.startswith(told)
    assert "than before" not in summary_of(weekly(steady)).told
    risen = weekly(accepted("a", (20, 30), (40, 10)))
    assert summary_of(risen).told.startswith(
        "“a” was accepted unchanged more often from 2026-03-09 on than before: +40"
    )


def test_json_and_csv_hold_the_change():
    world = weekly(accepted("a", (40, 10), (20, 30)))
    changed = as_json(world)["observed"]["changed"]
    assert ("2026-03-09", "accepted_unchanged") == (changed["since"], changed["value"])
    (row,) = changed["groups"]
    assert (40, 20, -0.4, True) == (
        row["earlier"]["count"], row["later"]["count"], row["difference"]["value"], row["difference"]["told"],
    )  # fmt: skip
    lines = [line.split(",") for line in as_csv(world).splitlines() if line.startswith("observed changed")]
    assert [
        ["accepted_unchanged before 2026-03-09", "0.8"],
        ["accepted_unchanged from 2026-03-09 on", "0.4"],
        ["accepted_unchanged change", "-0.4"],
    ] == [line[5:7] for line in lines]
    assert as_json(world)["explicit"]["changed"] is None
    assert "told: “a” was accepted unchanged less often" in as_csv(world)
