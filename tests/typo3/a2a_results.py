"""The decision table of ADR-282 as values: what a completion is given, and what must become of it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from a2a.utils.proto_utils import validate_proto_required_fields
from google.protobuf.json_format import ParseDict

from airflow_provider_nrllm.a2a.rules import State
from airflow_provider_nrllm.a2a.sealed import Result
from airflow_provider_nrllm.a2a.tasks import Task

_DECISIONS = Path(__file__).parent.parent / "cases" / "a2a_decisions.json"

DECISIONS: list[dict[str, Any]] = json.loads(_DECISIONS.read_text())


def decision_name(case: dict[str, Any]) -> str:
    """Return the words of a case, to name a test with."""
    redacted = f", redaction {case['redacted']}" if "redacted" in case else ""
    return f"{case['ceiling']}, {case['result']}{redacted}, run {case['run']}"


def message(text: str, role: str = "ROLE_AGENT") -> dict[str, Any]:
    """Return an A2A message of one text."""
    return {"messageId": f"message-{text}", "role": role, "parts": [{"text": text}]}


def artifact(text: str) -> dict[str, Any]:
    """Return an A2A artifact of one text."""
    return {"artifactId": f"artifact-{text}", "name": text, "parts": [{"text": text}]}


def result(text: str = "secret") -> Result:
    """Return a result of two artifacts, a final status message and a history."""
    return Result(
        artifacts=(artifact(f"{text} one"), artifact(f"{text} two")),
        message=message(f"{text} done"),
        history=(message(f"{text} asked", "ROLE_USER"), message(f"{text} done")),
    )


def seal(text: str, _purpose: str = "", _task_id: str = "") -> str:
    """Seal as nr-vault would, but so that a test can open it."""
    return "nrv1:" + text.encode().hex()


def unseal(sealed: str, _purpose: str = "", _task_id: str = "") -> str:
    """Open what :func:`seal` made."""
    return bytes.fromhex(sealed.removeprefix("nrv1:")).decode()


def no_seal(text: str, _purpose: str, _task_id: str) -> str:
    """Hand a text back as it is."""
    return text


def broken_seal(_text: str, _purpose: str = "", _task_id: str = "") -> str:
    """Fail to seal, with the content in the error, as a careless library would."""
    raise RuntimeError(f"cannot seal {_text}")


def logged(caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]) -> str:
    """Return all that was logged: Airflow 3 prints what Airflow 2 gives to the handlers."""
    printed = capsys.readouterr()
    return caplog.text + printed.out + printed.err


def offered(case: dict[str, Any]) -> tuple[Result, Result | None]:
    """Return the result and the redacted form that a case hands in, before they are sealed."""
    whole = Result() if case["result"] == "no artifacts" else result("secret")
    redaction = case.get("redacted", "handed in")
    if redaction == "not handed in":
        return whole, None
    if case["result"] == "no artifacts" or redaction == "leaves nothing":
        return whole, Result()
    return whole, result("redacted")


def task(**changes: Any) -> Task:
    """Return a completed task with two artifacts."""
    completed = Task(
        uid=1,
        task_id="task-1",
        context_id="context-1",
        state=State.COMPLETED,
        revision=3,
        reason="",
        status_message="nrv1:m",
        artifacts=("nrv1:a", "nrv1:b"),
        history=("nrv1:h",),
        status_at=1_700_000_000,
    )
    return replace(completed, **changes)


def parsed(shown: dict[str, Any], kind: Any) -> Any:
    """Return the message of a JSON that A2A 1.0 knows every field of, with all that is required."""
    read = ParseDict(json.loads(json.dumps(shown)), kind(), ignore_unknown_fields=False)
    validate_proto_required_fields(read)
    return read
