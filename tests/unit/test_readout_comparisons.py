"""Groups side by side: which stand beside which, and what is pooled."""

import pytest

from airflow_provider_nrllm.readout.comparisons import explicit_comparisons, observed_comparisons
from airflow_provider_nrllm.readout.counts import in_order
from airflow_provider_nrllm.readout.groups import Kind, Label
from tests.typo3.reports import arm, group


def test_groups_are_compared_with_the_largest_of_the_source():
    groups = in_order([group("a", (9, 1), (1,)), group("b", (1, 1), (5, 5)), group("c", (0, 1))])
    rated, became = explicit_comparisons(groups), observed_comparisons(groups)
    assert ("a", ["b", "c"]) == (rated.reference.name, [row.group.key[0].name for row in rated.rows])
    assert ("b", ["a"]) == (became.reference.name, [row.group.key[0].name for row in became.rows])


def test_with_two_dimensions_the_second_is_compared_within_each_of_the_first():
    arms = [arm("seo", "a", 9, 1), arm("seo", "b", 4, 4), arm("news", "b", 1, 1), arm("news", "c", 1), arm("faq", "c")]
    compared = observed_comparisons(in_order(arms))
    # a has 10 runs and b has 10, of which the first is taken; a is in seo only.
    assert "a" == compared.reference.name
    assert [("seo", "b")] == [tuple(label.name for label in row.group.key) for row in compared.rows]
    assert [("b", 1)] == [(row.label.name, row.strata) for row in compared.pooled]
    beside_b = observed_comparisons(in_order(arms), "b")
    assert {("seo", "a", "b"), ("news", "c", "b")} == {
        (row.group.key[0].name, row.group.key[1].name, row.reference.key[1].name) for row in beside_b.rows
    }
    # 9 of 10 less 4 of 8.
    pooled = next(row for row in beside_b.pooled if row.label.name == "a").differences["accepted_unchanged"]
    assert 0.4 == pytest.approx(pooled.value)


def test_a_reference_without_a_case_leaves_nothing_to_compare():
    compared = observed_comparisons([group("a", (), (1,)), group("b", (), (1,))], "gone")
    assert ("gone", ()) == (compared.reference.name, compared.rows)


def test_what_has_no_one_name_is_compared_with_nothing():
    groups = [group("a", (9, 1)), group(Label(Kind.SEVERAL), (1, 1)), group(Label(Kind.NO_TELEMETRY), (1, 1))]
    assert explicit_comparisons(groups) is None
