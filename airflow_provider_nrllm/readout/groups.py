"""By what outcomes are grouped, and what a group is called. Pure."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple


class Dimension(StrEnum):
    """
    By what outcomes can be grouped: what telemetry says of their calls, their run's events of its writes, or the site.

    There is none by person (ADR-176).

    The value is what an operator's argument says.
    """

    SERVED_MODEL = "served_model"
    REQUESTED_MODEL = "requested_model"
    RESPONSE_MODEL = "response_model"
    CONFIGURATION = "configuration"
    SERVED_CONFIGURATION = "served_configuration"
    ROUTING_MODE = "routing_mode"
    SOURCE_EXTENSION = "source_extension"
    OPERATION = "operation"
    TOOL = "tool"
    TABLE = "table"
    SITE = "site"

    @property
    def words(self) -> str:
        """The dimension as a reader knows it."""
        return self.value.replace("_", " ")

    @property
    def empty_name(self) -> str | None:
        """What '' in telemetry stands for; None where it stands for nothing: an old row, or a failed call."""
        return "no automatic selection" if self is Dimension.ROUTING_MODE else None


class Kind(StrEnum):
    """The kind of a group: one name, or correlation ids that cannot be counted under one."""

    NAMED = "named"
    SEVERAL = "several"
    NOT_RECORDED = "not recorded"
    NO_TELEMETRY = "no telemetry"
    PURGED = "purged"


class Label(NamedTuple):
    """The label of a group in one dimension; ``name`` is empty unless it is ``named``."""

    kind: Kind
    name: str = ""

    def text(self, dimension: Dimension) -> str:
        """Return the label in words."""
        if self.kind is Kind.SEVERAL:
            return f"several {dimension.words}s"
        if self.kind is Kind.NAMED:
            return self.name or dimension.empty_name or ""
        if self.kind is Kind.PURGED:
            return "writes purged, or none made"
        return str(self.kind)


#: One label, or two for an arm.
GroupKey = tuple[Label, ...]


def grouping_of(group_by: str | Sequence[str]) -> tuple[Dimension, ...]:
    """
    Return the dimensions that an operator's argument names.

    :param group_by: one of :class:`Dimension`, or two different ones: an arm
    :raises ValueError: for anything else
    """
    names = [group_by] if isinstance(group_by, str) else list(group_by)
    known = [str(dimension) for dimension in Dimension]
    unknown = [name for name in names if name not in known]
    if unknown:
        raise ValueError(f"group_by names {unknown[0]!r}; expected one or two of {', '.join(known)}")
    if not 1 <= len(names) <= 2 or len(set(names)) < len(names):
        raise ValueError(f"group_by is {group_by!r}; expected one dimension or two different ones")
    return tuple(Dimension(name) for name in names)


def grouping_of_sites(group_by: str | Sequence[str]) -> tuple[Dimension, ...]:
    """
    Return the dimensions of a report on several sites: one alone is told within each site.

    :param group_by: as of :func:`grouping_of`; of two dimensions that do not name the site, the sites are one
    """
    grouping = grouping_of(group_by)
    return grouping if len(grouping) > 1 or Dimension.SITE in grouping else (Dimension.SITE, *grouping)


def filters_of(where: Mapping[str, Sequence[str]] | None) -> Mapping[Dimension, tuple[str, ...]]:
    """
    Return the names that an operator's argument lets count, by dimension.

    :param where: lists of names by one of :class:`Dimension`; ``""`` is no automatic selection
    :raises ValueError: for anything else
    """
    found: dict[Dimension, tuple[str, ...]] = {}
    for dimension, names in (where or {}).items():
        (known,) = grouping_of(dimension)
        if isinstance(names, str) or not names or not all(isinstance(name, str) for name in names):
            raise ValueError(f"where[{dimension!r}] is {names!r}; expected a list of one or more names")
        found[known] = tuple(dict.fromkeys(names))
    return found


def filters_text(where: Mapping[Dimension, Sequence[str]]) -> str:
    """Return the names that count, in words; empty for all."""
    told = (
        f"{dimension.words} {' or '.join(Label(Kind.NAMED, name).text(dimension) for name in names)}"
        for dimension, names in where.items()
    )
    return "; ".join(told)


def label_text(key: GroupKey, grouping: Sequence[Dimension]) -> str:
    """Return what a group is called, in words."""
    return " · ".join(label.text(dimension) for label, dimension in zip(key, grouping, strict=True))


def readable(text: str) -> str:
    """Return a text on one line, without what controls a terminal, turns text around, or no XML may hold."""
    return "".join("\N{REPLACEMENT CHARACTER}" if _moves_text(char) else char for char in text)


def _moves_text(char: str) -> bool:
    turns = "\u202a" <= char <= "\u202e" or "\u2066" <= char <= "\u2069"
    return turns or unicodedata.category(char) in ("Cc", "Cs", "Cn", "Zl", "Zp")
