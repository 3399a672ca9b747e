"""
A slow model of what an edit is to a run's text, by the values themselves, and random histories to ask it of.

Written from docs/explanation/edited-over-reports.md, one row after the other; it shares nothing with the package.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from random import Random
from typing import Any

ADD, MODIFY, MOVE, DELETE, UNDELETE, STAGECHANGE, PUBLISH = range(1, 8)
WINDOW = 7 * 86400

RELEASE = {"hidden", "disabled", "disable", "starttime", "endtime"}
PLACE = {"colPos", "tx_container_parent", "sorting", "pid"}
AUTOMATIC = {"l10n_diffsource", "l18n_diffsource", "l10n_state", "fe_group", "tstamp", "updatedon", "SYS_LASTCHANGED"}
FIELDS = ["header", "bodytext", "categories", "pi_flexform", "hidden", "colPos", "l18n_diffsource", "t3ver_stage"]
#: Values of which some are the same to TYPO3: as text, as nothing, and as JSON.
VALUES: list[Any] = ["", "0", 0, None, "a", "b", "A", "a ", 1, "1", '{"x": [1, 2]}', '{"x":[1,2]}', '{"x":[2,1]}', "[]"]

ORDER = ["run_text", "cannot_be_told", "beside", "release", "move", "restore", "no_change"]


@dataclass(frozen=True)
class Row:
    """
    A history row: for ADD ``new`` is the record.

    :param readable: whether what it holds can be read
    """

    at: int
    action: int
    old: dict[str, Any]
    new: dict[str, Any]
    readable: bool = True

    @property
    def data(self) -> str | None:
        """Return what ``history_data`` holds."""
        if not self.readable:
            return '{"newRecord": {"header'
        if self.action == ADD:
            return json.dumps(self.new)
        if self.action in (MODIFY, PUBLISH):
            return json.dumps({"oldRecord": self.old, "newRecord": self.new})
        return None


@dataclass(frozen=True)
class History:
    """What one write at ``at`` did itself, and what was done later, in order."""

    at: int
    own: list[Row]
    later: list[Row]


def random_history(random: Random, at: int) -> History:
    """Return a history of a record that a run made, changed or deleted."""
    # Few fields and values in most of them, so that changes meet, and values come back.
    fields = random.sample(FIELDS, random.choice([1, 2, 2, 4, 8]))
    values = random.sample(VALUES, random.choice([2, 2, 3, 14]))
    state = {name: random.choice(values) for name in fields}

    def change(when: int, action: int) -> Row:
        names = random.sample(fields, min(random.choice([1, 1, 1, 2, 3]), len(fields)))
        old, new = {}, {}
        for name in names:
            old[name] = state[name]
            new[name] = state[name] = random.choice(values)
        return Row(when, action, old, new, readable=random.random() > 0.05)

    kind = random.random()
    if kind < 0.45:
        own = [Row(at, ADD, {}, dict(state), readable=random.random() > 0.05)]
        own += [change(at, MODIFY)] if random.random() < 0.2 else []
    elif kind < 0.9:
        own = [change(at, MODIFY) for _ in range(random.choice([1, 1, 2]))]
    else:
        own = [Row(at, DELETE, {}, {})]
    later, when = [], at
    for _ in range(random.choice([0, 1, 1, 2, 3, 4])):
        when += random.choice([1, 60, 86400, 3 * 86400])
        pick = random.random()
        if pick < 0.7:
            later.append(change(when, MODIFY))
        elif pick < 0.78:
            later.append(Row(when, MOVE, {}, {}))
        elif pick < 0.86:
            later.append(change(when, PUBLISH))
        elif pick < 0.9:
            later.append(Row(when, STAGECHANGE, {}, {}))
        else:
            later += [Row(when, DELETE, {}, {}), Row(when + 1, UNDELETE, {}, {})]
            when += 1
    return History(at, own, later)


def meaning(history: History) -> str:
    """Return what the edits are to the run's text: the first of :data:`ORDER` that any later row has."""
    deleted_by_us = history.own[0].action == DELETE
    rows = [row for row in history.later if row.at <= history.at + WINDOW]
    rows = [row for row in rows if not (deleted_by_us and row.action == DELETE)]
    found = {_meaning_of(row, history.own, rows, deleted_by_us) for row in rows}
    return next((one for one in ORDER if one in found), "cannot_be_told")


def _meaning_of(row: Row, own: list[Row], rows: list[Row], deleted_by_us: bool) -> str:
    if row.action == MOVE:
        return "move"
    if row.action in (DELETE, UNDELETE):
        return "run_text" if deleted_by_us else "restore"
    if row.action == STAGECHANGE:
        return "no_change"
    if not row.readable:
        return "cannot_be_told"
    text = set()
    for name in row.new:
        about_no_text = name in RELEASE | PLACE | AUTOMATIC or name.startswith("t3ver_")
        if not about_no_text and not same(row.old[name], row.new[name]) and not _came_back(name, own, rows):
            text.add(name)
    if text:
        ours = _fields_of(own)
        if ours == "unknown":
            return "cannot_be_told"
        return "run_text" if ours == "all" or text & set(ours) else "beside"
    if row.action == PUBLISH or set(row.new) & RELEASE:
        return "release"
    return "move" if set(row.new) & PLACE else "no_change"


def _fields_of(own: list[Row]) -> list[str] | str:
    """Return the fields that the write set; all of a record whose row cannot be read."""
    if any(row.action == ADD and not row.readable for row in own):
        return "all"
    if not all(row.readable for row in own):
        return "unknown"
    return [name for row in own for name, value in row.new.items() if row.action != ADD or not is_empty(value)]


def _came_back(name: str, own: list[Row], rows: list[Row]) -> bool:
    """Whether the last value in the window is the one that the write gave."""
    ours = [row.new[name] for row in own if row.readable and name in row.new]
    theirs = [row.new[name] for row in rows if row.readable and name in row.new]
    return bool(ours) and bool(theirs) and same(ours[-1], theirs[-1])


def is_empty(value: Any) -> bool:
    """Whether a value is nothing to TYPO3."""
    return value is None or str(value) in ("", "0", "false", "[]", "{}")


def same(one: Any, other: Any) -> bool:
    """Whether two values are the same, as texts or as JSON."""
    if is_empty(one) and is_empty(other):
        return True
    if one is None or other is None:
        return False
    if str(one) == str(other):
        return True
    if str(one)[:1] in ("{", "[") and str(other)[:1] in ("{", "["):
        return bool(json.loads(one) == json.loads(other))
    return False
