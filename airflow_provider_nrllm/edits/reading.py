"""Reading what the fields of history rows tell, for the writes of a page."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy.engine import Connection

from airflow_provider_nrllm.database.conditions import slices
from airflow_provider_nrllm.edits.changes import FieldChanges, questions, rows_to_read
from airflow_provider_nrllm.edits.field_names import Fields, field_names, fields_by_row
from airflow_provider_nrllm.edits.field_values import read_answers
from airflow_provider_nrllm.edits.meanings import IgnoredFields
from airflow_provider_nrllm.outcomes.rules import Aftermath


def read_field_changes(connection: Connection, seen: Iterable[Aftermath], ignored: IgnoredFields) -> FieldChanges:
    """
    Return what is known of the fields that the later rows changed, by two statements.

    :param connection: in the snapshot of the page
    :param seen: what happened after some writes
    :param ignored: the fields whose changes are no edit of a text
    """
    seen = [after for after in seen if after.changed]
    uids = {uid for after in seen for uid in rows_to_read(after)}
    if not uids:
        return FieldChanges({})
    names: dict[int, Fields] = {}
    for some in slices(uids):
        names |= fields_by_row(connection.execute(field_names(connection.dialect.name, some)).fetchall())
    asked = {question for after in seen for question in questions(after, names, ignored)}
    return FieldChanges(names, read_answers(connection, asked))
