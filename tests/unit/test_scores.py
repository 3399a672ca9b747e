"""What a score and a trace are, and what each target is sent."""

from __future__ import annotations

import pytest

from airflow_provider_nrllm.scores.exchanges import Answer, Fate, Refused
from airflow_provider_nrllm.scores.langfuse import Langfuse, score_body
from airflow_provider_nrllm.scores.mlflow import Mlflow, assessment_body
from airflow_provider_nrllm.scores.otlp import traces_body
from airflow_provider_nrllm.scores.rules import Call, Outcome, RunRow, score_of, trace_id_of, trace_of

UUID = "0f8fad5b-d9cb-469f-a165-70867728950e"
HEX = "0f8fad5bd9cb469fa16570867728950e"
AT = 1_780_000_000


def score(value="edited", at=AT, since=None, uuid=UUID):
    return score_of(Outcome(1, uuid, value, at), since)


def scores(number):
    return [score(uuid=f"00000000-0000-4000-8000-{each:012x}") for each in range(number)]


def run(**changes):
    row = {
        "uid": 1, "uuid": UUID, "status": "completed", "start": AT, "end": AT + 20, "configuration": "news",
        "input_tokens": 900, "output_tokens": 100, "cost": 0.02,
    }  # fmt: skip
    return RunRow(**{**row, **changes})


def call(**changes):
    row = {
        "uid": 7, "correlation_id": UUID, "operation": "chat", "provider": "openai", "model": "asked",
        "served_provider": "azure", "served_model": "served", "response_model": "answered", "configuration": "news",
        "served_configuration": "fallback", "success": True, "at": AT + 10, "latency_ms": 1500, "input_tokens": 450,
        "output_tokens": 50, "cost": None,
    }  # fmt: skip
    return Call(**{**row, **changes})


def answered(exchange, answer):
    """Run an exchange with what ``answer`` says to each request; return what it returns and the requests."""
    requests, reply = [], None
    while True:
        try:
            requests.append(exchange.send(reply))
        except StopIteration as end:
            return end.value, requests
        reply = answer(requests[-1])


@pytest.mark.parametrize("correlation_id", [UUID, UUID.upper(), HEX])
def test_the_trace_id_is_the_uuid_without_dashes(correlation_id):
    assert HEX == trace_id_of(correlation_id)


@pytest.mark.parametrize("correlation_id", ["", "task-42", UUID[:-1], UUID + "\n", "0" * 32, UUID.replace("0", "٠")])
def test_an_id_that_is_no_uuid_has_no_trace(correlation_id):
    assert trace_id_of(correlation_id) is None
    assert score(uuid=correlation_id) is None


@pytest.mark.parametrize("value", ["accepted_unchanged", "edited", "discarded", "unknown"])
def test_an_observed_outcome_is_a_score_by_code_with_the_stored_word(value):
    assert ("nrllm.observed", value, False) == (score(value).name, score(value).value, score(value).by_human)


@pytest.mark.parametrize("value", ["helpful", "not_helpful"])
def test_a_rating_is_a_score_by_a_human_with_the_stored_word(value):
    assert ("nrllm.explicit", value, True) == (score(value).name, score(value).value, score(value).by_human)


def test_a_value_that_this_version_does_not_know_is_no_score():
    with pytest.raises(ValueError, match="does not know"):
        score("Edited")


def test_an_outcome_has_the_same_score_id_whenever_it_is_handed_on():
    # Another id would double every score that is there already.
    assert "36b2b4e9ce415d0d8f9862a35f16f6fc" == score().id
    assert score("helpful").id == score("not_helpful", AT + 5).id
    assert score("helpful").id != score("edited").id


def test_a_trace_needs_a_run_or_a_call():
    assert trace_of(UUID, [], []) is None
    assert HEX == trace_of(UUID, [], [call()]).id
    assert HEX == trace_of(UUID, [run()], []).id


def spans_of(*traces):
    return traces_body(traces)["resourceSpans"][0]["scopeSpans"][0]["spans"]


def attributes(span):
    return {each["key"]: next(iter(each["value"].values())) for each in span["attributes"]}


def test_a_trace_is_a_span_of_the_run_and_one_of_each_call():
    root, child = spans_of(trace_of(UUID, [run()], [call()]))
    assert (HEX, HEX, root["spanId"]) == (root["traceId"], child["traceId"], child["parentSpanId"])
    assert ("nr_llm run", "chat asked") == (root["name"], child["name"])
    assert (str(AT * 10**9), str((AT + 20) * 10**9)) == (root["startTimeUnixNano"], root["endTimeUnixNano"])
    assert str((AT + 10) * 10**9 - 1_500_000_000) == child["startTimeUnixNano"]


def test_a_call_tells_the_models_tokens_configuration_and_latency():
    expected = {
        "gen_ai.operation.name": "chat", "gen_ai.provider.name": "azure", "gen_ai.request.model": "asked",
        "gen_ai.response.model": "answered", "gen_ai.usage.input_tokens": "450", "gen_ai.usage.output_tokens": "50",
        "nrllm.correlation_id": UUID, "nrllm.operation": "chat", "nrllm.served_model": "served",
        "nrllm.configuration": "news", "nrllm.served_configuration": "fallback", "nrllm.latency_ms": "1500",
    }  # fmt: skip
    assert expected == attributes(spans_of(trace_of(UUID, [], [call()]))[1])


def test_a_cost_that_was_not_measured_is_no_attribute_and_never_0():
    (root,) = spans_of(trace_of(UUID, [run(cost=None)], []))
    assert "nrllm.estimated_cost" not in attributes(root)
    assert 0.25 == attributes(spans_of(trace_of(UUID, [], [call(cost=0.25)]))[1])["gen_ai.usage.cost"]


def test_a_trace_made_again_has_the_same_span_ids():
    first, again = (spans_of(trace_of(UUID, [run()], [call(), call(uid=8)])) for _ in range(2))
    assert [span["spanId"] for span in first] == [span["spanId"] for span in again]
    assert 3 == len({span["spanId"] for span in first})


def test_a_failed_run_is_a_trace_with_an_error():
    assert 2 == spans_of(trace_of(UUID, [run(status="failed")], []))[0]["status"]["code"]


def test_mlflow_gets_a_score_as_an_assessment_that_names_no_person():
    body = assessment_body(score("helpful"))["assessment"]
    assert {"source_type": "HUMAN", "source_id": "nr_llm"} == body["source"]
    assert ({"value": "helpful"}, f"tr-{HEX}") == (body["feedback"], body["trace_id"])
    assert "2026-05-28T20:26:40Z" == body["create_time"]
    assert "CODE" == assessment_body(score())["assessment"]["source"]["source_type"]


@pytest.mark.parametrize(
    ("found", "then", "methods", "fate"),
    [
        (Answer(404), Answer(200), ["GET", "POST"], Fate.SENT),
        (Answer(404), Answer(404), ["GET", "POST"], Fate.NO_TRACE),
        (Answer(404), Answer(400), ["GET", "POST"], Fate.REFUSED),
        (Answer(200, {"assessment": {"feedback": {"value": "edited"}}}), None, ["GET"], Fate.UNCHANGED),
        (Answer(200, {"assessment": {"feedback": {"value": "discarded"}}}), Answer(200), ["GET", "PATCH"], Fate.SENT),
    ],
)
def test_an_assessment_is_looked_up_then_made_or_updated(found, then, methods, fate):
    fates, requests = answered(Mlflow().scores([score()]), lambda request: found if request.method == "GET" else then)
    assert (methods, [(score(), fate)]) == ([request.method for request in requests], fates)


def test_an_experiment_that_is_not_there_is_refused_before_anything_is_sent():
    with pytest.raises(Refused, match="experiment '7' was answered with status 404"):
        answered(Mlflow("7").check(), lambda _: Answer(404))


def test_langfuse_dates_a_rating_by_its_run_so_that_another_rating_overwrites_it():
    first, changed = score_body(score("helpful", AT, AT)), score_body(score("not_helpful", AT + 9 * 86400, AT))
    assert [first[key] for key in ("id", "name", "timestamp")] == [changed[key] for key in ("id", "name", "timestamp")]
    assert "not_helpful" == changed["value"]


def test_langfuse_dates_an_observed_outcome_by_when_it_was_recorded():
    assert "2026-05-28T20:26:40Z" == score_body(score("edited", AT, AT - 7 * 86400))["timestamp"]


def test_a_batch_that_is_too_large_is_sent_in_halves():
    fates, requests = answered(
        Langfuse().scores(scores(8)), lambda request: Answer(413 if len(request.body) > 2 else 202)
    )
    assert [Fate.SENT] * 8 == [fate for _, fate in fates]
    assert [2, 2, 2, 2] == [len(request.body) for request in requests if len(request.body) <= 2]


def test_of_a_batch_that_is_taken_in_part_each_rejected_score_is_found():
    batch = scores(16)
    bad = {batch[3].id, batch[12].id}

    def answer(request):
        rejected = sum(each["id"] in bad for each in request.body)
        errors = [{"message": "invalid"}] * rejected
        if not rejected:
            return Answer(202, {"message": "Accepted"})
        return Answer(207, {"accepted": len(request.body) - rejected, "rejected": rejected, "errors": errors})

    fates, _ = answered(Langfuse().scores(batch), answer)
    assert [batch[3], batch[12]] == [each for each, fate in fates if fate is Fate.REFUSED]
    assert 16 == len(fates)


def test_a_langfuse_that_takes_no_list_gets_one_score_at_a_time():
    fates, requests = answered(
        Langfuse().scores(scores(3)), lambda request: Answer(400 if isinstance(request.body, list) else 200)
    )
    assert [Fate.SENT] * 3 == [fate for _, fate in fates]
    assert 4 == len(requests)


def test_traces_that_are_rejected_in_part_are_found():
    traces = [trace_of(f"00000000-0000-4000-8000-{each:012x}", [run()], []) for each in range(4)]

    def answer(request):
        bad = [span for span in request.body["resourceSpans"][0]["scopeSpans"][0]["spans"] if span["traceId"] == bad_id]
        return Answer(200, {"partialSuccess": {"rejectedSpans": str(len(bad))}} if bad else {})

    bad_id = traces[2].id
    refused, _ = answered(Langfuse().traces(traces), answer)
    assert [traces[2]] == refused
