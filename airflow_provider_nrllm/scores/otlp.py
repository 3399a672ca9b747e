"""
A trace as OTLP has it, in JSON: a span of the run and a span of each call, without content and without users.

Pure. The names of attributes are those of OpenTelemetry's conventions for generative AI where they have one, else
they begin with ``nrllm.``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from airflow_provider_nrllm.scores.exchanges import Answer
from airflow_provider_nrllm.scores.rules import Call, Trace, call_start_ns, span_id_of

_INTERNAL, _CLIENT = 1, 3
_UNSET, _OK, _ERROR = 0, 1, 2
_STATUS = {"completed": _OK, "failed": _ERROR}


def traces_body(traces: Sequence[Trace]) -> dict[str, Any]:
    """Return the body of ``POST /v1/traces`` for some traces."""
    spans = [span for trace in traces for span in _spans(trace)]
    resource = {"attributes": _attributes({"service.name": "nr_llm"})}
    return {"resourceSpans": [{"resource": resource, "scopeSpans": [{"scope": {"name": "nr_llm"}, "spans": spans}]}]}


def taken_in_part(answer: Answer) -> bool:
    """Return whether a target says that it rejected some of the spans."""
    partial = answer.body.get("partialSuccess") if isinstance(answer.body, dict) else None
    rejected = partial.get("rejectedSpans") if isinstance(partial, dict) else None
    # OTLP in JSON writes whole numbers of 64 bits as text.
    return str(rejected or 0) != "0"


def _spans(trace: Trace) -> list[dict[str, Any]]:
    root = span_id_of(trace.id, "run")
    status = _STATUS.get(trace.runs[-1].status, _UNSET) if trace.runs else _UNSET
    run = {
        "traceId": trace.id,
        "spanId": root,
        "name": "nr_llm run" if trace.runs else "nr_llm calls",
        "kind": _INTERNAL,
        "startTimeUnixNano": str(trace.start_ns),
        "endTimeUnixNano": str(trace.end_ns),
        "attributes": _attributes(_run_attributes(trace)),
        "status": {"code": status},
    }
    return [run, *(_call_span(trace, root, call) for call in trace.calls)]


def _run_attributes(trace: Trace) -> dict[str, Any]:
    attributes: dict[str, Any] = {"nrllm.correlation_id": trace.correlation_id}
    if trace.runs:
        last = trace.runs[-1]
        costs = [run.cost for run in trace.runs if run.cost is not None]
        attributes |= {
            "nrllm.status": last.status,
            "nrllm.configuration": last.configuration,
            "nrllm.input_tokens": sum(run.input_tokens for run in trace.runs),
            "nrllm.output_tokens": sum(run.output_tokens for run in trace.runs),
            "nrllm.estimated_cost": sum(costs) if costs else None,
        }
    return attributes


def _call_span(trace: Trace, parent: str, call: Call) -> dict[str, Any]:
    operation = "embeddings" if call.operation.startswith("embed") else "chat"
    served = call.response_model or call.served_model
    attributes = {
        "gen_ai.operation.name": operation,
        "gen_ai.provider.name": call.served_provider or call.provider,
        "gen_ai.request.model": call.model,
        "gen_ai.response.model": served,
        "gen_ai.usage.input_tokens": call.input_tokens,
        "gen_ai.usage.output_tokens": call.output_tokens,
        "gen_ai.usage.cost": call.cost,
        "nrllm.correlation_id": trace.correlation_id,
        "nrllm.operation": call.operation,
        "nrllm.served_model": call.served_model,
        "nrllm.configuration": call.configuration,
        "nrllm.served_configuration": call.served_configuration,
        "nrllm.latency_ms": call.latency_ms,
    }
    return {
        "traceId": trace.id,
        "spanId": span_id_of(trace.id, f"call/{call.uid}"),
        "parentSpanId": parent,
        "name": f"{operation} {call.model}".strip(),
        "kind": _CLIENT,
        "startTimeUnixNano": str(call_start_ns(call)),
        "endTimeUnixNano": str(call.at * 10**9),
        "attributes": _attributes(attributes),
        "status": {"code": _OK if call.success else _ERROR},
    }


def _attributes(values: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the attributes that are known; a cost or a number of tokens that was not measured is none, never 0."""
    return [{"key": key, "value": _value(value)} for key, value in values.items() if value is not None and value != ""]


def _value(value: str | int | float) -> dict[str, Any]:
    if isinstance(value, int):
        return {"intValue": str(value)}
    return {"doubleValue": value} if isinstance(value, float) else {"stringValue": value}
