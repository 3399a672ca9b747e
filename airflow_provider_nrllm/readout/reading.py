"""Reading which group of a readout a correlation id is in."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from sqlalchemy.engine import Connection

from airflow_provider_nrllm.readout.counts import RangeOf
from airflow_provider_nrllm.readout.groups import Dimension, GroupKey, Kind, Label
from airflow_provider_nrllm.readout.statements import ReadoutStatements


def keys_of(
    connection: Connection, correlation_ids: Collection[str], grouping: Sequence[Dimension]
) -> Mapping[str, GroupKey]:
    """
    Return the group of each of the correlation ids, by one statement at most.

    :param connection: in the snapshot of the page
    :param correlation_ids: a page of them
    :param grouping: by what to group
    """
    untold = tuple(Label(Kind.NO_TELEMETRY) for _ in grouping)
    keys = dict.fromkeys(correlation_ids, untold)
    if keys:
        statements = ReadoutStatements(connection.dialect.name, None, 0, RangeOf.OUTCOME, tuple(grouping))
        for correlation_id, *labels in connection.execute(statements.labels_of_ids(sorted(correlation_ids))):
            keys[text_of(correlation_id)] = key_of(labels)
    return keys


def key_of(labels: Sequence[Any]) -> GroupKey:
    """Return a group's key from its kinds and names in turn."""
    return tuple(
        Label(Kind(text_of(kind)), text_of(name) if text_of(kind) == Kind.NAMED else "")
        for kind, name in zip(labels[::2], labels[1::2], strict=True)
    )


def text_of(value: Any) -> str:
    """Return a text that may have come as bytes."""
    return bytes(value).decode("utf-8", "replace") if isinstance(value, bytes | bytearray | memoryview) else str(value)
