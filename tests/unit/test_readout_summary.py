"""The three lines above a readout: each is true for none, one and many, and none recommends anything."""

from __future__ import annotations

from dataclasses import replace

import pytest

from airflow_provider_nrllm.readout.exports import as_json
from airflow_provider_nrllm.readout.groups import Dimension, Kind, Label
from airflow_provider_nrllm.readout.markdown import as_markdown
from airflow_provider_nrllm.readout.page import as_html
from airflow_provider_nrllm.readout.summary import summary_of
from tests.typo3.reports import arm, group, readout

CLEAR = [group("a", (), (80, 20)), group("b", (), (40, 40))]
UNCLEAR = [group("a", (), (8, 2)), group("b", (), (7, 2))]


@pytest.mark.parametrize(
    ("groups", "counts"),
    [
        ([], "0 observed runs and 0 ratings"),
        ([group("a", (1,), (1,))], "1 observed run and 1 rating"),
        ([group("a", (900, 200), (1500,)), group("b", (), (1,))], "1,501 observed runs and 1,100 ratings"),
    ],
)
def test_what_was_asked_says_how_much_there_is(groups, counts):
    begin = "Outcomes by served model, from 2026-03-01T00:00:00Z to before 2026-03-31T00:00:00Z"
    assert f"{begin}: {counts}." == summary_of(readout(groups)).asked


def test_a_difference_whose_interval_leaves_out_0_can_be_told():
    # 50 % less 80 %; Wilson's ends of 40 of 80 are 0.3929 and 0.6071, of 80 of 100 0.7112 and 0.8666.
    told = "“b” was accepted unchanged less often than “a”: −30.0 points (−42.6 to −16.1)."
    chance = "Of twenty comparisons of equals, one would be told apart by chance."
    assert f"{told} {chance}" == summary_of(readout(CLEAR)).told


def test_a_difference_whose_interval_holds_0_cannot_be_told():
    summary = summary_of(readout(UNCLEAR))
    assert "No difference: the interval of each holds 0." == summary.told
    assert summary.untold.startswith("Whether “b” was accepted unchanged more or less often than “a”. ")


def test_the_sources_are_told_apart():
    summary = summary_of(readout([group("a", (90, 10), (8, 2)), group("b", (10, 30), (7, 2))]))
    assert summary.told.startswith("“b” was rated helpful less often than “a”: −65.0 points")
    assert summary.untold.startswith("Whether “b” was accepted unchanged more or less often")


@pytest.mark.parametrize("groups", [[], CLEAR[:1], [*CLEAR[:1], group(Label(Kind.SEVERAL), (), (9, 9))]])
def test_fewer_than_two_groups_are_not_compared(groups):
    assert "Nothing: no two groups can be compared." == summary_of(readout(groups)).told


def test_a_reference_without_an_outcome_leaves_nothing_to_compare():
    assert "Nothing: no two groups can be compared." == summary_of(replace(readout(CLEAR), reference="c")).told


def test_models_are_told_apart_over_the_configurations_that_both_have():
    arms = [arm(name, model, *became) for name in ("x", "y") for model, became in [("a", (80, 20)), ("b", (40, 40))]]
    two = replace(readout(arms), grouping=(Dimension.CONFIGURATION, Dimension.SERVED_MODEL))
    begin = "“b” was accepted unchanged less often than “a”, over 2 configurations: −30.0 points ("
    assert summary_of(two).told.startswith(begin)
    assert 1 == summary_of(two).told.count("often")


def test_at_most_four_differences_are_named():
    groups = [group("a", (), (800, 200)), *(group(f"b{number}", (), (40, 40)) for number in range(5))]
    told = summary_of(readout(groups)).told
    assert 4 == told.count("less often")
    assert "; and 1 more, in the tables. Of twenty" in told


@pytest.mark.parametrize(
    ("groups", "words"),
    [
        ([], "No run is observed."),
        ([group("a", (1,))], "No run is observed."),
        (
            [group("a", (), (1, 0, 0, 0))],
            "Of the observed runs, 0 of 1 (0.0 %) are unknown, and 0 of 1 (0.0 %) are of no single served model.",
        ),
        (
            [group("a", (), (6, 0, 0, 1)), group(Label(Kind.NO_TELEMETRY), (), (3,))],
            "Of the observed runs, 1 of 10 (10.0 %) is unknown, and 3 of 10 (30.0 %) are of no single served model.",
        ),
    ],
)
def test_what_is_in_no_models_figures_is_said(groups, words):
    assert words == summary_of(readout(groups)).untold


def test_each_format_has_the_summary():
    world = readout([group("<b>|`a`", (), (80, 20)), group("c", (), (40, 40))])
    lines = [*summary_of(world)]
    assert dict(zip(("asked", "told", "untold"), lines, strict=True)) == as_json(world)["summary"]
    assert "<dd>“c” was accepted unchanged less often than “&lt;b&gt;|`a`”: −30.0 points" in as_html(world)
    assert "- Can be told: `c` was accepted unchanged less often than `` <b>\\|`a` ``" in as_markdown(world, 200)


def test_the_summary_recommends_nothing():
    for words in ("better", "best", "should", "recommend", "use"):
        assert words not in " ".join(summary_of(readout([*CLEAR, *UNCLEAR[1:]]))).lower().split()
