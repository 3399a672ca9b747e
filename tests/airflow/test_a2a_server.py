"""The server of docs/how-to/serve-a2a.md as the page has it, asked by the client of the A2A project."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from a2a.client.client import Client, ClientConfig
from a2a.client.client_factory import ClientFactory
from a2a.types import (
    AgentCapabilities,
    AgentCard,
    AgentInterface,
    CancelTaskRequest,
    GetTaskRequest,
    ListTasksRequest,
    SubscribeToTaskRequest,
    TaskState,
)
from a2a.utils.errors import (
    InternalError,
    InvalidParamsError,
    TaskNotFoundError,
    UnsupportedOperationError,
)
from sqlalchemy import update

from tests.typo3.a2a_results import result, seal
from tests.typo3.a2a_sites import hook_of
from tests.typo3.a2a_tables import add_task, task
from tests.typo3.servers import free_port
from tests.typo3.sites import Site

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/how-to/serve-a2a.md").read_text()
CALLERS = {"token-of-the-shop": ["context-1", "context-2"], "token-of-another": ["context-3"]}
VAULT = """
from tests.typo3.a2a_results import unseal as open_it


def unseal(value, purpose, task_id):
    if task_id == "task-4":
        raise ValueError("secret")
    return open_it(value, purpose, task_id)
"""

Ask = Callable[[Client], Any]


class Serving:
    """The server of the page, in a process of its own."""

    def __init__(self, directory: Path, site: Site) -> None:
        (server,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
        (directory / "server.py").write_text(server)
        (directory / "vault.py").write_text(VAULT)
        (directory / "callers.json").write_text(json.dumps(CALLERS))
        self.port = free_port()
        self.log = directory / "server.log"
        (command,) = re.findall(r"^(uvicorn .*)$", PAGE, re.MULTILINE)
        words = command.replace("8000", str(self.port)).split()
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", *words],
                cwd=directory, stdout=log, stderr=log,
                env={
                    **os.environ,
                    "PYTHONPATH": f"{directory}{os.pathsep}{ROOT}",
                    "AIRFLOW_CONN_NRLLM_DEFAULT": json.dumps(site.connection),
                    "A2A_CALLERS": str(directory / "callers.json"),
                    "A2A_POLL_SECONDS": "0.05",
                },
            )  # fmt: skip
        deadline = time.monotonic() + 60
        while "Uvicorn running" not in self.log.read_text():
            assert self.process.poll() is None, self.log.read_text()
            assert time.monotonic() < deadline, self.log.read_text()
            time.sleep(0.1)

    @asynccontextmanager
    async def client(self, token: str) -> AsyncIterator[Client]:
        """Return a client as the A2A project makes it, that shows a token."""
        url = f"http://127.0.0.1:{self.port}/a2a"
        card = AgentCard(
            name="nr_llm",
            supported_interfaces=[AgentInterface(url=url, protocol_binding="JSONRPC", protocol_version="1.0")],
            capabilities=AgentCapabilities(streaming=True),
        )
        async with httpx.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=30) as http:
            yield ClientFactory(ClientConfig(httpx_client=http)).create(card)

    def answer(self, ask: Ask, token: str = "token-of-the-shop") -> Any:
        """Return what a client of a token is answered."""

        async def answered() -> Any:
            async with self.client(token) as client:
                return await ask(client)

        return asyncio.run(answered())


@pytest.fixture
def serving(a2a_site: Site, tmp_path: Path) -> Iterator[Serving]:
    found = Serving(tmp_path, a2a_site)
    yield found
    found.process.terminate()
    found.process.wait()


def get(task_id: str, **arguments: Any) -> Ask:
    return lambda client: client.get_task(GetTaskRequest(id=task_id, **arguments))


def listed(**arguments: Any) -> Ask:
    return lambda client: client.list_tasks(ListTasksRequest(**arguments))


def test_a_caller_gets_its_own_tasks_and_of_no_other_that_it_is_there(a2a_site: Site, serving: Serving) -> None:
    hook = hook_of(a2a_site)
    for uid in (1, 2, 3):
        add_task(a2a_site.engine, uid, context_id=f"context-{uid}")
    hook.complete("task-1", result(), seal=seal)

    found = serving.answer(get("task-1", history_length=1))
    assert (TaskState.TASK_STATE_COMPLETED, "context-1") == (found.status.state, found.context_id)
    assert ["secret one", "secret two"] == [each.parts[0].text for each in found.artifacts]
    assert ["secret done"] == [each.parts[0].text for each in found.history]

    page = serving.answer(listed(page_size=1))
    rest = serving.answer(listed(page_size=1, page_token=page.next_page_token))
    assert (["task-1"], ["task-2"], 2) == ([t.id for t in page.tasks], [t.id for t in rest.tasks], page.total_size)
    assert [0, 2] == [
        len(serving.answer(listed(context_id="context-1", include_artifacts=with_them)).tasks[0].artifacts)
        for with_them in (False, True)
    ]
    working = serving.answer(listed(status=TaskState.TASK_STATE_WORKING))
    assert ["task-2"] == [each.id for each in working.tasks]
    assert [] == list(serving.answer(listed(context_id="context-3")).tasks)

    # Another's task and one that never was are told alike.
    for ask, token in (
        (get("task-3"), "token-of-the-shop"),
        (get("task-9"), "token-of-the-shop"),
        (get("task-1"), "token-of-another"),
        (get("task-1"), "no token"),
        (lambda client: subscribed(client, "task-3"), "token-of-the-shop"),
    ):
        with pytest.raises(TaskNotFoundError, match=r"^Task not found$"):
            serving.answer(ask, token)
    assert ["task-3"] == [each.id for each in serving.answer(listed(), "token-of-another").tasks]
    assert 0 == serving.answer(listed(), "no token").total_size


async def subscribed(client: Client, task_id: str, meanwhile: Callable[[], Any] | None = None) -> list[Any]:
    """Return what a subscription tells until it ends; ``meanwhile`` happens once its first word has come."""
    told = []
    async for each in client.subscribe(SubscribeToTaskRequest(id=task_id)):
        told.append(each)
        if meanwhile and len(told) == 1:
            await asyncio.to_thread(meanwhile)
    return told


def test_a_subscription_tells_the_task_and_then_all_until_its_end(a2a_site: Site, serving: Serving) -> None:
    hook = hook_of(a2a_site)
    add_task(a2a_site.engine)

    def go_on() -> None:
        with a2a_site.engine.begin() as connection:
            connection.execute(update(task).values(state="input_required", revision=2))
        hook.project()
        with a2a_site.engine.begin() as connection:
            connection.execute(update(task).values(state="working", revision=3))
        hook.complete("task-1", result(), seal=seal)
        hook.project()

    told = serving.answer(lambda client: subscribed(client, "task-1", go_on))
    kinds = [each.WhichOneof("payload") for each in told]
    assert ["task", "status_update", "artifact_update", "artifact_update", "status_update"] == kinds
    assert TaskState.TASK_STATE_INPUT_REQUIRED == told[1].status_update.status.state
    assert "secret one" == told[2].artifact_update.artifact.parts[0].text
    assert TaskState.TASK_STATE_COMPLETED == told[4].status_update.status.state
    with pytest.raises(UnsupportedOperationError, match="has ended"):
        serving.answer(lambda client: subscribed(client, "task-1"))


def test_a_callers_mistake_is_told_and_nothing_of_ours(a2a_site: Site, serving: Serving) -> None:
    hook = hook_of(a2a_site)
    for uid in (1, 4):
        hook.complete(add_task(a2a_site.engine, uid), result(), seal=seal)
    with pytest.raises(InvalidParamsError, match="page token was not issued"):
        serving.answer(listed(page_token="made up"))
    with pytest.raises(InvalidParamsError, match="expected 1 to 100"):
        serving.answer(listed(page_size=101))
    with pytest.raises(UnsupportedOperationError):
        serving.answer(lambda client: client.cancel_task(CancelTaskRequest(id="task-1")))
    # A value that does not open: its task is in a list all the same.
    with pytest.raises(InternalError, match=r"^Internal error$"):
        serving.answer(get("task-4"))
    texts = [each.status.message.parts[0].text for each in serving.answer(listed()).tasks]
    assert {"secret done", "The content of this task cannot be shown."} == set(texts)
    log = serving.log.read_text()
    assert "A request could not be answered: ValueError" in log
    assert "secret" not in log
