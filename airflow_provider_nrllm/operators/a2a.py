"""The operators that keep the journal of A2A tasks, check it, and purge what has lost its run (ADR-282)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from enum import StrEnum
from functools import cached_property
from typing import Any

from airflow.providers.common.compat.sdk import AirflowException, AirflowSkipException, BaseOperator, Context

from airflow_provider_nrllm.assets import attach_counts
from airflow_provider_nrllm.exceptions import NrLlmA2AViolationError, NrLlmSchemaError
from airflow_provider_nrllm.hooks.a2a import NrLlmA2AHook
from airflow_provider_nrllm.operators.arguments import checked_page_size


class _A2AOperator(BaseOperator):
    template_fields: Sequence[str] = ("nrllm_conn_id",)
    ui_color = "#d7ecff"

    def __init__(self, *, nrllm_conn_id: str = NrLlmA2AHook.default_conn_name, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.nrllm_conn_id = nrllm_conn_id

    @cached_property
    def hook(self) -> NrLlmA2AHook:
        """The hook that reads and writes."""
        return NrLlmA2AHook(self.nrllm_conn_id)


class NrLlmProjectA2AEventsOperator(_A2AOperator):
    """
    Write the journal of A2A tasks: the events of every task's newest revision that has none yet.

    Writes ``tx_nrllm_a2a_event`` from the committed state and executes nothing. Safe to repeat, to run several
    times at once and to be killed: each event is written once. Rules: ADR-282.

    Returns counts, and attaches them to its outlet assets: the tasks and events written, the tasks another had
    written at the same time, the tasks that were locked, refused or cannot be read, and the longest time from a
    status to its events.

    :param nrllm_conn_id: the Airflow connection to the TYPO3 database
    :param page_size: how many tasks are looked up at once, 1 to 5000
    :raises ValueError: for an invalid page size, when the DAG is parsed
    """

    def __init__(self, *, page_size: int = 500, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.page_size = checked_page_size(page_size)

    def execute(self, context: Context) -> dict[str, Any]:
        """
        Project, and return the counts.

        :raises AirflowException: at the end, if the database refused the events of some tasks
        """
        self.hook.require_tables()
        done = self.hook.project(page_size=self.page_size)
        if done.unreadable:
            self.log.warning(
                "%d tasks were not projected, for a value is not sealed or a state unknown; uid %s",
                len(done.unreadable), ", ".join(map(str, done.unreadable[:10])),
            )  # fmt: skip
        if done.locked:
            self.log.info("%d tasks are locked by another, and are left to the next run", len(done.locked))
        result = {
            "tasks": done.tasks,
            "events": done.events,
            "present": done.present,
            "locked": len(done.locked),
            "refused": len(done.refused),
            "unreadable": len(done.unreadable),
            "lag_seconds": done.lag_seconds,
        }
        self.log.info("Projected: %s", result)
        if done.refused:
            raise AirflowException(
                f"Connection {self.nrllm_conn_id!r}: the database refused the events of {len(done.refused)} tasks, uid "
                f"{', '.join(map(str, done.refused[:10]))}; all others were projected. Look for what the tables do "
                "not take, such as a column that is too narrow, and run this task again."
            )
        attach_counts(self, context, result)
        return result


class NrLlmCheckA2AOperator(_A2AOperator):
    """
    Check that stored A2A tasks and their journal keep the promises of ADR-282.

    Reads only. All that is violated is in one error, with counts and at most ten uids each, and no content.
    That the journal is behind is a warning in the log: a projector mends it.

    Returns counts, and attaches them to its outlet assets: the violations (none, or it fails), and the tasks
    whose end is late.

    :param nrllm_conn_id: the Airflow connection to the TYPO3 database
    :param lag: from when on a task's end is late in the journal
    :raises ValueError: for a lag that is no timedelta of 0 or more, when the DAG is parsed
    """

    def __init__(self, *, lag: timedelta = timedelta(minutes=15), **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.lag = _checked_lag(lag)

    def execute(self, context: Context) -> dict[str, Any]:
        """
        Check, and return the counts.

        :raises NrLlmA2AViolationError: names all that is violated; not retried
        """
        self.hook.require_tables()
        violations, late = self.hook.check(lag=int(self.lag.total_seconds()))
        if late.count:
            self.log.warning("The journal is more than %s behind: %s", self.lag, late)
        if violations:
            raise NrLlmA2AViolationError("; ".join(map(str, violations)))
        counts = {"violations": 0, "late": late.count}
        attach_counts(self, context, counts)
        return counts


class NrLlmSettleA2AOperator(_A2AOperator):
    """
    End the A2A tasks that go on though their run has ended, so that no client waits for them for ever.

    Writes tasks and nothing else: canceled after a cancelled run, else failed. Safe to repeat and to run beside
    the projector, which tells clients of it. Rules: ADR-282.

    Returns counts, and attaches them to its outlet assets: the tasks canceled and failed, and those that another held
    locked, which the next run ends.

    :param nrllm_conn_id: the Airflow connection to the TYPO3 database
    :param lag: how long ago a run must have ended: the extension may be about to end its task
    :raises ValueError: for a lag that is no timedelta of 0 or more, when the DAG is parsed
    """

    def __init__(self, *, lag: timedelta = timedelta(minutes=15), **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.lag = _checked_lag(lag)

    def execute(self, context: Context) -> dict[str, Any]:
        """Settle, and return the counts."""
        self.hook.require_tables()
        done = self.hook.settle(lag=int(self.lag.total_seconds()))
        self.log.info("Ended after their runs: %d tasks canceled, %d failed", done.canceled, done.failed)
        counts = {"canceled": done.canceled, "failed": done.failed, "locked": done.locked}
        attach_counts(self, context, counts)
        return counts


class OnMissingTables(StrEnum):
    """The ways to go on where an installation has no tables of the A2A server role."""

    FAIL = "fail"
    SKIP = "skip"


class NrLlmPurgeA2AOperator(_A2AOperator):
    """
    Delete A2A tasks that have lost their run, with their events, and events that have lost their task.

    The extension purges runs by age; what belongs to them goes with this. Deletes nothing of a run that is
    there. Safe to repeat and to run beside the projector. Rules: ADR-282.

    Returns counts, and attaches them to its outlet assets: the tasks and events deleted.

    :param nrllm_conn_id: the Airflow connection to the TYPO3 database
    :param page_size: the most tasks, or events, of a transaction, 1 to 5000
    :param on_missing_tables: ``fail`` where the installation has no A2A tables, or ``skip``, for a DAG that also
        runs on installations without them
    :raises ValueError: for an invalid page size or action, when the DAG is parsed
    """

    def __init__(self, *, page_size: int = 100, on_missing_tables: str = OnMissingTables.FAIL, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if on_missing_tables not in set(OnMissingTables):
            raise ValueError(f"on_missing_tables is {on_missing_tables!r}; expected {', '.join(OnMissingTables)}")
        self.page_size = checked_page_size(page_size)
        self.on_missing_tables = str(on_missing_tables)

    def execute(self, context: Context) -> dict[str, Any]:
        """
        Delete, and return the counts.

        :raises NrLlmSchemaError: where a table is missing; not retried
        :raises AirflowSkipException: where all A2A tables are missing, with ``skip``
        """
        try:
            self.hook.require_tables()
        except NrLlmSchemaError:
            if self.on_missing_tables == OnMissingTables.SKIP and not self.hook.has_tables():
                raise AirflowSkipException("This installation has no A2A tables: there is nothing to purge.") from None
            raise
        done = self.hook.delete_lost(page_size=self.page_size)
        self.log.info("Deleted %d tasks and %d events", done.tasks, done.events)
        counts = {"tasks": done.tasks, "events": done.events}
        attach_counts(self, context, counts)
        return counts


def _checked_lag(lag: object) -> timedelta:
    if not isinstance(lag, timedelta) or lag < timedelta(0):
        raise ValueError(f"lag is {lag!r}; expected a timedelta of 0 or more")
    return lag
