"""
The lineage of a derivation for OpenLineage. Imported only where OpenLineage asks for it, since it needs its provider.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import attr
from airflow.providers.common.compat.openlineage.facet import (
    Dataset,
    InputDataset,
    OutputDataset,
    OutputStatisticsOutputDatasetFacet,
    RunFacet,
)
from airflow.providers.common.compat.sdk import BaseHook
from airflow.providers.openlineage.extractors import OperatorLineage

from airflow_provider_nrllm.database.tables import DERIVATION_TABLES, outcome

FACET = "nrllm_observedOutcomes"


@attr.define
class ObservedOutcomesRunFacet(RunFacet):
    """The counts of a derivation, as the operator returns them."""

    intervalStart: str | None
    intervalEnd: str
    windowDays: int
    runsAnswered: int
    unreadableWrites: int
    outcomes: dict[str, int]


def lineage_of(
    conn_id: str, counts: Mapping[str, Any] | None, written_tables: Iterable[str]
) -> OperatorLineage[Any, Any]:
    """
    Return the tables that a derivation read and wrote, and its counts as facets.

    :param conn_id: the Airflow connection to the TYPO3 database
    :param counts: what the operator returned, or had counted when it failed; None if it failed before it counted
    :param written_tables: the tables of the records that runs wrote, which were looked at
    """
    namespace, prefix = _naming(conn_id)
    read = [table.name for table in DERIVATION_TABLES] + sorted(set(written_tables))
    inputs = [InputDataset(namespace=namespace, name=prefix + name) for name in read]
    output = prefix + outcome.name
    if counts is None:
        return OperatorLineage(inputs=inputs, outputs=[OutputDataset(namespace=namespace, name=output)])
    written = OutputDataset(
        namespace=namespace,
        name=output,
        outputFacets={"outputStatistics": OutputStatisticsOutputDatasetFacet(rowCount=counts["runs_answered"])},
    )
    facet = ObservedOutcomesRunFacet(
        intervalStart=counts["interval_start"],
        intervalEnd=counts["interval_end"],
        windowDays=counts["window_days"],
        runsAnswered=counts["runs_answered"],
        unreadableWrites=counts["unreadable_writes"],
        outcomes=dict(counts["outcomes"]),
    )
    outputs: list[Dataset] = [written]
    return OperatorLineage(inputs=inputs, outputs=outputs, run_facets={FACET: facet})


def _naming(conn_id: str) -> tuple[str, str]:
    """Return the namespace of a connection, and what stands before a table's name in it, as OpenLineage names them."""
    connection = BaseHook.get_connection(conn_id)
    db_hook: Any = connection.get_hook()  # type: ignore[no-untyped-call]
    info = db_hook.get_openlineage_database_info(connection)
    if info is None:  # SQLite, of which OpenLineage knows no naming: its file.
        return f"sqlite://{connection.host}", ""
    parts = [connection.schema, db_hook.get_openlineage_default_schema()]
    return f"{info.scheme}://{info.authority}", "".join(f"{part}." for part in parts if part)
