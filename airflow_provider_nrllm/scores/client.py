"""Doing the requests of an exchange over an Airflow connection of type ``http``: what is refused, what is retried."""

from __future__ import annotations

import email.utils
import ipaddress
import json
import logging
import random
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from datetime import UTC, datetime
from queue import SimpleQueue
from typing import TypeVar
from urllib.parse import urljoin, urlsplit

import requests
from airflow.providers.common.compat.sdk import AirflowNotFoundException
from airflow.providers.http.hooks.http import HttpHook

from airflow_provider_nrllm.exceptions import NrLlmConnectionError, NrLlmScoresError, NrLlmTargetError
from airflow_provider_nrllm.scores.exchanges import Answer, Exchange, Refused, Request

#: How often an exchange is begun before Airflow is left to do it again.
TRIES = 6
#: The longest delay a server may ask for, in seconds; a longer one is left to Airflow's own retry.
LONGEST_DELAY = 300
#: How long to wait for a connection and for an answer, in seconds.
TIMEOUT = (10, 60)

_REDIRECTS = 5
_log = logging.getLogger(__name__)

T = TypeVar("T")


class _TryAgain(Exception):
    """The same exchange may succeed later."""

    def __init__(self, found: str, delay: float | None = None) -> None:
        super().__init__(found)
        self.delay = delay


class Client:
    """
    Runs exchanges, several at once, each until it is done or Airflow should retry the task.

    :param conn_id: an Airflow connection of type ``http`` with the host and the keys
    :param requests_at_once: the most requests under way
    :param without_tls: whether a host that is not this machine may be asked without TLS
    :param sleep: waits some seconds; by default until one of the exchanges has failed at most
    """

    def __init__(
        self,
        conn_id: str,
        *,
        requests_at_once: int = 4,
        without_tls: bool = False,
        sleep: Callable[[float], object] | None = None,
    ) -> None:
        self.conn_id = conn_id
        self.requests_at_once = requests_at_once
        self.without_tls = without_tls
        self._failed = threading.Event()
        self._sleep = sleep or self._failed.wait
        hook = HttpHook(http_conn_id=conn_id)
        #: One for each request under way: a session is not made for several threads, nor is a look-up of connections.
        self._sessions: SimpleQueue[requests.Session] = SimpleQueue()
        try:
            connection = hook.get_connection(conn_id)
        except AirflowNotFoundException as error:
            raise NrLlmConnectionError(
                f"Connection {conn_id!r} is not defined. Expected an Airflow connection of type http with the host and "
                "the keys of the target; add it, or name another one in scores_conn_id."
            ) from error
        if connection.conn_type != "http":
            raise NrLlmConnectionError(
                f"Connection {conn_id!r} has the type {connection.conn_type!r}; expected http, with the host and the "
                "keys of the target."
            )
        for _ in range(requests_at_once):
            session = hook.get_conn()
            self._sessions.put(session)
        self.base_url = hook.base_url.rstrip("/")
        self._check(session)

    def close(self) -> None:
        """Close the connections."""
        while not self._sessions.empty():
            self._sessions.get().close()

    def run_all(self, exchanges: Iterable[Callable[[], Exchange[T]]]) -> Iterator[T]:
        """
        Run exchanges, as many at once as may be, and yield what each returns in the order they end.

        :param exchanges: a function for each, which begins it; no more are taken than run at once
        """
        waiting: set[Future[T]] = set()
        with ThreadPoolExecutor(self.requests_at_once) as pool:
            try:
                for begin in exchanges:
                    waiting.add(pool.submit(self.run, begin))
                    if len(waiting) >= self.requests_at_once:
                        done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                        yield from (each.result() for each in done)
                yield from (each.result() for each in waiting)
            except BaseException:
                self._failed.set()
                pool.shutdown(wait=False, cancel_futures=True)
                raise

    def run(self, begin: Callable[[], Exchange[T]]) -> T:
        """
        Run one exchange; begin it again after 408, 429, 5xx and a lost connection, with the server's own delay.

        :raises NrLlmScoresError: where the target refuses; not retried
        :raises NrLlmTargetError: where it still cannot be reached; Airflow retries
        """
        for tries in range(1, TRIES + 1):
            try:
                return self._run_once(begin())
            except Refused as error:
                raise NrLlmScoresError(f"Connection {self.conn_id!r}: {error}. Nothing more was sent.") from None
            except _TryAgain as error:
                delay = error.delay if error.delay is not None else random.SystemRandom().uniform(0.5, 1) * 2**tries / 2
                if tries == TRIES or delay > LONGEST_DELAY or self._failed.is_set():
                    raise NrLlmTargetError(
                        f"Connection {self.conn_id!r}: {error}, after {tries} tries. What was sent stays, and the "
                        "task can be run again."
                    ) from None
                _log.info("%s: once more in %.1f s", error, delay)
                self._sleep(delay)
        raise AssertionError("unreachable")

    def _run_once(self, exchange: Exchange[T]) -> T:
        answer: Answer | None = None
        while True:
            try:
                request = exchange.send(answer)  # type: ignore[arg-type]
            except StopIteration as end:
                return end.value  # type: ignore[no-any-return]
            answer = self._answer(request)

    def _answer(self, request: Request) -> Answer:
        data = None if request.body is None else json.dumps(request.body, separators=(",", ":")).encode()
        headers = dict(request.headers) if data is None else {"Content-Type": "application/json", **request.headers}
        response = self._response(request, data, headers)
        if response.status_code in (401, 403):
            raise NrLlmScoresError(
                f"Connection {self.conn_id!r}: the target refused its keys with status {response.status_code}. "
                "Check login and password, or the header in the extra."
            )
        if response.status_code in (408, 429) or response.status_code >= 500:
            found = f"{request.method} {request.path} was answered with status {response.status_code}"
            raise _TryAgain(found, _delay_in(response.headers.get("Retry-After", "")))
        try:
            return Answer(response.status_code, json.loads(response.content))
        except ValueError:
            return Answer(response.status_code)

    def _response(self, request: Request, data: bytes | None, headers: dict[str, str]) -> requests.Response:
        url = self.base_url + request.path
        for _ in range(_REDIRECTS + 1):
            try:
                session = self._sessions.get()
                try:
                    # The certificates of the environment would otherwise go before those of the connection.
                    response = session.request(
                        request.method, url, data=data, headers=headers, timeout=TIMEOUT, allow_redirects=False,
                        verify=session.verify,
                    )  # fmt: skip
                finally:
                    self._sessions.put(session)
            except requests.exceptions.SSLError:
                # The text of the error may have the address with its keys.
                raise NrLlmConnectionError(
                    f"Connection {self.conn_id!r}: the certificate of {urlsplit(url).hostname} is not trusted, or TLS "
                    'failed. Give the connection\'s extra a file of certificates as "verify".'
                ) from None
            except requests.exceptions.RequestException as error:
                raise _TryAgain(f"{request.method} {request.path} failed ({type(error).__name__})") from None
            if not response.is_redirect and not 300 <= response.status_code < 400:
                return response
            url = self._redirected(url, response)
        raise NrLlmConnectionError(f"Connection {self.conn_id!r}: more than {_REDIRECTS} redirects one after the other")

    def _redirected(self, url: str, response: requests.Response) -> str:
        target = urljoin(url, response.headers.get("Location", ""))
        if urlsplit(target)[:2] != urlsplit(url)[:2] or response.status_code not in (307, 308):
            raise NrLlmConnectionError(
                f"Connection {self.conn_id!r}: redirected with status {response.status_code} to the host "
                f"{urlsplit(target).hostname!r}; only 307 and 308 within one host are followed. Give the connection "
                "the address that answers itself."
            )
        return target

    def _check(self, session: requests.Session) -> None:
        parts = urlsplit(self.base_url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise NrLlmConnectionError(f"Connection {self.conn_id!r} names no host; expected one, as https://host")
        if not session.verify:
            raise NrLlmConnectionError(
                f'Connection {self.conn_id!r}: its extra switches off the check of certificates. Give "verify" the '
                "path of a file with the certificate of the target."
            )
        if parts.scheme == "http" and not (self.without_tls or _is_loopback(parts.hostname)):
            raise NrLlmConnectionError(
                f"Connection {self.conn_id!r}: {parts.hostname} would get the keys without TLS. Use https:// or set "
                "without_tls=True."
            )


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _delay_in(header: str) -> float | None:
    """Return the seconds of a Retry-After, which has them or a date; None without one that can be read."""
    if header.strip().isdecimal():
        return float(header)
    try:
        at = email.utils.parsedate_to_datetime(header)
    except (TypeError, ValueError):
        return None
    seconds = (at.replace(tzinfo=at.tzinfo or UTC) - datetime.now(UTC)).total_seconds()
    return max(0.0, seconds)
