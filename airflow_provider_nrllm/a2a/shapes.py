"""
Whether a result has the shape that A2A 1.0 gives it, asked before anything is locked or sealed. Pure.

A result that no client can read would be completed and lost (ADR-282). No error holds a value of it.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from airflow_provider_nrllm.a2a.sealed import Result

ROLES: Final = ("ROLE_AGENT", "ROLE_USER")
#: What a part holds, one of these.
CONTENTS: Final = ("text", "raw", "url", "data")
#: The journal numbers a revision's artifacts from 0 and its status last, in a SMALLINT.
MOST_ARTIFACTS: Final = 32_767
#: How deep objects and lists may be nested in data and metadata: a client of the A2A project reads no more than a
#: hundred levels, of which an object in an object takes three.
MOST_LEVELS: Final = 30


def check_result(result: Result) -> None:
    """
    Check a result as it is handed in.

    :raises ValueError: names the place of the first fault and what was expected there, never a value
    """
    if not isinstance(result, Result):
        raise ValueError(f"result: a {type(result).__name__}; expected a Result")
    artifacts = _listed(result.artifacts, "artifacts")
    if len(artifacts) > MOST_ARTIFACTS:
        raise ValueError(f"artifacts: {len(artifacts)}; expected at most {MOST_ARTIFACTS}, as the journal numbers them")
    seen: set[str] = set()
    for number, artifact in enumerate(artifacts):
        place = f"artifacts[{number}]"
        _check_object(artifact, place, _ARTIFACT, "artifactId")
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
    _check_object(message, place, _MESSAGE, "messageId")
    if message.get("role") not in ROLES:
        raise ValueError(f"{place}.role: not a role of A2A 1.0; expected {' or '.join(ROLES)}")


def _listed(values: Any, place: str) -> Sequence[Any]:
    if not isinstance(values, tuple | list):
        raise ValueError(f"{place}: a {type(values).__name__}; expected a tuple of A2A objects")
    return values


def _check_object(value: Any, place: str, fields: Mapping[str, _Check], id_name: str) -> None:
    """Check an artifact or a message: its id, its parts, and that it can be written as JSON."""
    if not isinstance(value, Mapping):
        raise ValueError(f"{place}: a {type(value).__name__}; expected an A2A object, a mapping")
    if not isinstance(value.get(id_name), str) or not value[id_name]:
        raise ValueError(f"{place}.{id_name}: missing or empty; expected a text")
    parts = value.get("parts")
    if not isinstance(parts, tuple | list) or not parts:
        raise ValueError(f"{place}.parts: missing or empty; expected at least one part")
    _check_fields(value, place, fields)
    for number, part in enumerate(parts):
        if not isinstance(part, Mapping) or sum(name in part for name in CONTENTS) != 1:
            raise ValueError(f"{place}.parts[{number}]: expected a mapping with one of {', '.join(CONTENTS)}")
        _check_fields(part, f"{place}.parts[{number}]", _PART)
    _check_json(value, place)


def _check_fields(value: Mapping[Any, Any], place: str, fields: Mapping[str, _Check]) -> None:
    # Not named: what is no field's name may be content.
    if unknown := sum(name not in fields for name in value):
        raise ValueError(f"{place}: {unknown} fields that A2A 1.0 does not have; expected only {', '.join(fields)}")
    for name, check in fields.items():
        if name in value and (expected := check(value[name])):
            raise ValueError(f"{place}.{name}: a {type(value[name]).__name__}; expected {expected}")


#: Returns what was expected in place of a value, None where nothing else was.
_Check = Callable[[Any], str | None]


def _text(value: Any) -> str | None:
    return None if isinstance(value, str) else "a text"


def _texts(value: Any) -> str | None:
    is_list = isinstance(value, tuple | list) and all(isinstance(each, str) for each in value)
    return None if is_list else "a list of texts"


def _bytes(value: Any) -> str | None:
    try:
        base64.b64decode(value, validate=True)
    except (TypeError, ValueError):
        return "bytes as base64 text"
    return _text(value)


def _object(value: Any) -> str | None:
    return _json(value) if isinstance(value, Mapping) else "a mapping"


def _json(value: Any, levels: int = MOST_LEVELS) -> str | None:
    """Check a value of JSON: what cannot be written at all is found when it is."""
    if levels < 0:
        return f"at most {MOST_LEVELS} levels of objects and lists"
    if isinstance(value, Mapping):
        if not all(isinstance(name, str) for name in value):
            return "names that are texts"
        value = list(value.values())
    inner = value if isinstance(value, tuple | list) else ()
    return next((wrong for each in inner if (wrong := _json(each, levels - 1))), None)


def _anything(_value: Any) -> str | None:
    return None


_PART: Final[Mapping[str, _Check]] = {
    "text": _text,
    "raw": _bytes,
    "url": _text,
    "data": _json,
    "metadata": _object,
    "filename": _text,
    "mediaType": _text,
}
#: The parts and the role are looked at by themselves.
_ARTIFACT: Final[Mapping[str, _Check]] = {
    "artifactId": _text,
    "name": _text,
    "description": _text,
    "parts": _anything,
    "metadata": _object,
    "extensions": _texts,
}
_MESSAGE: Final[Mapping[str, _Check]] = {
    "messageId": _text,
    "contextId": _text,
    "taskId": _text,
    "role": _anything,
    "parts": _anything,
    "metadata": _object,
    "extensions": _texts,
    "referenceTaskIds": _texts,
}


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
