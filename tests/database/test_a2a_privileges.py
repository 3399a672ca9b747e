"""A database user that may only do what docs/how-to/a2a-database-user.md grants."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import delete, text

from airflow_provider_nrllm.a2a.figures import RunFigures
from airflow_provider_nrllm.exceptions import NrLlmPrivilegeError
from airflow_provider_nrllm.operators.a2a import (
    NrLlmCheckA2AOperator,
    NrLlmProjectA2AEventsOperator,
    NrLlmPurgeA2AOperator,
)
from tests.typo3.a2a_results import result, seal
from tests.typo3.a2a_sites import hook_of
from tests.typo3.a2a_tables import add_task, event, rows_of, run
from tests.typo3.sites import Site

PAGE = (Path(__file__).parent.parent.parent / "docs/how-to/a2a-database-user.md").read_text()
USER = "nrllm_a2a"


def grant(site: Site, section: str) -> None:
    """Run the statements that the page gives."""
    found = re.search(rf"## {section}\n.*?```sql\n(.*?)```", PAGE, re.DOTALL)
    assert found
    with site.engine.begin() as connection:
        for statement in filter(None, map(str.strip, found[1].split(";"))):
            connection.execute(text(statement.replace("typo3.", "") if site.name == "postgres" else statement))


@pytest.fixture
def restricted(a2a_server: Site) -> Iterator[Site]:
    """A site with a completed task, whose connection is that of the documented user."""
    hook_of(a2a_server).complete(add_task(a2a_server.engine, 1), result(), seal=seal)
    add_task(a2a_server.engine, 2)
    grant(a2a_server, {"mariadb": "MariaDB and MySQL", "postgres": "PostgreSQL"}[a2a_server.name])
    a2a_server.define_connection(login=USER, password="change-me")
    yield a2a_server
    with a2a_server.engine.begin() as connection:
        if a2a_server.name == "postgres":
            connection.execute(text(f"DROP OWNED BY {USER}"))
        connection.execute(text(f"DROP USER {USER}"))


def test_the_documented_user_projects_checks_and_purges(restricted: Site) -> None:
    arguments = {"task_id": "task", "nrllm_conn_id": restricted.conn_id}
    assert hook_of(restricted).test_connection()[0]
    assert 4 == NrLlmProjectA2AEventsOperator(**arguments).execute({})["events"]
    assert {"violations": 0, "late": 0} == NrLlmCheckA2AOperator(**arguments).execute({})
    hook = hook_of(restricted)
    assert (2, 4) == (hook.tasks().total_size, len(hook.events_after(now=2**31).entries))
    with restricted.engine.begin() as connection:
        connection.execute(delete(run).where(run.c.uid == 1001))
    assert {"tasks": 1, "events": 3} == NrLlmPurgeA2AOperator(**arguments).execute({})


def test_the_documented_user_completes_and_scrubs_only_with_the_grants_for_it(restricted: Site) -> None:
    with pytest.raises(NrLlmPrivilegeError):
        hook_of(restricted).complete("task-2", result(), seal=seal)
    grant(restricted, "Completing, settling and scrubbing")
    hook = hook_of(restricted)
    figures = RunFigures(1, False, 2, 3, 5, 0.1, "final_answer", "")
    assert "completed" == hook.complete("task-2", result(), seal=seal, figures=figures).state
    hook.project()
    assert 2 == hook.scrub_installation("none").tasks
    assert all(row["payload"] is None for row in rows_of(restricted.engine, event))
    add_task(restricted.engine, 3, run_row={"status": "cancelled", "finished_at": 1})
    assert 1 == hook.settle().canceled
