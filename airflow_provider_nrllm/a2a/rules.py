"""
The rules of an A2A task's result (ADR-282), as functions of values.

A task is what a remote client sees of a run. Its result (artifacts and final status message) is stored with
the run's completion, or the run is not completed. What may be stored is the answer ceiling's to say.

Stored content is *sealed*: opaque text that only the installation can open. Nothing here opens it. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from airflow_provider_nrllm.a2a.sealed import Sealed, UnreadableError, Unwritable


class State(StrEnum):
    """The states of a task, as they are stored; unspecified is one that this version does not know."""

    SUBMITTED = "submitted"
    WORKING = "working"
    INPUT_REQUIRED = "input_required"
    AUTH_REQUIRED = "auth_required"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELED = "canceled"
    REJECTED = "rejected"
    UNSPECIFIED = ""


#: Nothing comes after one of these.
TERMINAL: Final = (State.COMPLETED, State.FAILED, State.CANCELED, State.REJECTED)

#: A task in one of these goes on. A state of a newer version is in neither list: it may be an end.
OPEN: Final = (State.SUBMITTED, State.WORKING, State.INPUT_REQUIRED, State.AUTH_REQUIRED)

#: The run's statuses: a result is made by a running run only; a run that goes on may fail.
RUNS: Final = ("running",)
GOES_ON: Final = ("queued", "running", "waiting_for_approval", "waiting_for_input")

#: The run's statuses that agree with a task's state. The run's ``cancelled`` has two Ls.
AGREES: Final[Mapping[State, tuple[str, ...]]] = {
    State.SUBMITTED: GOES_ON,
    State.WORKING: GOES_ON,
    State.INPUT_REQUIRED: GOES_ON,
    State.AUTH_REQUIRED: GOES_ON,
    State.COMPLETED: ("completed",),
    State.FAILED: ("failed",),
    State.CANCELED: ("cancelled",),
    State.REJECTED: ("failed", "cancelled"),
}


class Ceiling(StrEnum):
    """The answer ceilings: how much of an answer the installation may keep, the loosest first."""

    FULL = "full"
    REDACTED = "redacted"
    METADATA = "metadata"
    NONE = "none"


class Reason(StrEnum):
    """Why a task has no stored result; it is never set beside one."""

    UNSAID = ""
    NOT_RETAINABLE = "RESULT_NOT_RETAINABLE"
    NOT_STORED = "RESULT_NOT_STORED"


class RunState(StrEnum):
    """The state of a run after its result was made."""

    ALIVE = "alive"
    LOST = "lost"
    FAILED = "failed"
    CANCELLED = "cancelled"


class UnknownStateError(UnreadableError):
    """A row has a state that this version does not know."""


class TaskNotFoundError(LookupError):
    """There is no such task, or it went with its run (A2A error -32001)."""

    code: Final = -32001


def strictest(*names: str) -> Ceiling:
    """Return the strictest of the named ceilings; a name this version does not know keeps nothing."""
    order = list(Ceiling)
    return max((Ceiling(name) if name in order else Ceiling.NONE for name in names), key=order.index)


def as_strict_as(ceiling: Ceiling) -> tuple[str, ...]:
    """Return the names of the ceilings that keep no more than ``ceiling``."""
    order = list(Ceiling)
    return tuple(other.value for other in order[order.index(ceiling) :])


#: The names of the ceilings under which content is kept.
KEEPS: Final = (Ceiling.FULL.value, Ceiling.REDACTED.value)


def answer_ceiling(installation: str, *tightened: str) -> Ceiling:
    """
    Return how much of an answer may be kept, by the installation's privacy setting and what tightens it.

    The setting's default ``metadata`` is about prompts and telemetry, and lets answers be kept in full: as a ceiling
    it would lose every result.

    :param installation: the installation's global setting
    :param tightened: the ceilings of the provider and of the task
    """
    return strictest(Ceiling.FULL if installation == Ceiling.METADATA else installation, *tightened)


def run_state(status: str | None, claim: str, claimed_by: str | None, alive: tuple[str, ...] = RUNS) -> RunState:
    """
    Return what has become of a run, by its locked row.

    Lost is a run that has gone, is queued again, claimed by another, waiting for a person, or completed already.

    :param status: the run's status; None where it has no row
    :param claim: the worker that holds the run by its row; empty where it runs under no lease
    :param claimed_by: the worker that asks; None where it runs under no lease, so that no worker may hold the run
    :param alive: the statuses from which the run may end so
    """
    if status == "cancelled":
        return RunState.CANCELLED
    if status == "failed":
        return RunState.FAILED
    if status in alive and (claimed_by or "") == claim:
        return RunState.ALIVE
    return RunState.LOST


@dataclass(frozen=True, slots=True)
class Decision:
    """The end of a task: its state (None: nothing is written), the stored result, or the reason for none."""

    state: State | None
    stored: Sealed | None = None
    reason: Reason = Reason.UNSAID


def completion(
    run: RunState, ceiling: Ceiling, result: Sealed | Unwritable, redacted: Sealed | Unwritable | None = None
) -> Decision:
    """
    Return how a run ends that has made its result (ADR-282, the decision table).

    :param run: what has become of the run meanwhile, and
    :param ceiling: the answer ceiling, both read under the run's lock
    :param result: the whole result
    :param redacted: its redacted form, made elsewhere; None where none was handed in
    """
    if run is RunState.LOST:
        return Decision(None)
    if run is RunState.CANCELLED:
        return Decision(State.CANCELED)
    if run is RunState.FAILED:
        return Decision(State.FAILED)
    offer = kept(ceiling, result, redacted)
    if offer is None:
        return Decision(State.FAILED, reason=Reason.NOT_RETAINABLE)
    if isinstance(offer, Unwritable):
        return Decision(State.FAILED, reason=Reason.NOT_STORED)
    return Decision(State.COMPLETED, stored=offer)


def settled(status: str | None) -> Decision:
    """
    Return how a task ends whose run ended without it: without a result, since none was handed in.

    :param status: the run's status; None where it has no row
    """
    if status == "cancelled":
        return Decision(State.CANCELED)
    if status == "failed":
        return Decision(State.FAILED)
    if status == "completed":
        # Completed by another way than with its result: a client is not told of a success without one.
        return Decision(State.FAILED, reason=Reason.NOT_STORED)
    return Decision(None)


def kept(
    ceiling: Ceiling, result: Sealed | Unwritable, redacted: Sealed | Unwritable | None
) -> Sealed | Unwritable | None:
    """Return what a ceiling keeps of a result; None where it would lose some of it."""
    nothing_made = isinstance(result, Sealed) and result.is_empty
    if ceiling is Ceiling.FULL:
        return result
    if ceiling is Ceiling.REDACTED and redacted is not None:
        # A redaction that leaves nothing of a result would pass for a task that made none.
        emptied = isinstance(redacted, Sealed) and redacted.is_empty
        return redacted if nothing_made or not emptied else None
    # Nothing is lost of a result with nothing in it; its history is content like any other.
    return Sealed() if nothing_made else None


@dataclass(frozen=True, slots=True)
class Refusal:
    """An ``UnsupportedOperationError`` of A2A, to be sent before a task exists."""

    reason: Reason = Reason.NOT_RETAINABLE
    message: str = "This installation's privacy policy does not let the result of a task be kept."
    code: int = -32004


def refusal(ceiling: str, *, redacts: bool = True) -> Refusal | None:
    """
    Return why a task must not be made under this ceiling, or None where its result can be kept.

    :param ceiling: the answer ceiling of the profile that would serve the task; a name this version does not know
        keeps nothing
    :param redacts: whether the caller has something that makes redacted text
    """
    ceiling = strictest(ceiling)
    keeps = ceiling is Ceiling.FULL or (ceiling is Ceiling.REDACTED and redacts)
    return None if keeps else Refusal()
