"""Random histories on each engine: the audit tells of each edit what a slow model of the documentation tells."""

from __future__ import annotations

from random import Random

import pytest

from airflow_provider_nrllm.edits.meanings import IgnoredFields
from airflow_provider_nrllm.hooks.audit import NrLlmEditedAuditHook
from tests.typo3.audits import ANSWERED, WEEK, T, answered, lay_histories
from tests.typo3.edit_model import ORDER, meaning, random_history


@pytest.mark.parametrize("seed", [11, 12])
def test_the_audit_tells_what_the_model_tells(site, seed):
    random = Random(seed)
    histories = {number: random_history(random, T + number) for number in range(1, 401)}
    lay_histories(
        site,
        {
            number: (each.at, [(row.at, row.action, row.data) for row in (*each.own, *each.later)])
            for number, each in histories.items()
        },
    )
    answered(site, [(f"r{number}", "edited") for number in histories])
    pages = NrLlmEditedAuditHook(site.conn_id).meanings(
        None, ANSWERED + 1, grouping=(), window=WEEK, ignored=IgnoredFields(), page_size=150
    )
    found = {uuid: str(told) for page in pages for uuid, (_, told) in page.items()}
    expected = {f"r{number}": meaning(each) for number, each in histories.items()}
    assert set(ORDER) == set(expected.values())
    different = {
        uuid: (expected[uuid], found[uuid], histories[int(uuid[1:])])
        for uuid in expected
        if expected[uuid] != found[uuid]
    }
    assert {} == different
