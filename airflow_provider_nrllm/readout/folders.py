"""Folders that hold one readout each, named by the end of its range. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime

#: The folder beside the dated ones that holds what the newest of them holds.
LATEST = "latest"

# No colon: not every file system takes one. Of one width, so that the order of names is the order of time.
_FORMAT = "%Y-%m-%dT%H%M%SZ"
_DATED = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{6}Z")


def folder_of(end: int) -> str:
    """
    Return the folder of a readout: the same for the same range, so that a repeated run replaces its own files.

    :param end: the end of its range, in Unix seconds
    """
    return datetime.fromtimestamp(end, UTC).strftime(_FORMAT)


def end_of(folder: str) -> datetime:
    """
    Return the end of the range of a dated folder, UTC.

    :raises ValueError: for a name that is no moment
    """
    return datetime.strptime(folder, _FORMAT).replace(tzinfo=UTC)


def newest_first(names: Iterable[str]) -> list[str]:
    """Return those of the names that are dated folders, the newest first."""
    return sorted((name for name in names if _is_dated(name)), reverse=True)


def _is_dated(name: str) -> bool:
    if not _DATED.fullmatch(name):
        return False
    try:
        end_of(name)
    except ValueError:
        return False
    return True
