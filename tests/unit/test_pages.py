"""How many of the rows that were read make a page."""

from __future__ import annotations

import pytest

from airflow_provider_nrllm.outcomes.pages import page_of_rows


def rows(uuids):
    return [(number, number, uuid) for number, uuid in enumerate(uuids)]


@pytest.mark.parametrize(
    ("uuids", "expected"),
    [
        ("", ("", None)),
        ("a", ("a", None)),
        ("ab", ("ab", None)),
        ("abc", ("ab", (1, 1))),
        ("aabbc", ("aabb", (3, 3))),
        ("aaaaa", ("aaaa", (3, 3))),
        ("aaaab", ("aaaa", (3, 3))),
        ("abab", ("abab", None)),
        ("abac", ("aba", (2, 2))),
    ],
)
def test_a_page_has_at_most_so_many_uuids_and_twice_as_many_rows(uuids, expected):
    page, following = page_of_rows(rows(uuids), 2)
    assert expected == ("".join(uuid for _, _, uuid in page), following)
