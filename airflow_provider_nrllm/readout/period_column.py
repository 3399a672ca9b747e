"""The SQL that tells in which day, week or month a time lies."""

from __future__ import annotations

from typing import Any

from sqlalchemy import BigInteger, cast, func, literal_column
from sqlalchemy.sql import ColumnElement

from airflow_provider_nrllm.outcomes.partitions import DAY
from airflow_provider_nrllm.readout.periods import PeriodWidth

#: The first Monday is four days after the epoch.
_TO_MONDAY = 3 * DAY


def period_of(dialect: str, width: PeriodWidth, at: ColumnElement[Any]) -> ColumnElement[Any]:
    """Return the day (UTC) that tells a time's period: its first one as a Unix time, of a month ``2026-03``."""
    if width is PeriodWidth.DAY:
        return at - at % DAY
    if width is PeriodWidth.WEEK:
        # MySQL and MariaDB refuse an unsigned number below 0, as Thursday, 1970-01-01, would make it.
        signed = cast(at, BigInteger)
        return signed - (signed + _TO_MONDAY) % (7 * DAY)
    if dialect == "postgresql":
        return func.to_char(func.timezone("UTC", func.to_timestamp(at)), "YYYY-MM")
    if dialect == "sqlite":
        return func.strftime("%Y-%m", at, "unixepoch")
    # Not FROM_UNIXTIME, which knows the session's time zone.
    return func.date_format(func.timestampadd(literal_column("SECOND"), at, "1970-01-01"), "%Y-%m")
