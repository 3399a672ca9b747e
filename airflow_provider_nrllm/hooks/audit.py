"""NrLlmEditedAuditHook: how much the observed outcomes are worth, by what was changed and what was released."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from airflow_provider_nrllm.database.hook import SiteHook
from airflow_provider_nrllm.database.requirements import Requirements
from airflow_provider_nrllm.database.tables import tables_of_a_derivation
from airflow_provider_nrllm.edits.audit import AuditedRun
from airflow_provider_nrllm.edits.field_names import FIELD_NAMES_TABLE
from airflow_provider_nrllm.edits.meanings import EditedMeans, IgnoredFields, Meaning
from airflow_provider_nrllm.edits.reading import AuditReader
from airflow_provider_nrllm.outcomes.rules import OBSERVED, ObservedOutcome
from airflow_provider_nrllm.readout.audited import AuditedRuns
from airflow_provider_nrllm.readout.behind import Explain
from airflow_provider_nrllm.readout.counts import RangeOf
from airflow_provider_nrllm.readout.groups import Dimension, GroupKey
from airflow_provider_nrllm.readout.reading import read_answered, statements_of


class NrLlmEditedAuditHook(SiteHook):
    """
    Look again at the observed runs: by the names of the fields that were changed, and by what hides their records.

    Writes nothing and changes no outcome. Of record content it reads the names of fields, which the database
    takes out, and the column that hides a record; no other value, no user id and no approval. Needs the right to
    read ``sys_history.history_data`` and that column of the written tables, which nothing else here needs. ADR-185.

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

    def audited_by_group(
        self,
        start: int | None,
        end: int,
        *,
        grouping: Sequence[Dimension],
        window: int,
        ignored: IgnoredFields,
        edited_means: EditedMeans = EditedMeans.ANY_CHANGE,
        range_of: RangeOf = RangeOf.OUTCOME,
        where: Mapping[Dimension, Sequence[str]] | None = None,
        page_size: int = 500,
    ) -> dict[GroupKey, AuditedRuns]:
        """
        Return the observed runs of each group, by what their outcomes are worth.

        A page costs a fixed number of statements, all in one snapshot. If the run or its history has been purged
        since, it cannot be told.

        :param start: the first second of the range, None for an open one
        :param end: the first second after it
        :param grouping: by what to group
        :param window: the window the outcomes were derived with, in seconds
        :param ignored: the fields whose changes are no edit of a text
        :param edited_means: what made a run ``edited`` when it was derived
        :param range_of: whose time has to be in the range
        :param where: the names that count, by dimension; without it, all
        :param page_size: the most runs on a page
        """
        reader = AuditReader(window, ignored, edited_means, self.machine_users)
        groups: dict[GroupKey, AuditedRuns] = {}
        with self.database.keeping_a_connection():
            for page in self._pages(reader, start, end, grouping, range_of, where, page_size, OBSERVED):
                for key, run in page.values():
                    groups.setdefault(key, AuditedRuns()).add(run)
        return groups

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

        The parameters are those of ``audited_by_group``.
        """
        reader = AuditReader(window, ignored, EditedMeans.ANY_CHANGE, self.machine_users)
        for page in self._pages(reader, start, end, grouping, range_of, where, page_size, [ObservedOutcome.EDITED]):
            yield {uuid: (key, run.meaning) for uuid, (key, run) in page.items() if run.meaning is not None}

    def _pages(
        self,
        reader: AuditReader,
        start: int | None,
        end: int,
        grouping: Sequence[Dimension],
        range_of: RangeOf,
        where: Mapping[Dimension, Sequence[str]] | None,
        page_size: int,
        values: Sequence[str],
    ) -> Iterator[dict[str, tuple[GroupKey, AuditedRun]]]:
        """Yield, page by page, the group of each run with one of these outcomes, and what an audit says of it."""
        last: int | None = 0
        with self.database.snapshot() as connection:
            readout = statements_of(
                connection, start, end, range_of, grouping, where, reader.window, self.nrllm_conn_id
            )
        while last is not None:
            with self.database.snapshot() as connection:
                page, last = read_answered(connection, readout, last, page_size, values)
                keys = {each.correlation_id: each.key for each in page}
                found = reader.read(connection, {each.correlation_id: each.outcome for each in page})
            yield {uuid: (keys[uuid], run) for uuid, run in found.items()}

    def explain(self, outcome: ObservedOutcome, window: int, ignored: IgnoredFields) -> Explain:
        """
        Return what says in words what an audit tells of runs with an outcome.

        :param outcome: ``edited``, of which it says what the edits are, or ``accepted_unchanged``
        :param window: the window the outcomes were derived with, in seconds
        :param ignored: the fields whose changes are no edit of a text
        """

        def in_words(uuids: Collection[str]) -> dict[str, str]:
            runs = self.audited(dict.fromkeys(uuids, str(outcome)), window=window, ignored=ignored)
            told = ((uuid, run.meaning or run.acceptance) for uuid, run in runs.items())
            return {uuid: found.words for uuid, found in told if found}

        return in_words

    def audited(
        self,
        answered: Mapping[str, str],
        *,
        window: int,
        ignored: IgnoredFields,
        edited_means: EditedMeans = EditedMeans.ANY_CHANGE,
    ) -> dict[str, AuditedRun]:
        """
        Return what an audit says of some runs, by a fixed number of statements.

        :param answered: the outcome of each run by its uuid
        """
        with self.database.snapshot() as connection:
            return AuditReader(window, ignored, edited_means, self.machine_users).read(connection, answered)
