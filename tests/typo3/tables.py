"""
A TYPO3 site with nr_llm: its whole tables, and the worlds of ``tests/cases`` laid into them.

The tables are as TYPO3 13 and the extension create them, with every column and every index, also those the
provider never reads: tests, demo and benchmarks meet the database a site has. Nothing here is part of the
package.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import (
    Column,
    Index,
    Integer,
    MetaData,
    Numeric,
    SmallInteger,
    String,
    Table,
    Text,
    select,
    text,
)
from sqlalchemy.dialects import mysql
from sqlalchemy.engine import Engine

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

#: Who uses TYPO3's backend, of which the command line and importers are users too.
backend_user = _table(
    "be_users",
    [_uid(), _unsigned("pid"), _unsigned("tstamp"), _small("deleted"), _string("username", 50), _string("email", 255)],
    {"parent": ("pid", "deleted")},
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
