"""NrLlmEditedAuditHook: how the edits of the runs answered ``edited`` relate to the text the runs wrote."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from sqlalchemy.engine import Connection

from airflow_provider_nrllm.database.hook import SiteHook
from airflow_provider_nrllm.database.requirements import Requirements
from airflow_provider_nrllm.database.tables import tables_of_a_derivation
from airflow_provider_nrllm.edits.changes import meaning_of_aftermath
from airflow_provider_nrllm.edits.field_names import FIELD_NAMES_TABLE
from airflow_provider_nrllm.edits.meanings import IgnoredFields, Meaning, strongest
from airflow_provider_nrllm.edits.reading import read_field_changes
from airflow_provider_nrllm.outcomes.reading import EvidenceReader, runs_with_writes
from airflow_provider_nrllm.outcomes.rules import ObservedOutcome
from airflow_provider_nrllm.readout.behind import Explain
from airflow_provider_nrllm.readout.counts import EditedRuns, RangeOf
from airflow_provider_nrllm.readout.groups import Dimension, GroupKey
from airflow_provider_nrllm.readout.reading import read_answered, statements_of


class NrLlmEditedAuditHook(SiteHook):
    """
    Look again at the runs answered ``edited``, by the names of the fields that were changed.

    Writes nothing and changes no outcome. Of record content it reads the names of fields, which the database
    takes out; no value, no user id and no approval. Needs the right to read ``sys_history.history_data``, which
    nothing else here needs. ADR-185.

    :param nrllm_conn_id: the Airflow connection to the TYPO3 database
    :param machine_users: as of ``NrLlmHook``
    """

    hook_name = "nr_llm edited audit"

    def __init__(
        self,
        nrllm_conn_id: str = SiteHook.default_conn_name,
        *,
        machine_users: Sequence[str] = (),
        **kwargs: Any,
    ) -> None:
        super().__init__(nrllm_conn_id, **kwargs)
        self.machine_users = tuple(machine_users)
        self.requirements = Requirements(
            (*tables_of_a_derivation(self.machine_users), FIELD_NAMES_TABLE),
            page="docs/how-to/read-outcomes-by-model.md",
        )

    def edited_by_group(
        self,
        start: int | None,
        end: int,
        *,
        grouping: Sequence[Dimension],
        window: int,
        ignored: IgnoredFields,
        range_of: RangeOf = RangeOf.OUTCOME,
        where: Mapping[Dimension, Sequence[str]] | None = None,
        page_size: int = 500,
    ) -> dict[GroupKey, EditedRuns]:
        """
        Return the edited runs of each group, by what their edits are to the text that the runs wrote.

        A page costs a fixed number of statements, all in one snapshot. If the run or its history has been purged
        since, it cannot be told.

        :param start: the first second of the range, None for an open one
        :param end: the first second after it
        :param grouping: by what to group
        :param window: the window the outcomes were derived with, in seconds
        :param ignored: the fields whose changes are no edit of a text
        :param range_of: whose time has to be in the range
        :param where: the names that count, by dimension; without it, all
        :param page_size: the most runs on a page
        """
        counts: dict[GroupKey, Counter[Meaning]] = {}
        pages = self.meanings(
            start,
            end,
            grouping=grouping,
            window=window,
            ignored=ignored,
            range_of=range_of,
            where=where,
            page_size=page_size,
        )
        for page in pages:
            for key, meaning in page.values():
                counts.setdefault(key, Counter())[meaning] += 1
        return {key: EditedRuns(found) for key, found in counts.items()}

    def meanings(
        self,
        start: int | None,
        end: int,
        *,
        grouping: Sequence[Dimension],
        window: int,
        ignored: IgnoredFields,
        range_of: RangeOf = RangeOf.OUTCOME,
        where: Mapping[Dimension, Sequence[str]] | None = None,
        page_size: int = 500,
    ) -> Iterator[dict[str, tuple[GroupKey, Meaning]]]:
        """
        Yield, page by page, the group and the meaning of each run answered ``edited``, by correlation id.

        The parameters are those of ``edited_by_group``.
        """
        reader = EvidenceReader(window, self.machine_users)
        last: int | None = 0
        with self.database.snapshot() as connection:
            readout = statements_of(connection, start, end, range_of, grouping, where, window, self.nrllm_conn_id)
        while last is not None:
            with self.database.snapshot() as connection:
                edited, last = read_answered(connection, readout, last, page_size, [ObservedOutcome.EDITED])
                keys = {each.correlation_id: each.key for each in edited}
                meanings = self._meanings(connection, set(keys), reader, ignored)
            yield {uuid: (keys[uuid], meaning) for uuid, meaning in meanings.items()}

    def meanings_of(self, uuids: Collection[str], *, window: int, ignored: IgnoredFields) -> dict[str, Meaning]:
        """
        Return the meaning of each of some runs answered ``edited``, by a fixed number of statements.

        :param uuids: of the runs
        :param window: the window the outcomes were derived with, in seconds
        :param ignored: the fields whose changes are no edit of a text
        """
        with self.database.snapshot() as connection:
            return self._meanings(connection, set(uuids), EvidenceReader(window, self.machine_users), ignored)

    def explain_edited(self, window: int, ignored: IgnoredFields) -> Explain:
        """Return what says in words what the edits of runs are to the text that they wrote."""
        return lambda uuids: {
            uuid: meaning.words for uuid, meaning in self.meanings_of(uuids, window=window, ignored=ignored).items()
        }

    @staticmethod
    def _meanings(
        connection: Connection, uuids: set[str], reader: EvidenceReader, ignored: IgnoredFields
    ) -> dict[str, Meaning]:
        """Return what the edits of each run are to the text it wrote; a write without a record tells nothing."""
        runs = runs_with_writes(connection, uuids)
        seen = reader.aftermaths(connection, (write for each in runs for write in each.writes))
        fields = read_field_changes(connection, filter(None, seen.values()), ignored)
        meanings = dict.fromkeys(uuids, strongest(()))
        for each in runs:
            found = (after for write in each.writes if (after := seen[write.uid]) is not None)
            told = (meaning_of_aftermath(after, fields, ignored) for after in found)
            meanings[each.uuid] = strongest(meaning for meaning in told if meaning is not None)
        return meanings
