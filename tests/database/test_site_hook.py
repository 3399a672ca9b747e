"""What the four hooks have in common: a connection, and a test of it."""

from __future__ import annotations

from contextlib import closing

import pytest
from airflow.providers.common.compat.sdk import BaseHook
from sqlalchemy import text

from airflow_provider_nrllm.hooks.a2a import NrLlmA2AHook
from airflow_provider_nrllm.hooks.audit import NrLlmEditedAuditHook
from airflow_provider_nrllm.hooks.nrllm import NrLlmHook
from airflow_provider_nrllm.hooks.readout import NrLlmReadoutHook
from tests.typo3.a2a_tables import create_a2a_tables

HOOKS = [NrLlmHook, NrLlmReadoutHook, NrLlmEditedAuditHook, NrLlmA2AHook]


@pytest.mark.parametrize("hook", HOOKS)
def test_a_hook_gives_the_connection_that_the_hook_of_airflow_opens(site, hook):
    opened = closing(BaseHook.get_hook(site.conn_id).get_conn()), closing(hook(site.conn_id).get_conn())
    with opened[0] as expected, opened[1] as connection:
        assert type(expected) is type(connection)


@pytest.mark.parametrize("hook", HOOKS)
def test_the_test_of_a_connection_names_the_table_that_a_hook_lacks(site_to_change, hook):
    create_a2a_tables(site_to_change.engine)
    assert hook(site_to_change.conn_id).test_connection()[0]
    table = hook(site_to_change.conn_id).requirements.tables[-1].name
    with site_to_change.engine.begin() as connection:
        connection.execute(text(f"DROP TABLE {table}"))
    ok, message = hook(site_to_change.conn_id).test_connection()
    assert (False, True) == (ok, table in message)
