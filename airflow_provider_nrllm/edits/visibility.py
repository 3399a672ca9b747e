"""
Reading whether written records are hidden, and the history rows that may have changed that since.

Of a record only the column is read that hides it: ``hidden``, or in a table without it ``disabled`` or ``disable``.
Of what the history holds the database tells only whether a text names that column.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from sqlalchemy import and_, func, literal, or_, select, union_all
from sqlalchemy.engine import Connection
from sqlalchemy.sql import Select
from sqlalchemy.sql.selectable import CompoundSelect

from airflow_provider_nrllm.database.catalog import WrittenTables
from airflow_provider_nrllm.database.conditions import any_of, slices, zero_if_null
from airflow_provider_nrllm.database.tables import ENABLE_COLUMNS, record_table
from airflow_provider_nrllm.edits.acceptance import Visibility
from airflow_provider_nrllm.edits.field_names import FIELD_NAMES_TABLE
from airflow_provider_nrllm.outcomes.evidence import Action, HistoryRow, Target, without_drafts
from airflow_provider_nrllm.outcomes.statements import TABLES_AT_ONCE, among, uids_by_table

_log = logging.getLogger(__name__)

_FIRST, *_OTHERS = ENABLE_COLUMNS


class VisibilityReader:
    """Reads whether records are hidden, in two statements a page, and some more for a table that is new to it."""

    def __init__(self) -> None:
        self._tables = WrittenTables(("uid", _FIRST), dict(zip(ENABLE_COLUMNS, _OTHERS, strict=False)))

    def read(self, connection: Connection, targets: Collection[Target], since: int) -> dict[Target, Visibility]:
        """
        Return whether each record is hidden; none for one without a row, or in a table that may not be read.

        :param connection: in the snapshot of the page
        :param targets: the records
        :param since: the first second whose history rows may have changed that
        """
        refused = self._tables.refused
        columns = self._tables.read(connection, {target.table for target in targets})
        for name in sorted(self._tables.refused - refused):
            _log.warning(
                "Whether records of the table %s are hidden cannot be told: the database user may not read it. "
                "Missing, the first of these that the table has: GRANT SELECT (%s) ON %s. See "
                "docs/how-to/read-outcomes-by-model.md.", name, ", ".join(ENABLE_COLUMNS), name,
            )  # fmt: skip
        enable = {name: _enable_column(columns[name]) for name in self._tables.present}
        states = {target: Visibility() for target in targets if enable.get(target.table) == ""}
        hideable = [target for target in targets if enable.get(target.table)]
        later: dict[tuple[str, int], list[HistoryRow]] = {}
        for some in slices(hideable):
            for table, uid, *row in connection.execute(_rows_since(connection.dialect.name, some, enable, since)):
                later.setdefault((table, uid), []).append(HistoryRow(*row))
        for some in slices(hideable):
            uids = uids_by_table(some)
            for names in slices(uids, TABLES_AT_ONCE):
                for table, uid, hidden in connection.execute(_hidden({name: uids[name] for name in names}, enable)):
                    target = Target(table, uid)
                    rows = without_drafts(later.get(target, ()))
                    states[target] = Visibility(enable[table], bool(hidden), rows)
        return states


def _enable_column(columns: frozenset[str]) -> str:
    """Return the column that hides a table's records; empty if it has none."""
    return next((name for name in ENABLE_COLUMNS if name in columns), "")


def _hidden(uids: Mapping[str, Collection[int]], enable: Mapping[str, str]) -> CompoundSelect[Any]:
    """A row of ``table, uid, hidden`` for each record."""
    selects = []
    for name in uids:
        record = record_table(name, frozenset({enable[name]}))
        selects.append(
            select(literal(name), record.c.uid, record.c[enable[name]]).where(among(record.c.uid, uids[name]))
        )
    return union_all(*selects)


def _rows_since(dialect: str, targets: Iterable[Target], enable: Mapping[str, str], since: int) -> Select[Any]:
    """The history rows of the records that made or published one, or whose text names the column that hides it."""
    rows = FIELD_NAMES_TABLE
    of_targets = [
        and_(
            rows.c.tablename == table,
            among(rows.c.recuid, uids),
            or_(
                rows.c.actiontype.in_([Action.ADD, Action.PUBLISH]),
                and_(rows.c.actiontype == Action.MODIFY, rows.c.history_data.contains(f'"{enable[table]}"')),
            ),
        )
        for table, uids in uids_by_table(targets).items()
    ]
    workspace = func.coalesce(rows.c.workspace, 0)
    stamp = zero_if_null(dialect, rows.c.tstamp)
    return select(rows.c.tablename, rows.c.recuid, stamp, rows.c.uid, rows.c.actiontype, workspace).where(
        rows.c.tstamp >= since, any_of(of_targets, rows.c.uid)
    )
