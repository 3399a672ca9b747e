"""Spans of time as ``(first, last)`` seconds, both included: which a page needs, and which it lacks. Pure."""

from __future__ import annotations

from collections.abc import Iterable

Span = tuple[int, int]


def merged(spans: Iterable[Span]) -> list[Span]:
    """Return the same seconds as the fewest spans, in order."""
    result: list[Span] = []
    for first, last in sorted(spans):
        if result and first <= result[-1][1] + 1:
            result[-1] = (result[-1][0], max(result[-1][1], last))
        else:
            result.append((first, last))
    return result


def lacking(needed: Iterable[Span], known: Iterable[Span]) -> list[Span]:
    """
    Return what is needed and not known, as the fewest spans, in order.

    :param needed: merged
    :param known: merged
    """
    known = list(known)
    result: list[Span] = []
    for first, last in needed:
        for known_first, known_last in known:
            if known_last < first or known_first > last:
                continue
            if first < known_first:
                result.append((first, known_first - 1))
            first = known_last + 1
        if first <= last:
            result.append((first, last))
    return result
