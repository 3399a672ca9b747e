"""The end of a run and its task, in one transaction (ADR-282)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from airflow.providers.common.compat.sdk import AirflowFailException
from sqlalchemy import update
from sqlalchemy.engine import Connection

from airflow_provider_nrllm.a2a import rules as a2a
from airflow_provider_nrllm.a2a.removal import empty_events
from airflow_provider_nrllm.a2a.rows import (
    STATEMENT_BYTES,
    end_run,
    lock_run_and_task,
    present,
    state_of,
    task,
    without_content,
    written_size,
)
from airflow_provider_nrllm.a2a.rules import (
    AGREES,
    GOES_ON,
    KEEPS,
    OPEN,
    RUNS,
    Ceiling,
    Decision,
    Reason,
    RunState,
    State,
    TaskNotFoundError,
)
from airflow_provider_nrllm.a2a.sealed import Sealed, UnsealedValueError, Unwritable, sealed_values, stored_list
from airflow_provider_nrllm.database.errors import may_pass
from airflow_provider_nrllm.database.site import SiteDatabase

log = logging.getLogger(__name__)

Offer = Sealed | Unwritable

#: What MEDIUMTEXT takes.
MEDIUMTEXT_BYTES: Final = 16_777_215


@dataclass(frozen=True, slots=True)
class Completion:
    """
    How a task stands after it was to end.

    :param state: the task's state
    :param reason: why it has no stored result; empty where it has one, or made none
    :param changed: False where nothing was written: it had ended before, or its run is another's now
    """

    task_id: str
    state: State
    reason: str
    changed: bool


@dataclass(frozen=True, slots=True)
class Attempt:
    """
    One attempt to end a run and its task, on one connection, in one transaction.

    :param task_id: the task
    :param claimed_by: the worker that asks; None where it runs under no lease
    :param ceiling: what returns the installation's ceiling, asked under the lock; None to go by the row alone
    :param now: the time of the status, in Unix seconds; None for the present, once the locks are had
    :param figures: what else to set of the run's row, by column
    :param largest_statement: how many bytes a statement may have; None for no limit
    """

    task_id: str
    claimed_by: str | None = None
    ceiling: Callable[[], str] | None = None
    now: int | None = None
    figures: Mapping[str, Any] = field(default_factory=dict)
    largest_statement: int | None = None

    def locked(self, connection: Connection, alive: tuple[str, ...] = RUNS) -> tuple[RunState, Ceiling, Any]:
        """Lock the run and then the task; return how the run stands, the ceiling, and the task's row."""
        run_row, task_row = lock_run_and_task(connection, self.task_id)
        status, claim = (None, "") if run_row is None else (run_row.status, run_row.claimed_by)
        # ADR-282: the ceiling is read again under the lock, and the strictest of all that is known holds.
        known = (task_row.ceiling,) if self.ceiling is None else (task_row.ceiling, self.ceiling())
        return a2a.run_state(status, claim, self.claimed_by, alive), a2a.strictest(*known), task_row

    def unchanged(self, task_row: Any) -> Completion:
        """Return how the task stands, nothing having been written."""
        return Completion(self.task_id, state_of(task_row), task_row.reason, changed=False)

    def write(
        self, connection: Connection, run_state: RunState, ceiling: Ceiling, task_row: Any, decision: Decision
    ) -> Completion:
        """Write what was decided: the task, and its run with it."""
        if decision.state is None or task_row.state not in OPEN:
            # Nothing comes after a terminal state, and a lost run is another's to end.
            return self.unchanged(task_row)
        stored = decision.stored or Sealed()
        history = _history(task_row, ceiling, decision, stored)
        artifacts = stored_list(stored.artifacts if decision.state is State.COMPLETED else None)
        content = {"status_message": stored.message, "artifacts": artifacts}
        if history != task_row.history:
            content["history"] = history
        now = present(self.now)
        values = {
            "state": decision.state.value,
            "revision": task_row.revision + 1,
            "ceiling": ceiling.value,
            "reason": decision.reason.value,
            "tstamp": now,
        }
        for some in _statements(values, content, self.largest_statement):
            connection.execute(update(task).where(task.c.uid == task_row.uid).values(some))
        if ceiling not in KEEPS or a2a.strictest(task_row.ceiling) is not ceiling:
            # What was told under a looser ceiling does not outlive it.
            empty_events(connection, [], [task_row.uid])
        if run_state is RunState.ALIVE:
            end_run(connection, task_row.run, AGREES[decision.state][0], now, self.figures)
        return Completion(self.task_id, decision.state, decision.reason.value, changed=True)


def complete(database: SiteDatabase, attempt: Attempt, result: Offer, redacted: Offer | None) -> Completion:
    """
    Complete a run and its task with the result; where that cannot be written, make both failed.

    What may pass, such as a deadlock, a lock wait time-out or a lost connection, is passed on with nothing written:
    the same again may succeed.
    """
    writing = False
    try:
        with database.transaction() as connection:
            run_state, ceiling, row = attempt.locked(connection)
            decision = a2a.completion(run_state, ceiling, result, redacted)
            writing = decision.stored is not None
            done = attempt.write(connection, run_state, ceiling, row, decision)
        if done.changed and decision.reason is Reason.NOT_STORED:
            unsealed = next(offer.error for offer in (redacted, result) if isinstance(offer, Unwritable))
            log.warning("The result of task %s could not be sealed: %s", attempt.task_id, unsealed)
        return done
    except Exception as error:
        if not writing or may_pass(error) or isinstance(error, AirflowFailException):
            raise
        # The text of the error may hold content.
        log.warning("The result of task %s could not be stored: %s", attempt.task_id, type(error).__name__)
    # No wider than the first: between the two, the run may have become another's.
    return fail(database, attempt, Sealed(), None, Reason.NOT_STORED, alive=RUNS)


def fail(
    database: SiteDatabase,
    attempt: Attempt,
    said: Offer,
    redacted: Offer | None,
    reason: Reason = Reason.UNSAID,
    alive: tuple[str, ...] = GOES_ON,
) -> Completion:
    """
    Fail a run that has not ended, and its task with it; or a task after its run.

    A message that the database does not take is left out, for to have failed is more important.
    """
    if isinstance(said, Sealed) and said.message is not None:
        try:
            return _fail(database, attempt, said, redacted, reason, alive)
        except Exception as error:
            if may_pass(error) or isinstance(error, AirflowFailException | TaskNotFoundError):
                raise
            # The text of the error may hold content.
            log.warning("The message of task %s could not be stored: %s", attempt.task_id, type(error).__name__)
        said, redacted = Sealed(), None
    return _fail(database, attempt, said, redacted, reason, alive)


def _fail(
    database: SiteDatabase,
    attempt: Attempt,
    said: Offer,
    redacted: Offer | None,
    reason: Reason,
    alive: tuple[str, ...],
) -> Completion:
    with database.transaction() as connection, without_content():
        run_state, ceiling, row = attempt.locked(connection, alive)
        decision = failure(run_state, ceiling, said, redacted, reason)
        return attempt.write(connection, run_state, ceiling, row, decision)


def failure(run_state: RunState, ceiling: Ceiling, said: Offer, redacted: Offer | None, reason: Reason) -> Decision:
    """
    Return how a run ends that has failed: with its message, as far as the ceiling keeps it.

    A message that cannot be kept or sealed is left out, for to have failed is more important.
    """
    if run_state is RunState.LOST:
        return Decision(None)
    if run_state is RunState.CANCELLED:
        return Decision(State.CANCELED)
    offer = a2a.kept(ceiling, said, redacted)
    kept = offer if isinstance(offer, Sealed) and not reason else None
    return Decision(State.FAILED, kept, reason)


def _statements(
    values: Mapping[str, Any], content: Mapping[str, str | None], largest: int | None
) -> Iterator[Mapping[str, Any]]:
    """
    Yield what each statement sets: all at once, or value by value where the server takes no statement of all.

    :raises ValueError: for a value that no statement or no column takes; the server would hang up or cut it off
    """
    sizes = {name: written_size(value) for name, value in content.items() if value is not None}
    most = MEDIUMTEXT_BYTES if largest is None else min(MEDIUMTEXT_BYTES, largest - STATEMENT_BYTES)
    if any(size > most for size in sizes.values()):
        raise ValueError("a value is larger than the database takes")
    if largest is None or sum(sizes.values()) + STATEMENT_BYTES <= largest:
        yield {**values, **content}
    else:
        yield values
        yield from ({name: value} for name, value in content.items())


def _history(task_row: Any, ceiling: Ceiling, decision: Decision, stored: Sealed) -> str | None:
    """Return the history to store: what was there, as far as the ceiling still keeps it, and what is new."""
    keeps = ceiling in (Ceiling.FULL, Ceiling.REDACTED) and decision.reason is not Reason.NOT_RETAINABLE
    if not keeps:
        return None
    # What was stored under a looser ceiling may hold what this one forbids.
    held = task_row.history if a2a.strictest(task_row.ceiling) is ceiling else None
    try:
        before = sealed_values(held)
    except UnsealedValueError:
        before = None
    if before is None and not stored.history:
        return None
    return stored_list((*(before or ()), *stored.history))
