"""NrLlmEditedAuditHook: what the edits of the runs answered ``edited`` are to the text the runs wrote."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import cached_property
from typing import Any

from airflow.providers.common.compat.sdk import BaseHook
from sqlalchemy.engine import Connection

from airflow_provider_nrllm.database.site import SiteDatabase
from airflow_provider_nrllm.database.tables import DERIVATION_TABLES
from airflow_provider_nrllm.edits.field_names import FIELD_NAMES_TABLE, read_field_names
from airflow_provider_nrllm.edits.meanings import (
    FieldLists,
    Meaning,
    meaning_of_aftermath,
    strongest,
)
from airflow_provider_nrllm.outcomes import statements
from airflow_provider_nrllm.outcomes.evidence import Event, Write, target_of
from airflow_provider_nrllm.outcomes.reading import EvidenceReader
from airflow_provider_nrllm.outcomes.rules import Aftermath
from airflow_provider_nrllm.readout.counts import EditedRuns, RangeOf
from airflow_provider_nrllm.readout.groups import Key
from airflow_provider_nrllm.readout.statements import ReadoutStatements


class NrLlmEditedAuditHook(BaseHook):
    """
    Look again at the runs answered ``edited``, by the names of the fields that were changed.

    Writes nothing and changes no outcome. Of record content it reads the names of fields, which the database
    takes out; no value, no user id and no approval. Needs the right to read ``sys_history.history_data``, which
    nothing else here needs. ADR-185.

    :param nrllm_conn_id: the Airflow connection to the TYPO3 database
    """

    conn_name_attr = "nrllm_conn_id"
    default_conn_name = "nrllm_default"
    hook_name = "nr_llm edited audit"

    def __init__(self, nrllm_conn_id: str = default_conn_name, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.nrllm_conn_id = nrllm_conn_id

    @cached_property
    def database(self) -> SiteDatabase:
        """The database behind the connection."""
        return SiteDatabase(self.nrllm_conn_id, required=(*DERIVATION_TABLES, FIELD_NAMES_TABLE))

    def get_conn(self) -> Any:
        """Return a plain DB-API connection, as the Airflow hook of the connection opens it."""
        return self.database.engine.raw_connection()

    def meanings(
        self,
        start: int | None,
        end: int,
        *,
        window: int,
        lists: FieldLists,
        range_of: RangeOf = RangeOf.OUTCOME,
        page_size: int = 500,
    ) -> Iterator[dict[str, Meaning]]:
        """
        Yield, page by page, what the edits of each run answered ``edited`` are to its text, by correlation id.

        A page costs a fixed number of statements, all in one snapshot. Where the run or its history is purged
        by now, it cannot be told.

        :param start: the first second of the range, None for an open one
        :param end: the first second after it
        :param window: the window the outcomes were derived with, in seconds
        :param lists: the fields that are about no text
        :param range_of: whose time is in the range: the outcome's, or the run's
        :param page_size: the most runs on a page
        """
        evidence = EvidenceReader(window)
        last: int | None = 0
        while last is not None:
            with self.database.snapshot() as connection:
                readout = ReadoutStatements(connection.dialect.name, start, end, range_of, ())
                rows = connection.execute(readout.edited_after(last, page_size)).fetchall()
                last = rows[-1][0] if len(rows) == page_size else None
                seen = self._aftermaths(connection, {correlation_id for _, correlation_id in rows}, evidence)
                fields = read_field_names(connection, (after for found in seen.values() for after in found))
            yield {
                correlation_id: strongest(
                    meaning
                    for after in aftermaths
                    if (meaning := meaning_of_aftermath(after, fields, lists)) is not None
                )
                for correlation_id, aftermaths in seen.items()
            }

    def edited_by_group(
        self,
        start: int | None,
        end: int,
        *,
        keys_of: Callable[[Collection[str]], Mapping[str, Key]],
        window: int,
        lists: FieldLists,
        range_of: RangeOf = RangeOf.OUTCOME,
        page_size: int = 500,
    ) -> dict[Key, EditedRuns]:
        """
        Return the edited runs of each group, by what their edits are to our text.

        :param keys_of: returns the group of each of some correlation ids
        """
        counts: dict[Key, Counter[Meaning]] = {}
        pages = self.meanings(start, end, window=window, lists=lists, range_of=range_of, page_size=page_size)
        for meanings in pages:
            keys = keys_of(meanings)
            for correlation_id, meaning in meanings.items():
                counts.setdefault(keys[correlation_id], Counter())[meaning] += 1
        return {key: EditedRuns(found) for key, found in counts.items()}

    @staticmethod
    def _aftermaths(connection: Connection, uuids: set[str], evidence: EvidenceReader) -> Mapping[str, list[Aftermath]]:
        """Return what happened after each write of the runs; a write that names no record has nothing to tell."""
        uuid_of = {
            uid: uuid for uid, uuid, *_ in connection.execute(statements.runs_of(uuids)) if uuid in uuids
        } if uuids else {}  # fmt: skip
        writes: list[tuple[str, Write]] = []
        if uuid_of:
            for run, at, uid, payload in connection.execute(statements.writes_of(uuid_of)):
                writes.append((uuid_of[run], Write(Event(at, uid), target_of(payload))))
        found = evidence.aftermaths(connection, (write for _, write in writes))
        seen: dict[str, list[Aftermath]] = {uuid: [] for uuid in uuids}
        for uuid, write in writes:
            if write in found:
                seen[uuid].append(found[write])
        return seen
