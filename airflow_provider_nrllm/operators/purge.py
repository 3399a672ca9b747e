"""NrLlmPurgeGuardOperator and NrLlmPurgeOperator: purge what has an outcome, and nothing else."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

from airflow.providers.common.compat.sdk import AirflowException, AirflowSkipException, BaseOperator, Context

from airflow_provider_nrllm.exceptions import NrLlmCommandError, NrLlmSettingError, NrLlmUnansweredError
from airflow_provider_nrllm.hooks.nrllm import NrLlmHook
from airflow_provider_nrllm.operators.arguments import checked_machine_users, is_resolved_later
from airflow_provider_nrllm.outcomes.partitions import DAY, MAX_DAYS, window_seconds
from airflow_provider_nrllm.purge.reading import PurgeReader
from airflow_provider_nrllm.purge.rules import AtRisk, Category, OnUnanswered, retention_days, settings_to_mend


class NrLlmPurgeGuardOperator(BaseOperator):
    """
    Hold a purge back while it would delete runs that have no outcome yet.

    Looks at the runs that ``nrllm:privacy:purge`` would delete now, and finds those that have a write and no
    observed outcome, and those that changed a record of a run that has none yet: without their events, what they
    changed would count as a person's edit. Reads only, and is safe to repeat. With nothing at risk it passes. Also
    warns of settings that can only lead to ``unknown``. Rules: ADR-176, ADR-185.

    Returns, and where it skips pushes as its ``return_value``, plain counts: the retention in days, the moment
    before which deleted runs were made, how many are unanswered, how many of these have settled, the date by
    which the last of the others will (None if one goes on), how many runs with an outcome are needed by runs
    without, and the settings to mend.

    :param nrllm_conn_id: the Airflow connection to the TYPO3 database
    :param retention: what the purge gets as ``--days``: whole days or a timedelta, at least 1 day (templated)
    :param on_unanswered: ``skip`` this task, and so what comes after it by the default trigger rule; ``fail``
        with the figures, not retried; or ``warn`` and go on
    :param window: how long the derivation watches a record: whole days or a timedelta, at least 1 day
    :param partition: how long a partition of the derivation's schedule is
    :param outcome_retention: how long call outcomes are kept: the retention that is set for telemetry, by which
        ``nrllm:privacy:purge`` deletes them unless it gets ``--days``; None: as ``retention`` (templated)
    :param margin: how much later than this task the purge may look at the clock
    :param machine_users: those of the derivation
    :raises ValueError: for an invalid retention, window, action or list, when the DAG is parsed
    """

    template_fields: Sequence[str] = ("nrllm_conn_id", "retention", "outcome_retention")
    ui_color = "#ffe9c9"

    def __init__(
        self,
        *,
        nrllm_conn_id: str = NrLlmHook.default_conn_name,
        retention: int | str | timedelta = 30,
        on_unanswered: str = OnUnanswered.SKIP,
        window: int | timedelta = 7,
        partition: timedelta = timedelta(days=1),
        outcome_retention: int | str | timedelta | None = None,
        margin: timedelta = timedelta(0),
        machine_users: Sequence[str] = (),
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        window_seconds(window)
        for days in (retention, outcome_retention):
            if days is not None and not is_resolved_later(days):
                retention_days(days)
        if on_unanswered not in set(OnUnanswered):
            raise ValueError(f"on_unanswered is {on_unanswered!r}; expected {', '.join(OnUnanswered)}")
        for name, length in (("partition", partition), ("margin", margin)):
            if not isinstance(length, timedelta) or not timedelta(0) <= length <= timedelta(days=MAX_DAYS):
                raise ValueError(f"{name} is {length!r}; expected a timedelta of 0 to {MAX_DAYS} days")
        self.nrllm_conn_id = nrllm_conn_id
        self.retention = retention
        self.on_unanswered = str(on_unanswered)
        self.window = window
        self.partition = partition
        self.outcome_retention = outcome_retention
        self.margin = margin
        self.machine_users = checked_machine_users(machine_users)

    def execute(self, context: Context) -> dict[str, Any]:
        """
        Look at what the purge would take, and return the figures.

        :raises AirflowSkipException: where runs are at risk, with ``skip``
        :raises NrLlmUnansweredError: where runs are at risk, with ``fail``; not retried
        """
        hook = NrLlmHook(self.nrllm_conn_id, machine_users=self.machine_users, statement_timeout=self.execution_timeout)
        reader = PurgeReader(hook.database, machine_users=self.machine_users)
        now, days = int(time.time()), _days(self.retention)
        made_before = now - days * DAY + int(self.margin.total_seconds())
        risk = reader.at_risk(made_before=made_before, window=window_seconds(self.window), now=now)
        figures: dict[str, Any] = {
            "retention_days": days,
            "made_before": _date(made_before),
            "unanswered_runs": risk.settled + risk.unsettled,
            "settled": risk.settled,
            "not_settled": risk.unsettled,
            "settled_by": None if risk.settles_by is None else _date(risk.settles_by),
            "needed_by_others": risk.needed,
            "settings_to_mend": self._settings_to_mend(reader, now, days),
        }
        for sentence in figures["settings_to_mend"]:
            self.log.warning("Connection %r: %s", self.nrllm_conn_id, sentence)
        if not risk.total:
            self.log.info("Nothing is at risk: %s", figures)
            return figures
        message = f"Connection {self.nrllm_conn_id!r}: {_at_risk(risk, figures)}"
        if self.on_unanswered == OnUnanswered.FAIL:
            raise NrLlmUnansweredError(message)
        if self.on_unanswered == OnUnanswered.SKIP:
            # A task that skips returns nothing.
            context["ti"].xcom_push(key="return_value", value=figures)
            # Airflow's own line about a skipped task does not say why.
            self.log.warning("%s The purge is skipped.", message)
            raise AirflowSkipException(message)
        self.log.warning("%s The purge goes on.", message)
        return figures

    def _settings_to_mend(self, reader: PurgeReader, now: int, days: int) -> list[str]:
        oldest = reader.oldest_history()
        kept = days if self.outcome_retention in (None, "", "None") else _days(self.outcome_retention)
        return settings_to_mend(
            window=window_seconds(self.window),
            partition=int(self.partition.total_seconds()),
            retention=days * DAY,
            outcome_retention=kept * DAY,
            history=None if oldest is None else now - oldest,
        )


def _days(retention: int | str | timedelta | None) -> int:
    """
    Return a rendered retention in days.

    :raises NrLlmSettingError: where it is none; not retried
    """
    try:
        return retention_days(retention)  # type: ignore[arg-type]
    except ValueError as error:
        raise NrLlmSettingError(str(error)) from error


#: The last second that a date can tell.
_LAST_SECOND = 253402300799


def _date(second: int) -> str:
    second = min(second, _LAST_SECOND)
    return datetime.fromtimestamp(second, UTC).isoformat()


def _at_risk(risk: AtRisk, figures: dict[str, Any]) -> str:
    settles = f"the last by {figures['settled_by']}" if figures["settled_by"] else "one of them goes on"
    waiting = f"{risk.unsettled} have no outcome and have not settled yet ({settles}): wait" if risk.unsettled else ""
    ready = f"{risk.settled} have settled and have no outcome: derive it, also by a backfill" if risk.settled else ""
    needed = (
        f"{risk.needed} have an outcome, but also changed a record of a run that has none yet, for which their changes "
        "would count as a person's: answer that run first"
        if risk.needed
        else ""
    )
    return (
        f"The purge would delete {risk.total} runs with writes, made before {figures['made_before']}, too early: "
        f"{'; '.join(filter(None, (ready, waiting, needed)))}."
    )


#: What a TYPO3 command returns for an option it does not take.
BAD_OPTION = 2


class NrLlmPurgeOperator(BaseOperator):
    """
    Run one of nr_llm's purge commands, ``nrllm:<category>:purge --days=N``, by the TYPO3 command line.

    Deletes by age what the command deletes, and is safe to repeat. No shell is involved: the words of
    ``command`` and those of the purge are the arguments of the process. Its output goes to the task's log.
    Exit code 2, TYPO3's answer to a bad option, and a program that cannot be started are not retried.

    :param category: ``privacy``, ``telemetry``, ``session`` or ``governance``
    :param days: what is older is deleted: whole days or a timedelta, at least 1 day (templated)
    :param command: the TYPO3 command line, as a list of words or as a text that is split as a shell would, so
        that ``ssh``, ``docker exec`` or ``kubectl exec`` may stand in front (templated)
    :param cwd: the directory to run it in; None: the worker's (templated)
    :raises ValueError: for an invalid category, days or command, when the DAG is parsed
    """

    template_fields: Sequence[str] = ("days", "command", "cwd")
    ui_color = "#f3d9d9"

    def __init__(
        self,
        *,
        category: str,
        days: int | str | timedelta = 30,
        command: str | Sequence[str] = "vendor/bin/typo3",
        cwd: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if category not in set(Category):
            raise ValueError(f"category is {category!r}; expected {', '.join(Category)}")
        if not is_resolved_later(days):
            retention_days(days)
        if not is_resolved_later(command):
            _words(command)
        self.category = str(category)
        self.days = days
        self.command = command
        self.cwd = cwd
        self._process: subprocess.Popen[str] | None = None

    def execute(self, context: Context) -> None:  # noqa: ARG002
        """
        Run the command to its end.

        :raises NrLlmSettingError: where an argument was rendered to what it cannot be; not retried
        :raises NrLlmCommandError: where it refuses an option or cannot be started; not retried
        :raises AirflowException: where it fails otherwise
        """
        try:
            words = [*_words(self.command), f"nrllm:{self.category}:purge", f"--days={retention_days(self.days)}"]
        except ValueError as error:
            raise NrLlmSettingError(str(error)) from error
        self.log.info("Running %s", shlex.join(words))
        exit_code = self._run(words)
        if exit_code == BAD_OPTION:
            raise NrLlmCommandError(
                f"{shlex.join(words)} ended with exit code 2: an option it does not take. Expected a command of "
                "nr_llm that takes --days; its output is above."
            )
        if exit_code:
            raise AirflowException(f"{shlex.join(words)} ended with exit code {exit_code}; its output is above.")

    def _run(self, words: Sequence[str]) -> int:
        try:
            # A list of words, and no shell: nothing in them is read as syntax.
            process = subprocess.Popen(  # noqa: S603
                words,
                cwd=self.cwd or None,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                start_new_session=True,
            )
        except OSError as error:
            raise NrLlmCommandError(
                f"{words[0]!r} cannot be started: {error}. Expected the path of TYPO3's command line on the "
                "worker, such as /var/www/site/vendor/bin/typo3, or a program in front of it, such as ssh."
            ) from error
        self._process = process
        with process:
            try:
                for line in process.stdout or ():
                    self.log.info("%s", line.rstrip())
                process.wait()
            except BaseException:
                # Airflow's execution_timeout too: leaving the block waits for the end of the command.
                self.on_kill()
                raise
        return process.returncode

    def on_kill(self) -> None:
        """End the command and all it has started: first it may clean up, for ten seconds at most."""
        if self._process is None or self._process.returncode is not None:
            return
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(timeout=_CLEAN_UP)
            # What it started may live on when the command itself has ended.
            os.killpg(self._process.pid, signal.SIGKILL)


#: How long a command that is stopped may take to clean up, in seconds.
_CLEAN_UP = 10


def _words(command: str | Sequence[str]) -> list[str]:
    """
    Return the words of a command.

    :raises ValueError: where there is none, or a quote is not closed
    """
    try:
        words = shlex.split(command) if isinstance(command, str) else [str(word) for word in command]
    except ValueError as error:
        raise ValueError(f"command is {command!r}: {error}") from error
    if not words or not words[0]:
        raise ValueError(f"command is {command!r}; expected TYPO3's command line, such as vendor/bin/typo3")
    return words
