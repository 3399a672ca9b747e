"""Reading what an audit and ``our fields`` need of the runs of a page: which fields were changed, what is hidden."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence

from sqlalchemy.engine import Connection

from airflow_provider_nrllm.database.conditions import slices
from airflow_provider_nrllm.edits.audit import AuditedRun, acceptance_of_run, meaning_of_run, ways_of_run
from airflow_provider_nrllm.edits.changes import FieldChanges, Question, edit_of_our_fields, questions, rows_to_read
from airflow_provider_nrllm.edits.field_names import Fields, field_names, fields_by_row
from airflow_provider_nrllm.edits.field_values import read_answers
from airflow_provider_nrllm.edits.meanings import EditedMeans, IgnoredFields
from airflow_provider_nrllm.edits.visibility import VisibilityReader
from airflow_provider_nrllm.outcomes.reading import EvidenceReader, runs_with_writes
from airflow_provider_nrllm.outcomes.rules import Aftermath, ObservedOutcome, any_change


def read_field_changes(
    connection: Connection,
    seen: Iterable[Aftermath],
    ignored: IgnoredFields,
    hiding: Mapping[int, str] | None = None,
) -> FieldChanges:
    """
    Return what is known of the fields that the later rows changed, by two statements.

    :param connection: in the snapshot of the page
    :param seen: what happened after some writes
    :param ignored: the fields whose changes are no edit of a text
    :param hiding: the uids of other history rows, of which one field is asked for if they name it
    """
    seen, hiding = [after for after in seen if after.changed], hiding or {}
    uids = {uid for after in seen for uid in rows_to_read(after)} | hiding.keys()
    if not uids:
        return FieldChanges({})
    names: dict[int, Fields] = {}
    for some in slices(uids):
        names |= fields_by_row(connection.execute(field_names(connection.dialect.name, some)).fetchall())
    asked = {question for after in seen for question in questions(after, names, ignored)}
    known = {(question.row, question.field) for question in asked}
    asked |= {
        Question(uid, name)
        for uid, name in hiding.items()
        if name in (names.get(uid) or ()) and (uid, name) not in known
    }
    return FieldChanges(names, read_answers(connection, asked))


class AuditReader:
    """
    Reads what an audit says of the runs of a page, in a fixed number of statements.

    :param window: the window the outcomes were derived with, in seconds
    :param ignored: the fields whose changes are no edit of a text
    :param edited_means: what made a run ``edited`` when it was derived
    :param machine_users: those the outcomes were derived with
    """

    def __init__(
        self, window: int, ignored: IgnoredFields, edited_means: EditedMeans, machine_users: Sequence[str]
    ) -> None:
        self.window = window
        self.ignored = ignored
        self.edited_means = edited_means
        self._evidence = EvidenceReader(window, machine_users)
        self._visibility = VisibilityReader()

    def read(self, connection: Connection, answered: Mapping[str, str]) -> dict[str, AuditedRun]:
        """
        Return what an audit says of each run.

        :param connection: in the snapshot of the page
        :param answered: the outcome of each run by its uuid
        """
        runs = {each.uuid: each for each in runs_with_writes(connection, answered)}
        seen = self._evidence.aftermaths(connection, (write for each in runs.values() for write in each.writes))
        accepted = [
            write
            for uuid, each in runs.items()
            if answered[uuid] == ObservedOutcome.ACCEPTED_UNCHANGED
            for write in each.writes
        ]
        closes = [after.close for write in accepted if (after := seen[write.uid]) is not None]
        targets = {write.target for write in accepted if write.target and seen[write.uid] is not None}
        visibilities = self._visibility.read(connection, targets, min(closes) + 1) if targets else {}
        hiding = {row.uid: each.column for each in visibilities.values() for row in each.later}
        changes = read_field_changes(connection, filter(None, seen.values()), self.ignored, hiding)
        by_fields = self.edited_means is EditedMeans.OUR_FIELDS
        edit = edit_of_our_fields(changes, self.ignored) if by_fields else any_change
        now, found = int(time.time()), {}
        for uuid, outcome in answered.items():
            each = runs.get(uuid)
            ways, told = ways_of_run(each, seen, outcome, edit, now)
            found[uuid] = AuditedRun(
                meaning_of_run(each, seen, changes, self.ignored) if outcome == ObservedOutcome.EDITED else None,
                acceptance_of_run(each, seen, changes, visibilities)
                if outcome == ObservedOutcome.ACCEPTED_UNCHANGED
                else None,
                ways,
                told,
            )
        return found
