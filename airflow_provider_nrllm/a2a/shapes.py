"""
Whether a result has the shape that A2A 1.0 gives it, asked before anything is locked or sealed. Pure.

A result that no client can read would be completed and lost (ADR-282). No error holds a value of it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from airflow_provider_nrllm.a2a.sealed import Result

ROLES: Final = ("ROLE_AGENT", "ROLE_USER")
#: What a part holds, one of these.
CONTENTS: Final = ("text", "raw", "url", "data")
#: The journal numbers a revision's artifacts from 0 and its status last, in a SMALLINT.
MOST_ARTIFACTS: Final = 32_767


def check_result(result: Result) -> None:
    """
    Check a result as it is handed in.

    :raises ValueError: names the place of the first fault and what was expected there, never a value
    """
    artifacts = _listed(result.artifacts, "artifacts")
    if len(artifacts) > MOST_ARTIFACTS:
        raise ValueError(f"artifacts: {len(artifacts)}; expected at most {MOST_ARTIFACTS}, as the journal numbers them")
    seen: set[str] = set()
    for number, artifact in enumerate(artifacts):
        place = f"artifacts[{number}]"
        _check_content(artifact, place, "artifactId")
        if artifact["artifactId"] in seen:
            raise ValueError(f"{place}.artifactId: the one of an artifact before; expected one of its own")
        seen.add(artifact["artifactId"])
    if result.message is not None:
        check_message(result.message, "message")
    for number, message in enumerate(_listed(result.history, "history")):
        check_message(message, f"history[{number}]")


def check_message(message: Any, place: str) -> None:
    """
    Check a message.

    :param place: names it in an error
    :raises ValueError: as :func:`check_result`
    """
    _check_content(message, place, "messageId")
    if message.get("role") not in ROLES:
        raise ValueError(f"{place}.role: none of A2A 1.0; expected {' or '.join(ROLES)}")


def _listed(values: Any, place: str) -> Sequence[Any]:
    if not isinstance(values, tuple | list):
        raise ValueError(f"{place}: a {type(values).__name__}; expected a tuple of A2A objects")
    return values


def _check_content(value: Any, place: str, id_name: str) -> None:
    """Check what artifacts and messages share: an id, parts, and that it can be written as JSON."""
    if not isinstance(value, Mapping):
        raise ValueError(f"{place}: a {type(value).__name__}; expected an A2A object, a mapping")
    if not isinstance(value.get(id_name), str) or not value[id_name]:
        raise ValueError(f"{place}.{id_name}: missing or empty; expected a text")
    parts = value.get("parts")
    if not isinstance(parts, tuple | list) or not parts:
        raise ValueError(f"{place}.parts: missing or empty; expected at least one part")
    for number, part in enumerate(parts):
        if not isinstance(part, Mapping) or sum(name in part for name in CONTENTS) != 1:
            raise ValueError(f"{place}.parts[{number}]: expected a mapping with one of {', '.join(CONTENTS)}")
        for name in ("text", "raw", "url"):
            if name in part and not isinstance(part[name], str):
                raise ValueError(f"{place}.parts[{number}].{name}: a {type(part[name]).__name__}; expected a text")
    _check_json(value, place)


def _check_json(value: Any, place: str) -> None:
    try:
        # Without escapes, so that a lone surrogate is seen; a client reads each number as a double.
        text = json.dumps(value, allow_nan=False, ensure_ascii=False)
        text.encode("utf-8")
        json.loads(text, parse_int=_read_as_double, parse_float=_read_as_double)
    except UnicodeEncodeError:
        raise ValueError(f"{place}: holds text that is not Unicode, a lone surrogate") from None
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise ValueError(f"{place}: cannot be written as JSON that a client reads ({type(error).__name__})") from None


def _read_as_double(digits: str) -> float:
    number = float(digits)
    if number in (float("inf"), float("-inf")):
        raise OverflowError
    return number
