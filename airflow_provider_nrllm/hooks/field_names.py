"""Reading the names of the fields that the history rows after some writes name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sqlalchemy.engine import Connection

from airflow_provider_nrllm.edited_audit import FieldsByRow, rows_to_read
from airflow_provider_nrllm.evidence import Evidence, Target, Write
from airflow_provider_nrllm.history_fields import field_names, fields_by_row
from airflow_provider_nrllm.outcomes import Aftermath, aftermath


def field_names_after(
    connection: Connection, writes: Iterable[Write], evidence: Mapping[Target, Evidence], window: int
) -> FieldsByRow:
    """
    Return the field names of the rows that tell what was changed after the writes.

    :param connection: in the snapshot of the page
    :param evidence: on every record that the writes name
    :param window: how long a record is watched after a write, in seconds
    """
    return read_field_names(
        connection,
        (aftermath(write.event, evidence[write.target], window) for write in writes if write.target is not None),
    )


def read_field_names(connection: Connection, seen: Iterable[Aftermath]) -> FieldsByRow:
    """
    Return the names of the fields that tell what the later rows are, with one statement at most.

    Names only: the database takes them out of the JSON, and no value leaves it.

    :param connection: in the snapshot of the page
    :param seen: what happened after some writes
    """
    uids = {uid for after in seen for uid in rows_to_read(after)}
    if not uids:
        return {}
    return fields_by_row(connection.execute(field_names(connection.dialect.name, uids)).fetchall())
