"""On a cluster whose nodes do not share row locks each run gets one outcome, whichever nodes record it."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from sqlalchemy import select, text

from airflow_provider_nrllm.hooks.nrllm import NrLlmHook
from tests.typo3.cluster import Node, wait_until_same
from tests.typo3.grants import PAGE, USER, documented_grants
from tests.typo3.loader import load_case
from tests.typo3.servers import CHOSEN
from tests.typo3.tables import create_tables, outcome
from tests.typo3.worlds import DAY, START, many_runs

RUNS = 20


@pytest.fixture(scope="module")
def nodes() -> Iterator[tuple[Node, Node]]:
    if "mysql" in CHOSEN:
        pytest.skip("Galera is MariaDB's; MySQL has no such cluster")
    first = Node()
    try:
        second = Node(first)
        try:
            create_tables(first.engine())
            load_case(first.engine(), many_runs(RUNS))
            for statement in (*documented_grants("mariadb"), *grants_of_clusters()):
                with first.engine().begin() as connection:
                    connection.execute(text(statement))
            wait_until_same(first, second)
            yield first, second
        finally:
            second.remove()
    finally:
        first.remove()


def grants_of_clusters() -> list[str]:
    block = re.search(r"## Clusters\n.*?```sql\n(.*?)```", PAGE, re.DOTALL)
    assert block
    return [statement.strip() for statement in block[1].split(";") if statement.strip()]


@pytest.fixture
def hooks(nodes: tuple[Node, Node], monkeypatch: pytest.MonkeyPatch) -> list[NrLlmHook]:
    """A hook on each node, as the user that the docs make."""
    for number, node in enumerate(nodes):
        fields = {**node.connection, "login": USER, "password": "change-me"}
        monkeypatch.setenv(f"AIRFLOW_CONN_NODE_{number}", json.dumps(fields))
    with nodes[0].engine().begin() as connection:
        connection.execute(outcome.delete())
    wait_until_same(*nodes)
    return [NrLlmHook(f"node_{number}") for number in range(len(nodes))]


def values(nodes: tuple[Node, Node]) -> Counter[str]:
    """Return how many outcomes each correlation id has."""
    wait_until_same(*nodes)
    with nodes[1].engine().connect() as connection:
        return Counter(connection.execute(select(outcome.c.correlation_id)).scalars())


def test_two_nodes_at_once_record_each_run_once(nodes: tuple[Node, Node], hooks: list[NrLlmHook]) -> None:
    pages = [list(hook.pages(None, START + 100 * DAY, window=7 * DAY, page_size=1)) for hook in hooks]
    answered = [page for page in pages[0] if page.runs]
    assert RUNS == len(answered)
    begin = Barrier(2)

    def record(hook: NrLlmHook) -> int:
        recorded = 0
        for page in answered:
            begin.wait(60)
            recorded += len(hook.record_observed(page.runs, page.outcomes(START + 100 * DAY)))
        return recorded

    with ThreadPoolExecutor(2) as pool:
        assert RUNS == sum(pool.map(record, hooks))
    assert {1} == set(values(nodes).values())


def test_two_ratings_of_two_nodes_at_once_leave_one(nodes: tuple[Node, Node], hooks: list[NrLlmHook]) -> None:
    begin = Barrier(2)

    def rate(hook: NrLlmHook, rating: str) -> None:
        for number in range(RUNS):
            begin.wait(60)
            hook.record_explicit(f"run-{number}", rating)

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(rate, hooks, ("helpful", "not_helpful")))
    assert {f"run-{number}": 1 for number in range(RUNS)} == values(nodes)


def test_what_makes_the_nodes_agree_leaves_no_row_and_takes_no_uid(
    nodes: tuple[Node, Node], hooks: list[NrLlmHook]
) -> None:
    hooks[0].record_explicit("run", "helpful")
    hooks[0].record_explicit("run", "not_helpful")
    wait_until_same(*nodes)
    with nodes[0].engine().connect() as connection:
        (uid,) = connection.execute(select(outcome.c.uid)).scalars()
    assert 0 < uid < 1000
