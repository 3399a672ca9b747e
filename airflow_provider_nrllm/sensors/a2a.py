"""NrLlmA2ATaskSensor: waits for the end of an A2A task (ADR-282)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any

from airflow.providers.common.compat.sdk import BaseSensorOperator, Context, PokeReturnValue, conf

from airflow_provider_nrllm.a2a.rules import TERMINAL, TaskNotFoundError
from airflow_provider_nrllm.exceptions import NrLlmA2ATaskNotFoundError
from airflow_provider_nrllm.hooks.a2a import NrLlmA2AHook
from airflow_provider_nrllm.triggers.a2a import NrLlmA2ATaskTrigger


class NrLlmA2ATaskSensor(BaseSensorOperator):
    """
    Wait until an A2A task has ended, and return its state: ``completed``, ``failed``, ``canceled`` or ``rejected``.

    Reads the state and nothing else; the content of the task is for who may open it. Succeeds with whatever end;
    branch on the returned state. Rules: ADR-282.

    :param a2a_task_id: the id of the task, as its client has it (templated)
    :param nrllm_conn_id: the Airflow connection to the TYPO3 database (templated)
    :param deferrable: whether to wait in the triggerer, which takes no worker's slot; by default as
        ``[operators] default_deferrable`` says
    :param kwargs: those of Airflow's sensors, such as ``poke_interval``, in seconds, and ``timeout``
    """

    template_fields: Sequence[str] = ("a2a_task_id", "nrllm_conn_id")
    ui_color = "#d7ecff"

    def __init__(
        self,
        *,
        a2a_task_id: str,
        nrllm_conn_id: str = NrLlmA2AHook.default_conn_name,
        deferrable: bool = conf.getboolean("operators", "default_deferrable", fallback=False),
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.a2a_task_id = a2a_task_id
        self.nrllm_conn_id = nrllm_conn_id
        self.deferrable = deferrable

    @cached_property
    def hook(self) -> NrLlmA2AHook:
        """The hook that reads."""
        return NrLlmA2AHook(self.nrllm_conn_id)

    def execute(self, context: Context) -> Any:
        """
        Wait, and return the state.

        :raises NrLlmA2ATaskNotFoundError: where there is no such task, or it went with its run; not retried
        """
        self.hook.require_tables()
        if not self.deferrable:
            return super().execute(context)
        return self._wait(context, datetime.now(UTC) + timedelta(seconds=self.timeout))

    def execute_complete(self, context: Context, event: Any = None, *, until: str) -> Any:
        """
        Look again after the trigger has seen something, and return the state if the task has ended.

        :param event: what the trigger saw
        :param until: when the sensor's timeout ends, in ISO 8601
        """
        self.log.info("The trigger saw: %s", (event or {}).get("seen"))
        return self._wait(context, datetime.fromisoformat(until))

    def _wait(self, context: Context, until: datetime) -> Any:
        found = self.poke(context)
        if found.is_done:
            return found.xcom_value
        return self.defer(
            trigger=NrLlmA2ATaskTrigger(
                a2a_task_id=self.a2a_task_id, nrllm_conn_id=self.nrllm_conn_id, poke_interval=self.poke_interval
            ),
            method_name="execute_complete",
            kwargs={"until": until.isoformat()},
            timeout=max(until - datetime.now(UTC), timedelta(0)),
        )

    def poke(self, context: Context) -> PokeReturnValue:  # noqa: ARG002 - Airflow hands it in
        """Return whether the task has ended, and its state."""
        try:
            state = self.hook.state(self.a2a_task_id)
        except TaskNotFoundError:
            raise NrLlmA2ATaskNotFoundError(
                f"Connection {self.nrllm_conn_id!r} has no A2A task {self.a2a_task_id!r}, or it went with its run. "
                "Expected the id that nr_llm gave the client; where runs are purged soon, wait for it sooner."
            ) from None
        self.log.info(
            "A2A task %s is %s", self.a2a_task_id, state.value or "in a state that this version does not know"
        )
        return PokeReturnValue(is_done=state in TERMINAL, xcom_value=state.value)
