"""
MLflow: a trace as OTLP, then each score as an assessment of it.

Pure. An assessment with the id of one that is there is answered with status 500, so each is looked up first; of two
that hand on the same at once, the slower one meets that answer and begins again with the look-up.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from airflow_provider_nrllm.scores.exchanges import Answer, Exchange, Fate, Fates, Refused, Request, send_in_parts
from airflow_provider_nrllm.scores.otlp import taken_in_part, traces_body
from airflow_provider_nrllm.scores.rules import Score, Trace


class Mlflow:
    """
    An MLflow server, version 3.

    :param experiment_id: of the experiment that the traces are laid into
    """

    name = "mlflow"
    makes_traces = True
    batch_size = 1

    def __init__(self, experiment_id: str = "0") -> None:
        self.experiment_id = experiment_id

    def check(self) -> Exchange[None]:
        """
        Look for the experiment.

        :raises Refused: where there is no such experiment, or no MLflow
        """
        answer = yield Request("GET", f"/api/2.0/mlflow/experiments/get?experiment_id={quote(self.experiment_id, '')}")
        if not answer.is_taken:
            raise Refused(
                f"the look-up of the experiment {self.experiment_id!r} was answered with status {answer.status}; "
                "expected an MLflow server that has this experiment"
            )

    def traces(self, batch: Sequence[Trace]) -> Exchange[list[Trace]]:
        """Send traces in one request; one that is there already stays as it is or gets the same spans again."""
        headers = {"x-mlflow-experiment-id": self.experiment_id}
        return send_in_parts(
            batch, lambda part: Request("POST", "/v1/traces", traces_body(part), headers), taken_in_part
        )

    def scores(self, batch: Sequence[Score]) -> Exchange[Fates]:
        """Make or update an assessment for each score."""
        fates: Fates = []
        for score in batch:
            fates.append((score, (yield from self._score(score))))
        return fates

    def _score(self, score: Score) -> Exchange[Fate]:
        assessments = f"/api/3.0/mlflow/traces/tr-{score.trace_id}/assessments"
        one = f"{assessments}/{_id_of(score)}"
        found = yield Request("GET", one)
        if found.is_taken:
            if _value_in(found) == score.value:
                return Fate.UNCHANGED
            body = {**assessment_body(score), "update_mask": "feedback"}
            return _fate((yield Request("PATCH", one, body)))
        if found.status != 404:
            return _fate(found)
        return _fate((yield Request("POST", assessments, assessment_body(score))))


def assessment_body(score: Score) -> dict[str, Any]:
    """Return the body that makes an assessment of a score."""
    at = datetime.fromtimestamp(score.at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {
        "assessment": {
            "assessment_id": _id_of(score),
            "assessment_name": score.name,
            "trace_id": f"tr-{score.trace_id}",
            # No person is named: the id is the extension's.
            "source": {"source_type": "HUMAN" if score.by_human else "CODE", "source_id": "nr_llm"},
            "feedback": {"value": score.value},
            "create_time": at,
            "last_update_time": at,
            "metadata": {"nrllm.correlation_id": score.correlation_id},
        }
    }


def _id_of(score: Score) -> str:
    return f"a-{score.id}"


def _value_in(answer: Answer) -> object:
    try:
        return answer.body["assessment"]["feedback"]["value"]
    except (KeyError, TypeError):
        return None


def _fate(answer: Answer) -> Fate:
    if answer.is_taken:
        return Fate.SENT
    return Fate.NO_TRACE if answer.status == 404 else Fate.REFUSED
