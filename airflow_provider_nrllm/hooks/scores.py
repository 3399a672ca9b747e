"""NrLlmScoresHook: outcomes handed on as scores to MLflow or Langfuse."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from airflow_provider_nrllm.database.hook import SiteHook
from airflow_provider_nrllm.database.requirements import Requirements
from airflow_provider_nrllm.exceptions import NrLlmExtraError
from airflow_provider_nrllm.scores.exchanges import Fate, Target
from airflow_provider_nrllm.scores.langfuse import Langfuse
from airflow_provider_nrllm.scores.mlflow import Mlflow
from airflow_provider_nrllm.scores.reading import Page, read_pages
from airflow_provider_nrllm.scores.rules import EXPLICIT_NAME, OBSERVED_NAME
from airflow_provider_nrllm.scores.tables import SCORES_TABLES

if TYPE_CHECKING:
    from airflow_provider_nrllm.scores.client import Client

T = TypeVar("T")

TARGETS = ("mlflow", "langfuse")

#: The most traces of a request; a request is halved where the target finds it too large.
TRACES_AT_ONCE = 50

#: How many of the correlation ids that were refused are kept to name them.
_NAMED = 10


@dataclass(slots=True)
class HandedOn:
    """
    What was handed on so far.

    :ivar scores: how many scores had each fate, by the name of the score
    :ivar traces: how many traces were sent
    :ivar refused_traces: how many of them the target refused
    :ivar without_trace_id: how many outcomes have a correlation id that no trace can have
    :ivar refused: the first correlation ids whose score or trace was refused
    """

    scores: dict[str, Counter[Fate]] = field(
        default_factory=lambda: {OBSERVED_NAME: Counter(), EXPLICIT_NAME: Counter()}
    )
    traces: int = 0
    refused_traces: int = 0
    without_trace_id: int = 0
    refused: list[str] = field(default_factory=list)

    def fate(self, fate: Fate) -> int:
        """Return how many scores had a fate."""
        return sum(counts[fate] for counts in self.scores.values())

    def name_refused(self, correlation_id: str) -> None:
        """Keep a correlation id, if it is one of the first."""
        if correlation_id not in self.refused and len(self.refused) < _NAMED:
            self.refused.append(correlation_id)


def target_of(name: str, experiment_id: str = "0") -> Target:
    """
    Return a target by its name.

    :raises ValueError: where there is none of this name
    """
    if name == "mlflow":
        return Mlflow(experiment_id)
    if name == "langfuse":
        return Langfuse()
    raise ValueError(f"target is {name!r}; expected one of {', '.join(TARGETS)}")


class NrLlmScoresHook(SiteHook):
    """
    Hand recorded outcomes on as scores of the traces of their runs.

    Reads the TYPO3 database and writes nothing into it; no content, no user and no approval is read. Safe to repeat,
    to run twice at once and to be killed: each outcome is one score (ADR-176).

    :param nrllm_conn_id: the Airflow connection to the TYPO3 database
    :param scores_conn_id: the Airflow connection of type ``http`` with the target's host and keys
    :param target: ``mlflow`` or ``langfuse``
    :param experiment_id: of MLflow, the experiment that traces are laid into
    :param traces: whether traces are sent first; None: to MLflow yes, to Langfuse no
    :param requests_at_once: the most requests under way
    :param without_tls: whether a host that is not this machine may be asked without TLS
    :param sleep: waits some seconds before a request is repeated; by default the clock's
    :raises ValueError: for another target
    """

    hook_name = "nr_llm scores"
    requirements = Requirements(SCORES_TABLES, page="docs/how-to/hand-on-scores.md")

    def __init__(
        self,
        nrllm_conn_id: str = SiteHook.default_conn_name,
        *,
        scores_conn_id: str,
        target: str,
        experiment_id: str = "0",
        traces: bool | None = None,
        requests_at_once: int = 4,
        without_tls: bool = False,
        sleep: Callable[[float], object] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(nrllm_conn_id, **kwargs)
        self.scores_conn_id = scores_conn_id
        self.target = target_of(target, experiment_id)
        self.traces = self.target.makes_traces if traces is None else traces
        self.requests_at_once = requests_at_once
        self.without_tls = without_tls
        self.sleep = sleep

    def hand_on(self, start: int | None, end: int, *, page_size: int = 500) -> Iterator[HandedOn]:
        """
        Hand on the outcomes recorded in ``[start, end)``, and yield what was handed on so far after each page.

        :param start: Unix seconds, UTC; None for all before ``end``
        :param page_size: the most outcomes that are read and held at once
        :raises NrLlmScoresError: where the target refuses all of it, such as the keys; not retried
        :raises NrLlmTargetError: where the target cannot be reached or does not recover; Airflow retries
        :raises NrLlmConnectionError: for a host without TLS, a bad certificate, and a redirect to another host
        :raises NrLlmExtraError: without Airflow's http provider
        """
        done = HandedOn()
        with closing(self._client()) as client:
            client.run(self.target.check)
            for page in read_pages(self.database, start, end, page_size):
                self._send(client, page, done)
                yield done

    def _send(self, client: Client, page: Page, done: HandedOn) -> None:
        done.without_trace_id += page.without_trace_id
        if self.traces:
            batches = (partial(self.target.traces, batch) for batch in _batches(page.traces, TRACES_AT_ONCE))
            for refused in client.run_all(batches):
                done.refused_traces += len(refused)
                for trace in refused:
                    done.name_refused(trace.correlation_id)
            done.traces += len(page.traces)
        scores = (partial(self.target.scores, batch) for batch in _batches(page.scores, self.target.batch_size))
        for fates in client.run_all(scores):
            for score, fate in fates:
                done.scores[score.name][fate] += 1
                if fate is Fate.REFUSED:
                    done.name_refused(score.correlation_id)

    def _client(self) -> Client:
        try:
            from airflow_provider_nrllm.scores.client import Client
        except ImportError as error:
            raise NrLlmExtraError(
                f"Not installed: {error.name}. To hand on scores: pip install 'airflow-provider-nrllm[scores]'"
            ) from error
        return Client(
            self.scores_conn_id,
            requests_at_once=self.requests_at_once,
            without_tls=self.without_tls,
            sleep=self.sleep,
        )


def _batches(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    for first in range(0, len(items), size):
        yield items[first : first + size]
