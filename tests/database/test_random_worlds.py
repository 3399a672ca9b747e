"""
A derivation of random sites gives the answers of the rules as they are worded, whole and in shuffled partitions.

``RANDOM_WORLDS=1000`` asks of so many instead of a few.
"""

from __future__ import annotations

import os
import random

import pytest

from airflow_provider_nrllm.hooks.nrllm import NrLlmHook
from tests.typo3.random_worlds import DAY, NOW, START, WINDOW, random_world
from tests.typo3.sites import Site
from tests.typo3.tables import empty_tables, outcome, outcome_rows

WORLDS = int(os.environ.get("RANDOM_WORLDS", "4"))
SIZE = 100


def derive(site: Site, partitions: list[tuple[int | None, int]], page_size: int) -> None:
    hook = NrLlmHook(site.conn_id)
    for start, end in partitions:
        for page in hook.pages(start, end, window=WINDOW, page_size=page_size):
            hook.record_observed(page.runs, page.outcomes(NOW))


@pytest.mark.timeout(3600)
def test_the_answers_are_those_of_the_rules_as_they_are_worded(site: Site) -> None:
    for seed in range(WORLDS):
        chance = random.Random(seed)
        empty_tables(site.engine)
        world = random_world(seed, SIZE)
        world.lay(site.engine)
        expected = sorted(world.expected.items())

        derive(site, [(None, NOW)], chance.choice([1, 3, 20, 1000]))
        assert expected == outcome_rows(site.engine), f"world {seed}, whole"

        with site.engine.begin() as connection:
            connection.execute(outcome.delete())
        cuts = sorted(chance.sample(range(START + DAY, NOW), 5))
        partitions = list(zip([START, *cuts], [*cuts, NOW], strict=True))
        chance.shuffle(partitions)
        derive(site, partitions, chance.choice([1, 3, 20, 1000]))
        assert expected == outcome_rows(site.engine), f"world {seed}, in {partitions}"
