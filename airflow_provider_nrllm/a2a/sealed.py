"""
The stored result of a task: sealed values, which are opaque text.

nr-vault seals and opens them, with a key the provider has not and needs not. Who completes a task hands in
the function that seals; who reads one, the function that opens. Both learn which place of which task a value is
for, so that it can be bound to it. No message and no log ever holds a value. Pure.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

Json = Mapping[str, Any]


class Purpose(StrEnum):
    """The place of a sealed value in its task; its event in the journal holds the same value."""

    ARTIFACT = "artifact"
    STATUS_MESSAGE = "status_message"
    HISTORY = "history"


#: Makes a sealed value of a text, or the text of a sealed value: of the value, what it is for, and the task's id.
Seal = Callable[[str, Purpose, str], str]
Unseal = Callable[[str, Purpose, str], str]


class UnreadableError(ValueError):
    """A row is not as this version can read it. The message never holds a value of it."""


class UnsealedValueError(UnreadableError):
    """A stored or offered value is not sealed. The message never holds the value."""


#: nr-vault's envelopes begin with the first of these, older ones with the second.
SEALS: Final = ("nrv1:", "v2:")


def is_sealed(value: object) -> bool:
    """Tell whether a value is an envelope of nr-vault, by its beginning."""
    return isinstance(value, str) and value.startswith(SEALS) and value not in SEALS


def sealed_values(stored: str | None) -> tuple[str, ...] | None:
    """
    Return the sealed values of a stored JSON list; None where none is stored.

    :raises UnsealedValueError: where it is no JSON list, or one of its values is not sealed
    """
    if stored is None:
        return None
    try:
        values = json.loads(stored)
    except ValueError:
        values = None
    if not isinstance(values, list) or not all(map(is_sealed, values)):
        raise UnsealedValueError("no JSON list of sealed values") from None
    return tuple(values)


@dataclass(frozen=True, slots=True)
class Result:
    """
    What a run made for its client, as A2A 1.0 JSON objects, not sealed yet.

    :param artifacts: the artifacts, in order; none is a legitimate result
    :param message: the final status message
    :param history: what to add to the task's history: the client's messages, the agent's status messages
    """

    artifacts: tuple[Json, ...] = ()
    message: Json | None = None
    history: tuple[Json, ...] = ()


@dataclass(frozen=True, slots=True)
class Sealed:
    """A result ready to be stored: the same as :class:`Result`, each value sealed."""

    artifacts: tuple[str, ...] = ()
    message: str | None = None
    history: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing a ceiling could forbid to keep."""
        return not self.artifacts and self.message is None


@dataclass(frozen=True, slots=True)
class Unwritable:
    """A result that could not be sealed, and the kind of error that said so (never its text)."""

    error: str


def seal_result(result: Result, seal: Seal, task_id: str) -> Sealed | Unwritable:
    """
    Seal each value of a result, as JSON text.

    :param seal: what makes an envelope of a text
    :param task_id: the task that the result is of
    :raises ConnectionError: where what seals could not be reached, and so :class:`TimeoutError`
    """

    def envelope(value: Json, purpose: Purpose) -> str:
        sealed = seal(json.dumps(value, allow_nan=False), purpose, task_id)
        if not is_sealed(sealed):
            raise UnsealedValueError("what was to seal a value did not")
        return sealed

    try:
        return Sealed(
            artifacts=tuple(envelope(artifact, Purpose.ARTIFACT) for artifact in result.artifacts),
            message=None if result.message is None else envelope(result.message, Purpose.STATUS_MESSAGE),
            history=tuple(envelope(message, Purpose.HISTORY) for message in result.history),
        )
    except (ConnectionError, TimeoutError):
        # It may pass, and nothing is written yet: the same again may succeed.
        raise
    except Exception as error:
        # Whatever went wrong, the run must not complete without its result; the text may hold content.
        return Unwritable(type(error).__name__)


def stored_list(values: tuple[str, ...] | None) -> str | None:
    """Return a list as it is stored: None where none is stored, ``[]`` where none was made."""
    return None if values is None else json.dumps(values, separators=(",", ":"))
