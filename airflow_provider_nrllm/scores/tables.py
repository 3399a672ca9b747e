"""
The columns of which scores and traces are made.

No content, no person: neither is a column here (ADR-176).
"""

from __future__ import annotations

from sqlalchemy import Column, MetaData, Numeric, String, Table

from airflow_provider_nrllm.database.tables import WholeNumber, outcome

_metadata = MetaData()

#: nr_llm: the runs, with what a trace says of one.
run = Table(
    "tx_nrllm_agentrun",
    _metadata,
    Column("uid", WholeNumber, primary_key=True),
    Column("uuid", String(36)),
    Column("status", String(32)),
    Column("crdate", WholeNumber),
    Column("started_at", WholeNumber),
    Column("finished_at", WholeNumber),
    Column("configuration_identifier", String(150)),
    Column("total_prompt_tokens", WholeNumber),
    Column("total_completion_tokens", WholeNumber),
    Column("estimated_cost", Numeric(10, 6, asdecimal=False)),
)

#: nr_llm: one row for each provider call, with what a trace says of one.
telemetry = Table(
    "tx_nrllm_telemetry",
    _metadata,
    Column("uid", WholeNumber, primary_key=True),
    Column("correlation_id", String(36)),
    Column("operation", String(32)),
    Column("provider", String(64)),
    Column("model", String(128)),
    Column("served_provider", String(64)),
    Column("served_model", String(128)),
    Column("response_model", String(128)),
    Column("configuration_identifier", String(150)),
    Column("served_configuration_identifier", String(150)),
    Column("success", WholeNumber),
    Column("crdate", WholeNumber),
    Column("latency_ms", WholeNumber),
    Column("actual_input_tokens", WholeNumber),
    Column("actual_output_tokens", WholeNumber),
    Column("actual_cost", Numeric(14, 8, asdecimal=False)),
)

#: What handing on reads.
SCORES_TABLES = (outcome, run, telemetry)
