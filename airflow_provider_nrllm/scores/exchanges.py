"""
Requests and answers, as generators: a target yields a request and is sent the answer.

Pure: nothing here opens a connection. An exchange can be begun again from its first request at any time, whatever of
it had reached the target before.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol, TypeVar

from airflow_provider_nrllm.scores.rules import Score, Trace

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Request:
    """
    A request to a target.

    :param path: below the address of the connection, beginning with a slash
    :param body: sent as JSON; None for no body
    """

    method: str
    path: str
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Answer:
    """
    An answer that is final: no 401, 403, 408, 429 or 5xx.

    :param body: the JSON, None if it is none
    """

    status: int
    body: Any = None

    @property
    def is_taken(self) -> bool:
        """Whether the target took the request."""
        return 200 <= self.status < 300


class Refused(Exception):
    """A target refused a request in a way that all others of its kind will meet."""


class Fate(StrEnum):
    """The reaction of a target to a score."""

    SENT = "sent"
    UNCHANGED = "unchanged"
    NO_TRACE = "no_trace"
    REFUSED = "refused"


Fates = list[tuple[Score, Fate]]
Exchange = Generator[Request, Answer, T]


class Target(Protocol):
    """
    Where scores go.

    :ivar name: as the operator's ``target`` has it
    :ivar makes_traces: whether the traces are sent first unless the user says otherwise
    :ivar batch_size: the most scores of an exchange
    """

    name: str
    makes_traces: bool
    batch_size: int

    def check(self) -> Exchange[None]:
        """Look whether the target can take what comes."""
        ...

    def traces(self, batch: Sequence[Trace]) -> Exchange[list[Trace]]:
        """Send traces, and return those that were refused."""
        ...

    def scores(self, batch: Sequence[Score]) -> Exchange[Fates]:
        """Send scores, and return what the target did with each."""
        ...


def send_in_parts(
    batch: Sequence[T], request_of: Callable[[Sequence[T]], Request], taken_in_part: Callable[[Answer], bool]
) -> Exchange[list[T]]:
    """
    Send a batch, in halves where it is too large or taken in part, and return what is refused alone too.

    Sending twice what was taken is safe: everything that is sent has an id of its own.

    :raises Refused: for any other answer that is no success
    """
    request = request_of(batch)
    answer = yield request
    if answer.is_taken and not taken_in_part(answer):
        return []
    if not answer.is_taken and answer.status != 413:
        raise Refused(f"{request.method} {request.path} was answered with status {answer.status}")
    if len(batch) == 1:
        return list(batch)
    half = len(batch) // 2
    first = yield from send_in_parts(batch[:half], request_of, taken_in_part)
    rest = yield from send_in_parts(batch[half:], request_of, taken_in_part)
    return [*first, *rest]
