"""
The tables of the A2A server role (ADR-282), and of a run what ending it writes.

The extension creates them; the provider creates none, and only its A2A hook and operators ask for them.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, MetaData, Numeric, SmallInteger, String, Table, Text

metadata = MetaData()

#: nr_llm: the run of a task. Its suspended state and its queued request, the client's prompt, are only ever emptied,
#: never read.
run = Table(
    "tx_nrllm_agentrun",
    metadata,
    Column("uid", BigInteger, primary_key=True),
    Column("status", String(32)),
    Column("claimed_by", String(64)),
    Column("lease_expires", BigInteger),
    Column("suspended_state", Text),
    Column("queued_request", Text),
    Column("iterations", BigInteger),
    Column("truncated", SmallInteger),
    Column("total_prompt_tokens", BigInteger),
    Column("total_completion_tokens", BigInteger),
    Column("total_tokens", BigInteger),
    Column("estimated_cost", Numeric(10, 6)),
    Column("termination_reason", String(32)),
    Column("error_class", String(255)),
    Column("finished_at", BigInteger),
    Column("tstamp", BigInteger),
)

#: nr_llm: one row for each task of a remote client, with what is stored for it, sealed.
task = Table(
    "tx_nrllm_a2a_task",
    metadata,
    Column("uid", BigInteger, primary_key=True),
    Column("run", BigInteger),
    Column("task_id", String(36)),
    Column("context_id", String(36)),
    Column("state", String(32)),
    Column("revision", BigInteger),
    Column("ceiling", String(16)),
    Column("reason", String(64)),
    Column("status_message", Text),
    Column("artifacts", Text),
    Column("history", Text),
    Column("tstamp", BigInteger),
)

#: nr_llm: the journal. Unique over (task, revision, position).
event = Table(
    "tx_nrllm_a2a_event",
    metadata,
    Column("uid", BigInteger, primary_key=True, autoincrement=True),
    Column("pid", BigInteger),
    Column("task", BigInteger),
    Column("revision", BigInteger),
    Column("position", SmallInteger),
    Column("kind", String(16)),
    Column("state", String(32)),
    Column("reason", String(64)),
    Column("payload", Text),
    Column("status_at", BigInteger),
    Column("crdate", BigInteger),
)

A2A_TABLES = (run, task, event)
