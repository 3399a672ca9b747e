"""
The TYPO3 and nr_llm tables, with just the columns the provider may touch.

A column that is not named here is never read: record content (``history_data``), prompts and user ids are
simply not there; but see :data:`history_with_users`. TYPO3 and the extension create the tables; the provider
creates none.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import lru_cache
from math import isfinite
from typing import TYPE_CHECKING, Any

from sqlalchemy import BigInteger, Column, MetaData, String, Table, Text
from sqlalchemy.engine import Dialect
from sqlalchemy.types import TypeDecorator

if TYPE_CHECKING:
    _Decorator = TypeDecorator[int]
else:
    # SQLAlchemy 1.4 knows no type parameter.
    _Decorator = TypeDecorator

metadata = MetaData()


class WholeNumber(_Decorator):
    """
    An integer column.

    SQLite stores any value in it: what is no number comes out as 0, TYPO3's own default.
    """

    impl = BigInteger
    cache_ok = True

    def result_processor(self, dialect: Dialect, _coltype: object) -> Callable[[Any], int | None] | None:
        """Leave the numbers of the other engines as they are: most of what a derivation reads is numbers."""
        return _whole if dialect.name == "sqlite" else None


def _whole(value: Any) -> int | None:
    if value is None or isinstance(value, int):
        return value
    return int(value) if isinstance(value, float) and isfinite(value) else 0


#: TYPO3 core: one row for each thing DataHandler did to a record.
history = Table(
    "sys_history",
    metadata,
    Column("uid", WholeNumber, primary_key=True),
    Column("tstamp", WholeNumber),
    Column("actiontype", WholeNumber),
    Column("recuid", WholeNumber),
    Column("tablename", String(255)),
    Column("usertype", String(2)),
    Column("workspace", WholeNumber),
)

#: nr_llm: one row for each AI run.
run = Table(
    "tx_nrllm_agentrun",
    metadata,
    Column("uid", WholeNumber, primary_key=True),
    Column("uuid", String(36)),
    Column("status", String(32)),
    Column("finished_at", WholeNumber),
    Column("crdate", WholeNumber),
)

#: nr_llm: what a run did, of which only the ``tool_write`` events are read.
event = Table(
    "tx_nrllm_agentrun_event",
    metadata,
    Column("uid", WholeNumber, primary_key=True),
    Column("run", WholeNumber),
    Column("kind", String(32)),
    Column("payload", Text),
    Column("crdate", WholeNumber),
)

#: nr_llm: explicit and observed outcomes by correlation id (ADR-176).
outcome = Table(
    "tx_nrllm_call_outcome",
    metadata,
    Column("uid", WholeNumber, primary_key=True, autoincrement=True),
    Column("pid", WholeNumber),
    Column("correlation_id", String(36)),
    Column("outcome", String(24)),
    Column("crdate", WholeNumber),
    Column("tstamp", WholeNumber),
)

#: What the derivation reads and writes, besides the records that runs wrote.
DERIVATION_TABLES = (history, run, event, outcome)


def tables_of_a_derivation(machine_users: Collection[str]) -> tuple[Table, ...]:
    """Return what a derivation reads and writes, where these TYPO3 users are named as machines."""
    if not machine_users:
        return DERIVATION_TABLES
    return (history_with_users, run, event, outcome, backend_user)


#: The same with the user, who is compared with :data:`backend_user` inside the database: the id does not leave it.
history_with_users = history.to_metadata(MetaData())
history_with_users.append_column(Column("userid", WholeNumber))

#: TYPO3 core: the users of the backend, to tell by name which of them are machines.
backend_user = Table(
    "be_users",
    metadata,
    Column("uid", WholeNumber, primary_key=True),
    Column("username", String(255)),
)


#: The columns of a written record that tell whether it is still there; a table has ``uid`` and any of these.
RECORD_COLUMNS = ("tstamp", "deleted", "t3ver_wsid")

#: Where a table keeps when a record was changed, if it has no ``tstamp``: ``sys_redirect`` and its kind.
INSTEAD_OF_RECORD_COLUMNS = {"tstamp": "updatedon"}

#: The columns of which a written record is hidden by the first that its table has.
ENABLE_COLUMNS = ("hidden", "disabled", "disable")


@lru_cache(maxsize=1000)
def record_table(name: str, columns: frozenset[str]) -> Table:
    """
    Return the written table ``name`` with its uid and those of the columns above that it has.

    The name comes from data. It is given to SQLAlchemy as an identifier, which quotes it as the engine wants. The same
    object for the same columns: SQLAlchemy keeps the statements that it has compiled by the tables in them.

    :param name: a table name that was looked up in the database before
    :param columns: the names of the columns the table has
    """
    known = (*RECORD_COLUMNS, *INSTEAD_OF_RECORD_COLUMNS.values(), *ENABLE_COLUMNS)
    present = [column for column in known if column in columns]
    return Table(name, MetaData(), Column("uid", WholeNumber), *(Column(column, WholeNumber) for column in present))
