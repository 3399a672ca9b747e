"""The line on the runs that were made in a range."""

import pytest

from airflow_provider_nrllm.readout.coverage import OVERDUE, Coverage


@pytest.mark.parametrize(
    ("coverage", "line"),
    [
        (Coverage(), "Runs made in the range: 0; of them with writes 0, answered 0, still watched 0, overdue 0."),
        (
            Coverage(1, 1, 0, 0),
            f"Runs made in the range: 1; of them with writes 1, answered 0, still watched 0, overdue 1. {OVERDUE}",
        ),
        (
            Coverage(1200, 80, 70, 8),
            "Runs made in the range: 1,200; of them with writes 80, answered 70, still watched 8, overdue 2. "
            + OVERDUE,
        ),
    ],
)
def test_the_line_is_true_of_none_one_and_many(coverage, line):
    assert line == coverage.in_words
