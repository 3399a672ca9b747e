"""Outcomes handed on by Airflow to a real MLflow, and to a server on loopback in Langfuse's place."""

from __future__ import annotations

import json
import logging
import multiprocessing
import os
import signal
import ssl
import subprocess
import sys
import threading
import time
import tracemalloc
from collections import Counter, deque
from datetime import UTC, datetime, timedelta

import airflow
import pytest
from airflow.providers.common.compat.sdk import AirflowFailException
from packaging.version import Version
from sqlalchemy import delete

from airflow_provider_nrllm.exceptions import (
    NrLlmConnectionError,
    NrLlmExtraError,
    NrLlmScoresError,
    NrLlmSettingError,
    NrLlmTargetError,
)
from airflow_provider_nrllm.hooks.nrllm import NrLlmHook
from airflow_provider_nrllm.hooks.scores import NrLlmScoresHook
from airflow_provider_nrllm.operators.scores import NrLlmOutcomeScoresOperator
from airflow_provider_nrllm.scores.client import TRIES
from airflow_provider_nrllm.scores.langfuse import Langfuse
from tests.typo3.dags import run_dag, states_of
from tests.typo3.scored import AT, add_answered, add_outcome
from tests.typo3.tables import run, telemetry
from tests.typo3.targets import Loopback, MlflowServer, send_with_sdk

SECRET = "sk-very-secret-key"
SCORES = "/api/public/scores"
START, END = datetime.fromtimestamp(AT, UTC), datetime.fromtimestamp(AT + 1, UTC)


@pytest.fixture
def connect(monkeypatch):
    """Return a function that defines the connection to a target."""

    def define(host, **changes):
        fields = {"conn_type": "http", "host": host, "login": "pk-public", "password": SECRET, **changes}
        monkeypatch.setenv("AIRFLOW_CONN_TARGET", json.dumps(fields))

    return define


@pytest.fixture
def loopback(connect):
    """A server on loopback, which is the target."""
    server = Loopback()
    connect(server.url)
    yield server
    server.close()


def hook(site, target="langfuse", **arguments):
    return NrLlmScoresHook(site.conn_id, scores_conn_id="target", target=target, **arguments)


def hand_on(site, target="langfuse", **arguments):
    """Hand all of the site on; return what became of it."""
    *_, done = hook(site, target, **arguments).hand_on(None, 2 * AT)
    return done


def operator(site, target="langfuse", **arguments):
    defaults = {"interval_start": START, "interval_end": END}
    return NrLlmOutcomeScoresOperator(
        task_id="scores", target=target, scores_conn_id="target", nrllm_conn_id=site.conn_id,
        **{**defaults, **arguments},
    )  # fmt: skip


def fates(done):
    return {name: {str(fate): number for fate, number in counts.items()} for name, counts in done.scores.items()}


# Langfuse


def test_langfuse_gets_the_bodies_that_its_newest_sdk_sends(sqlite_site, loopback):
    add_answered(sqlite_site.engine, 7)
    hand_on(sqlite_site)
    ours = [score for body in loopback.sent_to(SCORES) for score in body]
    first = len(loopback.received)
    send_with_sdk(loopback.url, ours)
    theirs = [score for each in loopback.received[first:] if each.path == SCORES for score in each.body]

    def comparable(score):
        # The SDK writes of which environment the process is, and the same moment in another way.
        plain = {key: value for key, value in score.items() if key != "environment"}
        return {**plain, "timestamp": datetime.fromisoformat(plain["timestamp"])}

    assert 9 == len(ours)
    assert sorted(map(comparable, theirs), key=lambda each: each["id"]) == sorted(
        map(comparable, ours), key=lambda each: each["id"]
    )


def test_langfuse_gets_the_keys_as_basic_auth_as_its_sdk_sends_them(sqlite_site, loopback, connect):
    connect(loopback.url, login="pk", password="sk")
    add_answered(sqlite_site.engine, 1)
    hand_on(sqlite_site)
    (ours,) = {each.headers["authorization"] for each in loopback.received}
    send_with_sdk(loopback.url, loopback.sent_to(SCORES)[0])
    assert ours == loopback.received[-1].headers["authorization"]


def test_langfuse_gets_no_trace_unless_it_is_asked_for(sqlite_site, loopback):
    add_answered(sqlite_site.engine, 1)
    hand_on(sqlite_site)
    assert {SCORES} == {each.path for each in loopback.received}
    hand_on(sqlite_site, traces=True)
    assert 1 == len(loopback.sent_to("/api/public/otel/v1/traces"))


def test_the_same_partition_twice_sends_the_same_ids(sqlite_site, loopback):
    add_answered(sqlite_site.engine, 6)
    first, again = hand_on(sqlite_site), hand_on(sqlite_site)
    assert fates(first) == fates(again)
    assert {2} == set(Counter(score["id"] for body in loopback.sent_to(SCORES) for score in body).values())


@pytest.mark.parametrize("status", [401, 403])
def test_keys_that_are_refused_are_not_tried_again(sqlite_site, loopback, status):
    add_answered(sqlite_site.engine, 1)
    loopback.reply = lambda _: (status, {}, {"message": "no"})
    with pytest.raises(NrLlmScoresError, match="refused its keys"):
        operator(sqlite_site).execute({})
    assert 1 == len(loopback.received)


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_busy_target_is_asked_again_after_its_own_delay(sqlite_site, loopback, status):
    add_answered(sqlite_site.engine, 1)
    answers = iter([(status, {"Retry-After": "7"}, {}), (202, {}, {"message": "Accepted"})])
    loopback.reply = lambda _: next(answers)
    waited = []
    done = hand_on(sqlite_site, sleep=waited.append)
    assert [7] == waited
    assert {"sent": 1} == fates(done)["nrllm.observed"]


def test_a_target_that_does_not_recover_is_left_to_airflows_retries(sqlite_site, loopback):
    add_answered(sqlite_site.engine, 1)
    loopback.reply = lambda _: (500, {}, {})
    waited = []
    with pytest.raises(NrLlmTargetError, match=f"status 500, after {TRIES} tries"):
        hand_on(sqlite_site, sleep=waited.append)
    assert TRIES == len(loopback.received) == len(waited) + 1


def test_a_delay_that_is_too_long_is_left_to_airflows_retries(sqlite_site, loopback):
    add_answered(sqlite_site.engine, 1)
    loopback.reply = lambda _: (429, {"Retry-After": "3600"}, {})
    with pytest.raises(NrLlmTargetError, match="status 429, after 1 tries"):
        hand_on(sqlite_site)


def test_a_score_that_is_rejected_fails_the_task_at_the_end_and_is_named(sqlite_site, loopback):
    uuids = add_answered(sqlite_site.engine, 8)

    def reply(got):
        bad = sum(score["metadata"]["nrllm.correlation_id"] == uuids[4] for score in got.body)
        if bad:
            return 207, {}, {"accepted": len(got.body) - bad, "rejected": bad, "errors": [{"message": "invalid"}]}
        return 202, {}, {"message": "Accepted"}

    loopback.reply = reply
    with pytest.raises(NrLlmScoresError, match=rf"refused 1 scores and 0 traces.*: {uuids[4]}\."):
        operator(sqlite_site).execute({})
    taken = {score["id"] for each in loopback.received if len(each.body) < 5 for score in each.body}
    assert taken
    assert 10 == len({score["id"] for each in loopback.received for score in each.body})


def test_a_score_that_is_too_large_alone_is_refused(sqlite_site, loopback):
    add_answered(sqlite_site.engine, 1)
    loopback.reply = lambda _: (413, {}, {})
    assert {"refused": 1} == fates(hand_on(sqlite_site))["nrllm.observed"]


def test_no_more_requests_are_under_way_than_are_allowed(sqlite_site, loopback):
    add_answered(sqlite_site.engine, 24)
    lock, both, under_way, most = threading.Lock(), threading.Barrier(2), Counter(), []

    def reply(_):
        with lock:
            under_way["now"] += 1
            most.append(under_way["now"])
        # Goes on when two are there: a third would be counted with them.
        both.wait(30)
        with lock:
            under_way["now"] -= 1
        return 404, {}, {}

    done = hook(sqlite_site, "mlflow", requests_at_once=2, traces=False)
    done.target.check = Langfuse().check
    loopback.reply = reply
    list(done.hand_on(None, 2 * AT, page_size=2))
    assert 2 == max(most)


def test_memory_does_not_grow_with_the_partition(sqlite_site, loopback):
    loopback.received = deque(maxlen=1)
    peaks = []
    for first, number in ((1, 300), (301, 2700)):
        add_answered(sqlite_site.engine, number, first)
        hand_on(sqlite_site)
        tracemalloc.start()
        list(hook(sqlite_site).hand_on(None, 2 * AT, page_size=50))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    # Ten times as many outcomes.
    assert peaks[1] < 1.5 * peaks[0]


def test_airflow_retries_a_target_that_is_away_and_no_refusal():
    assert [False, True, True] == [
        issubclass(error, AirflowFailException) for error in (NrLlmTargetError, NrLlmScoresError, NrLlmConnectionError)
    ]


# The connection


@pytest.mark.parametrize("host", ["http://langfuse.example.org", "langfuse.example.org", "http://10.0.0.1"])
def test_a_host_without_tls_is_refused(sqlite_site, connect, host):
    connect(host)
    with pytest.raises(NrLlmConnectionError, match="without TLS"):
        hand_on(sqlite_site)


@pytest.mark.parametrize("extra", [{"verify": False}, {"verify_ssl": False}])
def test_a_connection_that_checks_no_certificate_is_refused(sqlite_site, connect, extra):
    connect("https://langfuse.example.org", extra=json.dumps(extra))
    with pytest.raises(NrLlmConnectionError, match="switches off the check"):
        hand_on(sqlite_site)


def test_a_bad_certificate_is_refused(sqlite_site, loopback, connect, tmp_path):
    add_answered(sqlite_site.engine, 1)
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=localhost",
         "-addext", "subjectAltName=DNS:localhost", "-keyout", str(key), "-out", str(certificate)],
        check=True, capture_output=True,
    )  # fmt: skip
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    loopback._server.socket = context.wrap_socket(loopback._server.socket, server_side=True)
    connect(f"https://localhost:{loopback.port}")
    with pytest.raises(NrLlmConnectionError, match="certificate of localhost is not trusted"):
        hand_on(sqlite_site)
    assert [] == loopback.received
    connect(f"https://localhost:{loopback.port}", extra=json.dumps({"verify": str(certificate)}))
    assert {"sent": 1} == fates(hand_on(sqlite_site))["nrllm.observed"]


def test_a_redirect_to_another_host_is_refused_and_gets_no_key(sqlite_site, loopback):
    add_answered(sqlite_site.engine, 1)
    other = Loopback()
    loopback.reply = lambda _: (307, {"Location": f"{other.url}/api/public/scores"}, {})
    with pytest.raises(NrLlmConnectionError, match="redirected with status 307"):
        hand_on(sqlite_site)
    assert [] == other.received
    other.close()


def test_a_redirect_within_the_host_is_followed(sqlite_site, loopback):
    add_answered(sqlite_site.engine, 1)
    loopback.reply = lambda got: (202, {}, {}) if got.path == "/moved" else (307, {"Location": "/moved"}, {})
    assert {"sent": 1} == fates(hand_on(sqlite_site))["nrllm.observed"]


@pytest.mark.parametrize("status", [202, 207, 401, 413, 429, 500])
def test_no_key_is_in_the_log_or_in_an_error(sqlite_site, loopback, caplog, capfd, status):
    caplog.set_level(logging.DEBUG)
    add_answered(sqlite_site.engine, 2)
    loopback.reply = lambda got: (status, {}, {"rejected": 1, "errors": [{"message": got.headers["authorization"]}]})
    error = ""
    try:
        hand_on(sqlite_site, sleep=lambda _: None)
    except Exception as caught:
        error = repr(caught)
    said = "".join([caplog.text, *capfd.readouterr(), error])
    assert loopback.received
    keys = (SECRET, loopback.received[0].headers["authorization"])
    assert [] == [key for key in keys if key in said]


def test_a_connection_that_is_not_defined_is_named(sqlite_site):
    with pytest.raises(NrLlmConnectionError, match="'target' is not defined"):
        hand_on(sqlite_site)


def test_a_connection_of_another_type_is_refused(sqlite_site, connect):
    connect("https://langfuse.example.org", conn_type="mysql")
    with pytest.raises(NrLlmConnectionError, match="has the type 'mysql'; expected http"):
        hand_on(sqlite_site)


def test_without_the_extra_the_error_says_what_to_install(sqlite_site, monkeypatch):
    monkeypatch.setitem(sys.modules, "airflow.providers.http.hooks.http", None)
    monkeypatch.delitem(sys.modules, "airflow_provider_nrllm.scores.client", raising=False)
    with pytest.raises(NrLlmExtraError, match=r"pip install 'airflow-provider-nrllm\[scores\]'"):
        hand_on(sqlite_site)


# The operator


@pytest.mark.parametrize(
    "arguments",
    [
        {"target": "phoenix"},
        {"requests_at_once": 0},
        {"requests_at_once": True},
        {"page_size": 0},
        {"nrllm_conn_id": ["a", "b"]},
        {"interval_start": END, "interval_end": START},
    ],
)
def test_an_invalid_argument_is_an_error_when_the_dag_is_parsed(arguments):
    with pytest.raises(ValueError, match=r"; expected|is not after|ends"):
        NrLlmOutcomeScoresOperator(**{"task_id": "scores", "target": "mlflow", "scores_conn_id": "target", **arguments})


def test_a_target_that_a_template_rendered_wrongly_is_not_retried(sqlite_site):
    task = operator(sqlite_site, target="{{ params.target }}")
    task.target = "phoenix"
    with pytest.raises(NrLlmSettingError, match="phoenix"):
        task.execute({})


def test_the_operator_returns_counts_that_are_json(sqlite_site, loopback):
    add_answered(sqlite_site.engine, 4)
    add_outcome(sqlite_site.engine, "task-42", "helpful")
    expected = {
        "interval_start": START.isoformat(),
        "interval_end": END.isoformat(),
        "target": "langfuse",
        "scores": {
            "nrllm.observed": {"sent": 4, "unchanged": 0, "no_trace": 0, "refused": 0},
            "nrllm.explicit": {"sent": 1, "unchanged": 0, "no_trace": 0, "refused": 0},
        },
        "traces": 0,
        "without_trace_id": 1,
    }
    result = operator(sqlite_site).execute({})
    assert expected == result == json.loads(json.dumps(result))


# MLflow


@pytest.fixture(scope="module")
def mlflow_server(tmp_path_factory):
    """A real MLflow of the module."""
    server = MlflowServer(tmp_path_factory.mktemp("mlflow"))
    yield server
    server.kill()


@pytest.fixture
def mlflow(mlflow_server, connect):
    """A real MLflow, which is the target."""
    connect(mlflow_server.url)
    return mlflow_server


#: Each test has runs of its own in the one MLflow.
FIRST = iter(range(10_000, 10**6, 1000))


def scores_in(mlflow, uuids):
    """Return the name, word and source of the assessments of some traces."""
    return [
        [
            (each["assessment_name"], each["feedback"]["value"], each["source"]["source_type"])
            for each in mlflow.assessments(uid)
        ]
        for uid in uuids
    ]


def test_mlflow_shows_each_outcome_once_beside_the_trace(sqlite_site, mlflow):
    uuids = add_answered(sqlite_site.engine, 3, 2998)
    result = operator(sqlite_site, "mlflow").execute({})
    assert (3, 1) == tuple(result["scores"][name]["sent"] for name in ("nrllm.observed", "nrllm.explicit"))
    expected = [
        [("nrllm.observed", "discarded", "CODE")],
        [("nrllm.observed", "unknown", "CODE")],
        [("nrllm.explicit", "helpful", "HUMAN"), ("nrllm.observed", "accepted_unchanged", "CODE")],
    ]
    assert expected == scores_in(mlflow, uuids)
    usage = json.loads(mlflow.info(uuids[0])["trace_metadata"]["mlflow.trace.tokenUsage"])
    assert (900, 120) == (usage["input_tokens"], usage["output_tokens"])
    assert 3 == len(mlflow.spans(uuids[0]))
    assert "4711" not in json.dumps([mlflow.info(uuids[0]), mlflow.spans(uuids[0])])


def test_mlflow_twice_and_two_at_once_have_one_score_an_outcome(sqlite_site, mlflow):
    uuids = add_answered(sqlite_site.engine, 24, next(FIRST))
    both = [threading.Thread(target=hand_on, args=(sqlite_site, "mlflow")) for _ in range(2)]
    for each in both:
        each.start()
    for each in both:
        each.join()
    done = hand_on(sqlite_site, "mlflow")
    assert {"nrllm.observed": {"unchanged": 24}, "nrllm.explicit": {"unchanged": 8}} == fates(done)
    assert 32 == sum(map(len, scores_in(mlflow, uuids)))
    assert {3} == {len(mlflow.spans(uid)) for uid in uuids}


def test_a_rating_that_changed_is_updated_in_mlflow(sqlite_site, mlflow):
    (uid,) = add_answered(sqlite_site.engine, 1, 3003)
    hand_on(sqlite_site, "mlflow")
    NrLlmHook(sqlite_site.conn_id).record_explicit(uid, "not_helpful")
    assert {"sent": 1} == fates(hand_on(sqlite_site, "mlflow"))["nrllm.explicit"]
    assert ("nrllm.explicit", "not_helpful", "HUMAN") == scores_in(mlflow, [uid])[0][0]


def test_an_outcome_without_run_and_calls_is_counted_and_not_fatal(sqlite_site, mlflow):
    uuids = add_answered(sqlite_site.engine, 2, next(FIRST))
    with sqlite_site.engine.begin() as connection:
        connection.execute(delete(run).where(run.c.uuid == uuids[0]))
        connection.execute(delete(telemetry).where(telemetry.c.correlation_id == uuids[0]))
    result = operator(sqlite_site, "mlflow").execute({})
    counts = Counter()
    for each in result["scores"].values():
        counts.update(each)
    assert (1, 1) == (counts["no_trace"], result["traces"])


def test_an_experiment_that_mlflow_does_not_have_is_named(sqlite_site, mlflow):
    with pytest.raises(NrLlmScoresError, match="experiment '4242' was answered with status 404"):
        operator(sqlite_site, "mlflow", experiment_id="4242").execute({})


def _hand_on_until_killed(conn_id, reached):
    for _ in NrLlmScoresHook(conn_id, scores_conn_id="target", target="mlflow").hand_on(None, 2 * AT, page_size=3):
        reached.set()
        threading.Event().wait()


def test_killed_half_way_and_run_again_leaves_one_score_an_outcome(sqlite_site, mlflow):
    uuids = add_answered(sqlite_site.engine, 12, next(FIRST))
    context = multiprocessing.get_context("fork")
    reached = context.Event()
    child = context.Process(target=_hand_on_until_killed, args=(sqlite_site.conn_id, reached))
    child.start()
    assert reached.wait(60)
    os.kill(child.pid, signal.SIGKILL)
    child.join()
    done = hand_on(sqlite_site, "mlflow")
    assert 3 == done.scores["nrllm.observed"]["unchanged"]
    assert 9 == done.scores["nrllm.observed"]["sent"]
    assert [1] * 12 == [sum("observed" in name for name, *_ in each) for each in scores_in(mlflow, uuids)]


def test_mlflow_killed_in_the_middle_and_restarted_has_one_score_an_outcome(sqlite_site, mlflow):
    uuids = add_answered(sqlite_site.engine, 12, next(FIRST))
    pages = hook(sqlite_site, "mlflow", sleep=lambda _: None).hand_on(None, 2 * AT, page_size=3)
    next(pages)
    mlflow.kill()
    with pytest.raises(NrLlmTargetError, match="failed"):
        list(pages)
    mlflow.start()
    done = hand_on(sqlite_site, "mlflow")
    assert 3 == done.scores["nrllm.observed"]["unchanged"]
    assert [1] * 12 == [sum("observed" in name for name, *_ in each) for each in scores_in(mlflow, uuids)]
    assert 16 == sum(map(len, scores_in(mlflow, uuids)))


def test_the_example_dag_hands_on_the_last_days_and_more_where_it_is_asked_to(
    sqlite_site, mlflow, monkeypatch, load_dag
):
    sqlite_site.define_connection("nrllm_default")
    monkeypatch.setenv("AIRFLOW_CONN_MLFLOW_DEFAULT", json.dumps({"conn_type": "http", "host": mlflow.url}))
    now = int(time.time())
    uuids = [add_answered(sqlite_site.engine, 1, next(FIRST), at=now - days * 86400 - 60)[0] for days in (0, 2, 4)]
    moment = datetime.fromtimestamp(now, UTC)
    assert {"hand_on_scores": "success"} == states_of(run_dag(load_dag("nrllm_scores"), moment))
    assert [True, True, False] == [bool(scores) for scores in scores_in(mlflow, uuids)]
    done = run_dag(load_dag("nrllm_scores"), moment + timedelta(seconds=1), run_conf={"days": 365})
    assert {"hand_on_scores": "success"} == states_of(done)
    assert [True, True, True] == [bool(scores) for scores in scores_in(mlflow, uuids)]


@pytest.mark.skipif(Version("3") > Version(airflow.__version__), reason="a run of Airflow 2 has a date")
def test_the_example_dag_runs_without_a_date_as_an_asset_starts_it(sqlite_site, mlflow, monkeypatch, load_dag):
    sqlite_site.define_connection("nrllm_default")
    monkeypatch.setenv("AIRFLOW_CONN_MLFLOW_DEFAULT", json.dumps({"conn_type": "http", "host": mlflow.url}))
    (uid,) = add_answered(sqlite_site.engine, 1, next(FIRST), at=int(time.time()) - 60)
    assert {"hand_on_scores": "success"} == states_of(run_dag(load_dag("nrllm_scores"), None))
    assert [True] == [bool(scores) for scores in scores_in(mlflow, [uid])]
