"""Hooks on sites with the tables of the A2A server role."""

from __future__ import annotations

from airflow_provider_nrllm.hooks.a2a import NrLlmA2AHook
from tests.typo3.sites import Site


def hook_of(site: Site) -> NrLlmA2AHook:
    """Return a hook on the site, as Airflow would make it."""
    return NrLlmA2AHook(site.conn_id)
