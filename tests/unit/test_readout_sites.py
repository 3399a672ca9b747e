"""The readouts of several sites as one."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import date

import pytest

from airflow_provider_nrllm.edits.acceptance import Acceptance
from airflow_provider_nrllm.edits.meanings import Meaning
from airflow_provider_nrllm.readout.audited import AuditedRuns
from airflow_provider_nrllm.readout.coverage import Coverage
from airflow_provider_nrllm.readout.exports import as_json
from airflow_provider_nrllm.readout.groups import Dimension, grouping_of_sites
from airflow_provider_nrllm.readout.markdown import as_markdown
from airflow_provider_nrllm.readout.page import as_html
from airflow_provider_nrllm.readout.sites import of_sites
from airflow_provider_nrllm.readout.spreadsheet import as_csv
from tests.typo3.reports import over_time, readout

FIRST, SECOND = date(2026, 3, 2), date(2026, 3, 9)
AUDIT = AuditedRuns(5, Counter({Meaning.RELEASE: 1, Meaning.RUN_TEXT: 2}), Counter({Acceptance.STILL_HIDDEN: 2}))


def of_site(*groups):
    periods = tuple(period for group in groups for period in group.periods)
    return replace(readout(groups, periods), coverage=Coverage(10, 8, 5, 2))


A = of_site(over_time("model-a", {FIRST: ((1, 0), (3, 1, 0, 0)), SECOND: ((0, 1), (1, 0, 0, 0))}, AUDIT))
B = of_site(
    over_time("model-a", {SECOND: ((0, 0), (2, 0, 1, 1))}, AUDIT),
    over_time("model-b", {SECOND: ((2, 0), (0, 5, 0, 0))}),
)


def test_groups_of_one_key_are_one_group_period_by_period():
    found = of_sites({"a": A, "b": B}, {})
    # By hand, of model-a: 3 + 1 + 2 accepted, 1 edited, 1 discarded, 1 unknown; one rating each.
    counts = {
        group.key[0].name: (tuple(group.explicit.counts.values()), tuple(group.observed.counts.values()))
        for group in found.groups
    }
    assert {"model-a": ((1, 1), (6, 1, 1, 1)), "model-b": ((2, 0), (0, 5, 0, 0))} == counts
    (of_a,) = (group for group in found.groups if group.key[0].name == "model-a")
    assert [(FIRST, 4), (SECOND, 5)] == [(period.first, period.observed.total) for period in of_a.periods]
    assert {Meaning.RELEASE: 2, Meaning.RUN_TEXT: 4} == dict(of_a.audit.edited.counts)
    assert {Acceptance.STILL_HIDDEN: 4} == dict(of_a.audit.accepted.counts)


def test_what_covers_the_runs_is_the_sum_of_all_sites():
    assert Coverage(20, 16, 10, 4) == of_sites({"a": A, "b": B}, {}).coverage


@pytest.mark.parametrize("written", [as_csv, as_html, lambda found: as_markdown(found, 200), lambda f: str(as_json(f))])
def test_every_format_names_the_sites_and_the_one_that_could_not_be_read(written):
    text = written(of_sites({"site-a": A, "site-b": B}, {"site-c": "OperationalError 2003"}))
    assert [True] * 4 == [name in text for name in ("site-a", "site-b", "site-c", "OperationalError 2003")]


def test_one_dimension_is_told_within_each_site_and_two_as_they_are_given():
    assert (Dimension.SITE, Dimension.SERVED_MODEL) == grouping_of_sites("served_model")
    assert (Dimension.SITE,) == grouping_of_sites("site")
    assert (Dimension.SERVED_MODEL, Dimension.SITE) == grouping_of_sites(["served_model", "site"])
    assert (Dimension.CONFIGURATION, Dimension.SERVED_MODEL) == grouping_of_sites(["configuration", "served_model"])
