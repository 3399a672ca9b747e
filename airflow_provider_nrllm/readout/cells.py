"""The cells of a readout's tables, and the words in them, for all that people read. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from airflow_provider_nrllm.readout.groups import Dimension
from airflow_provider_nrllm.readout.shares import Difference, PooledDifference, Share

MINUS = "\N{MINUS SIGN}"
NO_SHARE = "\N{EN DASH}"


class Link(NamedTuple):
    """
    A text that may lead somewhere.

    :param address: where it leads; empty for nowhere
    """

    text: str
    address: str = ""


class Links(NamedTuple):
    """A cell of texts that may lead somewhere."""

    links: tuple[Link, ...]


#: What a cell holds; :func:`lines_of` and :func:`cell_text` say how it reads.
Cell = str | Links | Share | Difference | PooledDifference

#: Of a difference whose interval holds 0.
UNTOLD = "cannot be told yet"


class Row(NamedTuple):
    """
    One group in a table.

    :param apart: whether it is no single name and stands below the others
    """

    name: str
    cells: tuple[Cell, ...]
    apart: bool = False


class Table(NamedTuple):
    """
    A table for people.

    :param topic: one word that tells it from the others
    :param head: what stands above the names, then above the cells
    :param notes: what is said under it, a sentence each
    :param texts: whether its cells are texts, which are data, and not figures
    :param groups_in_head: whether groups stand above the cells, and periods before them
    """

    topic: str
    title: str
    caption: str
    head: tuple[str, ...]
    rows: tuple[Row, ...]
    groups_in_head: bool = False
    notes: tuple[str, ...] = ()
    texts: bool = False


def by_words(grouping: Sequence[Dimension]) -> str:
    """Return by what is grouped, in words."""
    return " and ".join(dimension.words for dimension in grouping)


def words(value: str) -> str:
    """Return a stored value in words."""
    return value.replace("_", " ")


def lines_of(cell: Cell) -> tuple[str, ...]:
    """Return what a cell says: its figure, then, for a share or a difference, how sure it is."""
    if isinstance(cell, str):
        return (cell,)
    if isinstance(cell, Links):
        return tuple(link.text for link in cell.links) or (NO_SHARE,)
    if cell.value is None:
        return (NO_SHARE,)
    if cell.interval is None:
        return _signed(cell.value), UNTOLD
    low, high = cell.interval
    if not isinstance(cell, Share):
        told = () if cell.is_told else (UNTOLD,)
        return _signed(cell.value), *told, f"{_signed(low)} to {_signed(high)}"
    return f"{100 * cell.value:.1f} %", f"{cell.count:,} of {cell.of:,}", f"{100 * low:.1f} to {100 * high:.1f}"


def cell_text(cell: Cell) -> str:
    """Return what a cell says on one line."""
    figure, *sure = lines_of(cell)
    if not sure:
        return figure
    *counted, interval = sure
    return " · ".join([*counted, f"{figure} ({interval})"])


def counted(number: int, one: str) -> str:
    """Return a number of things, the one thing given."""
    return f"{number:,} {one}" if number == 1 else f"{number:,} {one}s"


def _signed(value: float) -> str:
    text = f"{100 * abs(value):.1f}"
    return text if text == "0.0" else f"{'+' if value > 0 else MINUS}{text}"
