"""
nr_llm's telemetry, with just the columns a readout touches.

A readout knows no person: neither here nor in :mod:`airflow_provider_nrllm.database.tables` is a column of a user or of
an approval (ADR-176).
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy import BigInteger, Column, Numeric, String, Table

from airflow_provider_nrllm.database.tables import event, metadata, outcome, run
from airflow_provider_nrllm.readout.groups import Dimension

#: nr_llm: one row for each provider call; a run of five rounds has five with one correlation id.
telemetry = Table(
    "tx_nrllm_telemetry",
    metadata,
    Column("correlation_id", String(36)),
    Column("operation", String(32)),
    Column("model", String(128)),
    Column("configuration_identifier", String(150)),
    Column("served_configuration_identifier", String(150)),
    Column("served_model", String(128)),
    Column("response_model", String(128)),
    Column("routing_policy_mode", String(32)),
    Column("latency_ms", BigInteger),
    Column("actual_cost", Numeric(14, 8, asdecimal=False)),
    Column("source_extension", String(64)),
)

#: The column that tells a dimension; :data:`PAYLOAD_KEYS` has the others.
DIMENSION_COLUMNS: Mapping[Dimension, Column[str]] = {
    Dimension.SERVED_MODEL: telemetry.c.served_model,
    Dimension.REQUESTED_MODEL: telemetry.c.model,
    Dimension.RESPONSE_MODEL: telemetry.c.response_model,
    Dimension.CONFIGURATION: telemetry.c.configuration_identifier,
    Dimension.SERVED_CONFIGURATION: telemetry.c.served_configuration_identifier,
    Dimension.ROUTING_MODE: telemetry.c.routing_policy_mode,
    Dimension.SOURCE_EXTENSION: telemetry.c.source_extension,
    Dimension.OPERATION: telemetry.c.operation,
}

#: The key in the payload of a ``tool_write`` event that tells a dimension.
PAYLOAD_KEYS: Mapping[Dimension, str] = {
    Dimension.TOOL: "toolName",
    Dimension.TABLE: "writeTargetTable",
}

#: What a readout reads.
READOUT_TABLES = (run, event, outcome, telemetry)
