"""
A TYPO3 site with nr_llm: its whole tables, and the worlds of ``tests/cases`` laid into them.

The tables are as TYPO3 13 and the extension create them, with every column and every index, also those the
provider never reads: tests, demo and benchmarks meet the database a site has. Nothing here is part of the
package.
"""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import (
    BigInteger,
    Column,
    Index,
    Integer,
    MetaData,
    Numeric,
    SmallInteger,
    String,
    Table,
    Text,
    func,
    insert,
    select,
    text,
)
from sqlalchemy.dialects import mysql
from sqlalchemy.engine import Connection, Engine

Row = dict[str, Any]

_UNSIGNED = Integer().with_variant(mysql.INTEGER(unsigned=True), "mysql")
_SMALL = SmallInteger().with_variant(mysql.TINYINT(), "mysql")
_MEDIUM_TEXT = Text().with_variant(mysql.MEDIUMTEXT(), "mysql")


def _uid() -> Column[Any]:
    return Column("uid", _UNSIGNED, primary_key=True, autoincrement=True)


def _unsigned(name: str) -> Column[Any]:
    return Column(name, _UNSIGNED, nullable=False, server_default=text("0"))


def _integer(name: str) -> Column[Any]:
    return Column(name, Integer, nullable=False, server_default=text("0"))


def _small(name: str) -> Column[Any]:
    return Column(name, _SMALL, nullable=False, server_default=text("0"))


def _string(name: str, length: int, default: str = "") -> Column[Any]:
    return Column(name, String(length), nullable=False, server_default=default)


def _decimal(name: str, precision: int, scale: int) -> Column[Any]:
    return Column(name, Numeric(precision, scale), nullable=False, server_default=text("0"))


def _long_text(name: str) -> Column[Any]:
    return Column(name, _MEDIUM_TEXT, nullable=True)


def _workspace_columns() -> list[Column[Any]]:
    return [_unsigned("t3ver_oid"), _unsigned("t3ver_wsid"), _small("t3ver_state")]


metadata = MetaData()

#: The indexes by table, under the names they have on MariaDB.
INDEXES: dict[str, dict[str, tuple[str, ...]]] = {}


def _table(name: str, columns: Sequence[Column[Any]], indexes: Mapping[str, tuple[str, ...]]) -> Table:
    INDEXES[name] = dict(indexes)
    return Table(
        name,
        metadata,
        *columns,
        mysql_engine="InnoDB",
        mysql_charset="utf8mb4",
        mysql_collate="utf8mb4_unicode_ci",
        sqlite_autoincrement=True,
    )


history = _table(
    "sys_history",
    [
        _uid(),
        _unsigned("tstamp"),
        _small("actiontype"),
        _string("usertype", 2, "BE"),
        Column("userid", _UNSIGNED, nullable=True),
        Column("originaluserid", _UNSIGNED, nullable=True),
        _integer("recuid"),
        _string("tablename", 255),
        _long_text("history_data"),
        Column("workspace", Integer, nullable=True, server_default=text("0")),
        _string("correlation_id", 255),
    ],
    {"recordident_1": ("tablename", "recuid"), "recordident_2": ("tablename", "tstamp")},
)

run = _table(
    "tx_nrllm_agentrun",
    [
        _uid(),
        _unsigned("pid"),
        _string("uuid", 36),
        _string("status", 32),
        _unsigned("configuration_uid"),
        _string("configuration_identifier", 150),
        _unsigned("be_user"),
        _unsigned("iterations"),
        _small("truncated"),
        _unsigned("total_prompt_tokens"),
        _unsigned("total_completion_tokens"),
        _unsigned("total_tokens"),
        _decimal("estimated_cost", 10, 6),
        _string("error_class", 255),
        _string("termination_reason", 32),
        _long_text("suspended_state"),
        _long_text("queued_request"),
        _string("claimed_by", 64),
        _unsigned("lease_expires"),
        _unsigned("requeue_count"),
        _string("pending_effect", 32),
        _unsigned("started_at"),
        _unsigned("finished_at"),
        _unsigned("tstamp"),
        _unsigned("crdate"),
    ],
    {
        "parent": ("pid",),
        "run_uuid": ("uuid",),
        "be_user": ("be_user", "crdate"),
        "status_lookup": ("status", "crdate"),
        "crdate": ("crdate",),
    },
)

event = _table(
    "tx_nrllm_agentrun_event",
    [
        _uid(),
        _unsigned("pid"),
        _unsigned("run"),
        _unsigned("sequence"),
        _string("kind", 32),
        _unsigned("round"),
        _decimal("duration_ms", 10, 2),
        _long_text("payload"),
        _unsigned("crdate"),
    ],
    {"parent": ("pid",), "run_sequence": ("run", "sequence"), "crdate": ("crdate",)},
)

#: Its key ``correlation`` is not unique: nothing but the writer prevents a second row.
outcome = _table(
    "tx_nrllm_call_outcome",
    [
        _uid(),
        _unsigned("pid"),
        _string("correlation_id", 36),
        _string("outcome", 24),
        _unsigned("crdate"),
        _unsigned("tstamp"),
    ],
    {"parent": ("pid",), "correlation": ("correlation_id",), "outcome_lookup": ("outcome", "crdate")},
)

telemetry = _table(
    "tx_nrllm_telemetry",
    [
        _uid(),
        _unsigned("pid"),
        _string("correlation_id", 36),
        _string("operation", 32),
        _string("provider", 64),
        _string("model", 128),
        _string("configuration_identifier", 150),
        _string("served_configuration_identifier", 150),
        _string("served_provider", 64),
        _string("served_model", 128),
        _string("response_model", 128),
        _string("routing_policy_mode", 32),
        _unsigned("fallback_attempts"),
        _small("success"),
        _unsigned("latency_ms"),
        Column("actual_input_tokens", Integer, nullable=True),
        Column("actual_output_tokens", Integer, nullable=True),
        Column("actual_cost", Numeric(14, 8), nullable=True),
        _string("source_extension", 64),
        _string("source_operation", 64),
        _unsigned("tstamp"),
        _unsigned("crdate"),
    ],
    {"parent": ("pid",), "correlation": ("correlation_id",), "crdate": ("crdate",)},
)

pages = _table(
    "pages",
    [
        _uid(),
        _unsigned("pid"),
        _unsigned("tstamp"),
        _unsigned("crdate"),
        _small("deleted"),
        _small("hidden"),
        *_workspace_columns(),
        _string("title", 255),
    ],
    {"parent": ("pid", "deleted")},
)

content = _table(
    "tt_content",
    [
        _uid(),
        _unsigned("pid"),
        _unsigned("tstamp"),
        _unsigned("crdate"),
        _small("deleted"),
        _small("hidden"),
        *_workspace_columns(),
        _string("CType", 255),
        _string("header", 255),
        _long_text("bodytext"),
    ],
    {"parent": ("pid", "deleted")},
)

#: A file's metadata can be hidden or deleted in no way but with its row.
file_metadata = _table(
    "sys_file_metadata",
    [
        _uid(),
        _unsigned("pid"),
        _unsigned("tstamp"),
        _unsigned("crdate"),
        *_workspace_columns(),
        _unsigned("file"),
        _string("title", 255),
        _long_text("alternative"),
    ],
    {"parent": ("pid",), "file": ("file",)},
)

file_reference = _table(
    "sys_file_reference",
    [
        _uid(),
        _unsigned("pid"),
        _unsigned("tstamp"),
        _unsigned("crdate"),
        _small("deleted"),
        _small("hidden"),
        *_workspace_columns(),
        _unsigned("uid_local"),
        _unsigned("uid_foreign"),
        _string("tablenames", 64),
        _string("fieldname", 64),
    ],
    {"parent": ("pid", "deleted")},
)

#: The tables whose records runs write; any other table a case names does not exist.
RECORD_TABLES = (pages, content, file_metadata, file_reference)


def create_tables(engine: Engine) -> None:
    """Create all tables and indexes in an empty database."""
    is_mysql = engine.dialect.name in ("mysql", "mariadb")
    schema = MetaData()
    for table in metadata.sorted_tables:
        made = table.to_metadata(schema)
        for name, columns in INDEXES[table.name].items():
            Index(
                # An index name is one of its table on MariaDB, of the whole schema elsewhere.
                name if is_mysql else f"{table.name}_{name}",
                *(made.c[column] for column in columns),
                mysql_length={"tablename": 100} if "tablename" in columns else None,
            )
    schema.create_all(engine, checkfirst=False)


def empty_tables(engine: Engine) -> None:
    """Delete every row of every table, which for few rows is much faster than to create the tables again."""
    with engine.begin() as connection:
        for table in metadata.sorted_tables:
            connection.execute(table.delete())


def outcome_rows(engine: Engine) -> list[tuple[str, str]]:
    """Return all of ``tx_nrllm_call_outcome`` as sorted pairs of correlation id and outcome."""
    with engine.connect() as connection:
        rows = connection.execute(select(outcome.c.correlation_id, outcome.c.outcome))
        return sorted((str(correlation_id), str(value)) for correlation_id, value in rows)


def load_case(engine: Engine, case: Mapping[str, Any]) -> None:
    """
    Lay one world of ``observed_outcomes.json`` into the empty tables.

    Runs, events and outcomes get uids in an order of no meaning, so that nothing can lean on it. Each run
    has, besides its writes, the other kinds of event a run has: larger, and around and after the writes, so
    that a query that forgets ``kind`` gives a wrong answer.

    :param case: one of the list that the file holds
    """
    shuffle = random.Random(str(case["name"])).sample
    runs: list[Row] = []
    events: list[Row] = []
    run_uids = shuffle(range(1, max(1000, 2 * len(case["runs"]))), len(case["runs"]))
    for run_uid, given in zip(run_uids, case["runs"], strict=True):
        runs.append(
            {
                "uid": run_uid,
                "uuid": given["uuid"],
                "status": given["status"],
                "be_user": 7,
                "finished_at": given["finished_at"],
                "tstamp": given["created_at"],
                "crdate": given["created_at"],
            }
        )
        events.extend(_events_of_run(run_uid, given))
    for event_uid, row in zip(shuffle(range(1, max(10000, 2 * len(events))), len(events)), events, strict=True):
        row["uid"] = event_uid
    with engine.begin() as connection:
        _insert(connection, run, runs)
        _insert(connection, event, events)
        _insert(connection, history, [_history_row(given) for given in case["history"]])
        for table, rows in _record_rows(case).items():
            _insert(connection, metadata.tables[table], rows)
        _insert(connection, outcome, [{**given, "crdate": 1, "tstamp": 1} for given in case["outcomes"]])


def _events_of_run(run_uid: int, given: Mapping[str, Any]) -> list[Row]:
    """Return a run's writes with the events of other kinds before, between and after them."""
    created, ended = given["created_at"], max(given["created_at"], given["finished_at"] or 0)
    bulk = "Lorem ipsum dolor sit amet. " * 150
    rows = [_event("request", created, {"messages": bulk}), _event("llm", created, {"content": bulk})]
    for write in given["writes"]:
        table, _, uid = write.get("target", "").partition(":")
        named = {"writeTargetTable": table, "writeTargetUid": int(uid)} if table else {}
        rows.append(_event("tool", write["at"], {"arguments": bulk, **named}))
        row = _event("tool_write", write["at"], {"round": 1, "durationMs": 0, "toolName": "update", **named})
        if "payload" in write:
            row["payload"] = write["payload"]
        rows.append(row)
    rows.append(_event("llm", max([ended, *(row["crdate"] for row in rows)]) + 1, {"content": bulk}))
    return [{**row, "run": run_uid, "sequence": number} for number, row in enumerate(rows, start=1)]


def _event(kind: str, at: int, payload: Row) -> Row:
    return {"kind": kind, "round": 1, "payload": json.dumps({"kind": kind, **payload}), "crdate": at}


def _history_row(given: Mapping[str, Any]) -> Row:
    table, _, uid = given["record"].partition(":")
    return {
        "uid": given["uid"],
        "tstamp": given["at"],
        "actiontype": given["action"],
        "userid": 7,
        "recuid": int(uid),
        "tablename": table,
        "history_data": json.dumps({"oldRecord": {"header": "before"}, "newRecord": {"header": "after"}}),
        "workspace": given["workspace"],
    }


def _record_rows(case: Mapping[str, Any]) -> dict[str, list[Row]]:
    """Return the rows of the written records that still have one, by table."""
    rows: dict[str, list[Row]] = {}
    for target, given in case["records"].items():
        table, _, uid = target.partition(":")
        if given["state"] == "missing":
            continue
        deleted = given["state"] == "deleted"
        row: Row = {"uid": int(uid), "tstamp": given.get("tstamp", 0) if deleted else case["now"]}
        if "deleted" in metadata.tables[table].c:
            row["deleted"] = int(deleted)
        rows.setdefault(table, []).append(row)
    return rows


#: The columns of the site's tables that hold a time, in Unix seconds.
_STAMPS = frozenset({"tstamp", "crdate", "started_at", "finished_at", "lease_expires"})


def load_typo3(engine: Engine, data: Mapping[str, Any], offset: int = 0) -> None:
    """
    Lay what TYPO3 itself wrote (``typo3_13.4.18.json``) into the empty tables.

    :param data: what the file holds
    :param offset: seconds added to every time, so that the stories can end now
    """
    with engine.begin() as connection:
        for name, rows in data["tables"].items():
            _insert(connection, metadata.tables[name], [_moved(row, offset) for row in rows])


def _moved(row: Mapping[str, Any], offset: int) -> Row:
    # 0 is no time. The root page is older than the epoch, since the data's own times were moved once before.
    return {name: max(0, value + offset) if name in _STAMPS and value else value for name, value in row.items()}


def _insert(connection: Connection, table: Table, rows: Sequence[Row]) -> None:
    """Insert rows that all name the same columns."""
    if not rows:
        return
    connection.execute(insert(table), list(rows))
    if "uid" in rows[0] and connection.dialect.name == "postgresql":
        # PostgreSQL does not count uids that are given; the next one is to be free all the same.
        sequence = func.pg_get_serial_sequence(table.name, "uid")
        last = select(func.max(table.c.uid)).scalar_subquery()
        connection.execute(select(func.setval(sequence, last.cast(BigInteger))))
