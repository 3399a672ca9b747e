"""The record that the payload of a ``tool_write`` event names. Pure. The rule is that of nr_llm's ADR-185."""

from __future__ import annotations

import json
import re
from typing import Any, Never

from airflow_provider_nrllm.outcomes.evidence import Target

_TABLE_NAME = re.compile(r"[A-Za-z0-9_]{1,64}")
_GREATEST_UID = 2147483647


def _no_json(constant: str) -> Never:
    raise ValueError(f"{constant} is not JSON")


_decode = json.JSONDecoder(parse_constant=_no_json).decode
#: Python refuses to convert integers of thousands of digits, which JSON allows; no uid has so many.
_decode_long_numbers = json.JSONDecoder(
    parse_constant=_no_json, parse_int=lambda digits: int(digits) if len(digits) < 20 else None
).decode


def _decoded(payload: str | bytes) -> Any:
    text = payload.decode() if isinstance(payload, bytes) else payload
    try:
        return _decode(text)
    except ValueError:
        return _decode_long_numbers(text)


def target_of(payload: object) -> Target | None:
    """
    Return the record that the payload of a ``tool_write`` event names, None if it cannot be read.

    ADR-185: readable is a JSON object whose ``writeTargetTable`` is a table name as a whole and whose
    ``writeTargetUid`` is a JSON integer from 1 to 2147483647.
    """
    if not isinstance(payload, str | bytes):
        return None
    try:
        value = _decoded(payload)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict):
        return None
    table, uid = value.get("writeTargetTable"), value.get("writeTargetUid")
    if not isinstance(table, str) or not _TABLE_NAME.fullmatch(table):
        return None
    if not isinstance(uid, int) or isinstance(uid, bool) or not 1 <= uid <= _GREATEST_UID:
        return None
    return Target(table, uid)
