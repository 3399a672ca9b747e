"""A site with the tables of the A2A server role, as fixtures; a module asks for them by importing them."""

from __future__ import annotations

import pytest

from airflow_provider_nrllm.hooks.a2a import NrLlmA2AHook
from tests.typo3.a2a_tables import create_a2a_tables, empty_a2a_tables
from tests.typo3.sites import Site


@pytest.fixture
def a2a_site(site: Site) -> Site:
    """An empty site with A2A tables; the test runs once on each engine."""
    create_a2a_tables(site.engine)
    empty_a2a_tables(site.engine)
    return site


@pytest.fixture
def a2a_server(server_site: Site) -> Site:
    """The same on the servers only, where several may write at once."""
    create_a2a_tables(server_site.engine)
    empty_a2a_tables(server_site.engine)
    return server_site


def hook_of(site: Site) -> NrLlmA2AHook:
    """Return a hook on the site, as Airflow would make it."""
    return NrLlmA2AHook(site.conn_id)
