"""NrLlmA2ATaskTrigger: waits in the triggerer for the end of an A2A task."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from airflow.triggers.base import BaseTrigger, TriggerEvent
from asgiref.sync import sync_to_async

from airflow_provider_nrllm.a2a.rules import TERMINAL, State
from airflow_provider_nrllm.database.errors import kind_of, may_pass
from airflow_provider_nrllm.hooks.a2a import NrLlmA2AHook


class NrLlmA2ATaskTrigger(BaseTrigger):
    """
    Ask for the state of an A2A task from time to time, until it has ended or there is something to look into.

    Keeps nothing but its arguments, so that another triggerer goes on where one was killed. Reads the state alone,
    in a thread: other triggers do not wait for the database. A database that cannot be reached is asked again.

    Its event says what was seen; what is true is for the task to find out, which wakes up on it.

    :param a2a_task_id: the id of the task, as its client has it
    :param nrllm_conn_id: the Airflow connection to the TYPO3 database
    :param poke_interval: the time between two questions, in seconds
    """

    def __init__(self, *, a2a_task_id: str, nrllm_conn_id: str, poke_interval: float) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.a2a_task_id = a2a_task_id
        self.nrllm_conn_id = nrllm_conn_id
        self.poke_interval = poke_interval

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return what a triggerer makes the trigger of anew."""
        return (
            "airflow_provider_nrllm.triggers.a2a.NrLlmA2ATaskTrigger",
            {
                "a2a_task_id": self.a2a_task_id,
                "nrllm_conn_id": self.nrllm_conn_id,
                "poke_interval": self.poke_interval,
            },
        )

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Yield one event, when the task has ended or cannot be asked about."""
        told = False
        while True:
            try:
                state = await sync_to_async(self._state, thread_sensitive=False)()
            except Exception as error:
                if not may_pass(error):
                    # The task meets it too, and says in its own log what to do.
                    yield _seen(kind_of(error))
                    return
                if not told:
                    told = True
                    self.log.warning(
                        "Connection %r cannot be asked (%s); it is asked again every %s seconds",
                        self.nrllm_conn_id, kind_of(error), self.poke_interval,
                    )  # fmt: skip
            else:
                told = False
                if state in TERMINAL:
                    yield _seen(state.value)
                    return
            await asyncio.sleep(self.poke_interval)

    def _state(self) -> State:
        return NrLlmA2AHook(self.nrllm_conn_id).state(self.a2a_task_id)


def _seen(what: str) -> TriggerEvent:
    return TriggerEvent({"seen": what})  # type: ignore[no-untyped-call]
