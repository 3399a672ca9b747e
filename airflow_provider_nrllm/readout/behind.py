"""Reading the runs behind a readout's figures, page by page, and why some of them are ``unknown``."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping

from sqlalchemy.engine import Connection

from airflow_provider_nrllm.database.site import SiteDatabase
from airflow_provider_nrllm.outcomes.pages import RunsOfUuid
from airflow_provider_nrllm.outcomes.reading import EvidenceReader, runs_with_writes
from airflow_provider_nrllm.outcomes.reasons import PURGED, REFUSED, reasons_in_words
from airflow_provider_nrllm.outcomes.rules import EXPLICIT, OBSERVED
from airflow_provider_nrllm.readout.reading import Answered, read_answered
from airflow_provider_nrllm.readout.runs import AnsweredRun
from airflow_provider_nrllm.readout.statements import ReadoutStatements

#: Says of runs, by their uuids, what their outcome is about, in words.
Explain = Callable[[Collection[str]], Mapping[str, str]]


def runs_behind(
    database: SiteDatabase, statements: ReadoutStatements, explain: Mapping[str, Explain], page_size: int
) -> Iterator[AnsweredRun]:
    """
    Yield the outcomes that count, each with its run; a page costs a fixed number of statements.

    :param explain: by an outcome, what says of its runs what it is about
    :param page_size: the most outcomes of a page, which is read in a snapshot of its own
    """
    last: int | None = 0
    while last is not None:
        with database.snapshot() as connection:
            page, last = read_answered(connection, statements, last, page_size, [*EXPLICIT, *OBSERVED])
            runs = {each.uuid: each for each in runs_with_writes(connection, {one.correlation_id for one in page})}
        reasons: dict[tuple[str, str], str] = {}
        for value, reasons_of in explain.items():
            uuids = {each.correlation_id for each in page if each.outcome == value}
            found = reasons_of(uuids) if uuids else {}
            reasons |= {(value, uuid): reason for uuid, reason in found.items()}
        for each in page:
            reason = reasons.get((each.outcome, each.correlation_id), "")
            yield _answered_run(database.conn_id, each, runs.get(each.correlation_id), statements.window, reason)


def _answered_run(site: str, answered: Answered, runs: RunsOfUuid | None, window: int, reason: str) -> AnsweredRun:
    targets = (write.target for write in sorted(runs.writes)) if runs else ()
    return AnsweredRun(
        site=site,
        run=answered.correlation_id,
        outcome=answered.outcome,
        at=answered.at,
        settled=runs.settled_at(window) if runs else None,
        key=answered.key,
        records=tuple(dict.fromkeys(filter(None, targets))),
        reason=reason,
    )


def read_reasons(connection: Connection, uuids: Collection[str], window: int) -> dict[str, str]:
    """
    Return why runs are ``unknown``, in words.

    :param uuids: of the runs
    :param window: the window the outcomes were derived with, in seconds
    """
    reader = EvidenceReader(window)
    # Each page asks for other spans of time, by a statement of its own: kept compiled, they would only fill memory.
    connection = connection.execution_options(compiled_cache={})
    runs = runs_with_writes(connection, uuids)
    seen = reader.aftermaths(connection, (write for each in runs for write in each.writes))
    reasons = dict.fromkeys(uuids, PURGED)
    for each in runs:
        if any(write.target and write.target.table in reader.refused_tables for write in each.writes):
            reasons[each.uuid] = REFUSED
        else:
            reasons[each.uuid] = reasons_in_words(seen[write.uid] for write in each.writes)
    return reasons
