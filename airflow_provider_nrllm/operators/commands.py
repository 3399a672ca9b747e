"""The extension's purge commands, run by the TYPO3 command line."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Any

from airflow.providers.common.compat.sdk import AirflowException, BaseOperator, Context

from airflow_provider_nrllm.exceptions import NrLlmCommandError
from airflow_provider_nrllm.operators.templates import is_template
from airflow_provider_nrllm.purge import Category, retention_days

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
    :raises ValueError: for a category, days or command that cannot be, when the DAG is parsed
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
        if not is_template(days):
            retention_days(days)
        if not is_template(command):
            _words(command)
        self.category = str(category)
        self.days = days
        self.command = command
        self.cwd = cwd
        self._process: subprocess.Popen[str] | None = None

    def execute(self, context: Context) -> None:  # noqa: ARG002
        """
        Run the command to its end.

        :raises NrLlmCommandError: where it refuses an option or cannot be started; not retried
        :raises AirflowException: where it fails otherwise
        """
        try:
            words = [*_words(self.command), f"nrllm:{self.category}:purge", f"--days={retention_days(self.days)}"]
        except ValueError as error:
            raise NrLlmCommandError(str(error)) from error
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
            # A list of words, and no shell: nothing in them is taken for syntax.
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
            for line in process.stdout or ():
                self.log.info("%s", line.rstrip())
        return process.returncode

    def on_kill(self) -> None:
        """End the command and all it has started."""
        if self._process is not None and self._process.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGTERM)


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
