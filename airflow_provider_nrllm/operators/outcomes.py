"""NrLlmDeriveOutcomesOperator: derives the outcome of every run that settled in a partition."""

from __future__ import annotations

import gc
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import AirflowException, BaseOperator, Context

from airflow_provider_nrllm.assets import attach_counts
from airflow_provider_nrllm.database.tables import RECORD_COLUMNS
from airflow_provider_nrllm.edits.meanings import (
    AUTOMATIC_FIELDS,
    PLACE_FIELDS,
    RELEASE_FIELDS,
    EditedMeans,
    IgnoredFields,
)
from airflow_provider_nrllm.exceptions import NrLlmPartitionError, NrLlmPrivilegeError
from airflow_provider_nrllm.hooks.nrllm import NrLlmHook
from airflow_provider_nrllm.links import PAGE_LINKS
from airflow_provider_nrllm.operators.arguments import (
    check_interval,
    check_partitions,
    checked_machine_users,
    checked_page_size,
    partition_of_run,
)
from airflow_provider_nrllm.outcomes.partitions import DAY, Partition, window_seconds
from airflow_provider_nrllm.outcomes.rules import ObservedOutcome
from airflow_provider_nrllm.outcomes.ways import SeveralRecords

if TYPE_CHECKING:
    from airflow.providers.openlineage.extractors import OperatorLineage


#: How long a partition is waited for that has not closed by the clock of the worker, in seconds.
CLOCK_WAIT = 60

#: Up to how many seconds before its close the task is retried, since only clocks may be to blame.
CLOCK_RETRY = 3600

#: How long ago a partition may have ended to be the newest one, of a daily or an hourly schedule.
NEWEST = timedelta(days=2)


class NrLlmDeriveOutcomesOperator(BaseOperator):
    """
    Derive the observed outcome of every run that settled in a partition and has none yet.

    Writes rows of ``tx_nrllm_call_outcome`` and nothing else, each run once, whatever runs at the same time,
    was killed or is repeated. The partition is, in this order: ``interval_start`` and ``interval_end``; the
    run's data interval, if it has width; its partition date or key with ``partition_width``; else all that
    settled before the interval's end, or before now. Rules: ADR-176, ADR-185.

    Returns counts, and attaches them to its outlet assets: the partition, the window, the runs answered,
    the runs of each outcome, the writes whose record could not be read, and how many runs wrote several records, and
    of these ended in more than one way, in which ways.

    :param nrllm_conn_id: the Airflow connection to the TYPO3 database
    :param window: how long a record is watched after a write: whole days or a timedelta, at least 1 day
    :param interval_start: the start of the partition, included (templated; a datetime or ISO 8601 text, UTC)
    :param interval_end: the end of the partition, not included (templated; a datetime or ISO 8601 text, UTC)
    :param partition_width: how long a partition of a partitioned schedule is: a timedelta, of which whole days are
        counted by the wall clock, or ``month``
    :param partition_timezone: the time zone of that schedule, and of a partition key without an offset; None: that of
        the DAG's timetable, or UTC where it has none
    :param page_size: the most runs read and recorded at once, 1 to 5000
    :param edited_means: ``any change``, as ADR-185 decides, or ``our fields``: only a change of a field that the
        run set itself makes it ``edited``, where that cannot be told it is ``unknown``. Outcomes derived in the
        two ways must not be compared; which one was used is in the result and on the asset. ``our fields`` needs
        the right to read ``sys_history.history_data``, of which only the names of fields are taken
    :param release_fields: the fields that release a record; only for ``our fields``
    :param automatic_fields: the fields TYPO3 changes by itself, ``*`` for any rest of a name; only for ``our fields``
    :param place_fields: the fields that tell where a record stands, which a move changes; only for ``our fields``
    :param machine_users: the names of TYPO3 users whose changes are a machine's and no edits, such as ``_cli_`` or
        an importer; needs the right to read ``sys_history.userid`` and ``be_users (uid, username)``, which are
        compared inside the database
    :raises ValueError: for an invalid window, page size, width, interval or list, when the DAG is parsed
    """

    template_fields: Sequence[str] = ("nrllm_conn_id", "interval_start", "interval_end")
    ui_color = "#ffe9c9"
    operator_extra_links = PAGE_LINKS

    def __init__(
        self,
        *,
        nrllm_conn_id: str = NrLlmHook.default_conn_name,
        window: int | timedelta = 7,
        interval_start: str | datetime | None = None,
        interval_end: str | datetime | None = None,
        partition_width: timedelta | str = timedelta(days=1),
        partition_timezone: str | None = None,
        page_size: int = 1000,
        edited_means: str = "any change",
        release_fields: Sequence[str] = RELEASE_FIELDS,
        automatic_fields: Sequence[str] = AUTOMATIC_FIELDS,
        place_fields: Sequence[str] = PLACE_FIELDS,
        machine_users: Sequence[str] = (),
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        window_seconds(window)
        EditedMeans(edited_means)
        IgnoredFields.of(release_fields, automatic_fields, place_fields)
        check_partitions(partition_width, partition_timezone)
        check_interval(interval_start, interval_end)
        self.nrllm_conn_id = nrllm_conn_id
        self.window = window
        self.interval_start = interval_start
        self.interval_end = interval_end
        self.partition_width = partition_width
        self.partition_timezone = partition_timezone
        self.page_size = checked_page_size(page_size)
        self.edited_means = edited_means
        self.release_fields = release_fields
        self.automatic_fields = automatic_fields
        self.place_fields = place_fields
        self.machine_users = checked_machine_users(machine_users)

    #: The counts so far, and the tables of records that were read so far.
    _for_lineage: tuple[dict[str, Any] | None, set[str]] = (None, set())

    @cached_property
    def hook(self) -> NrLlmHook:
        """The hook that reads and records."""
        return NrLlmHook(self.nrllm_conn_id, machine_users=self.machine_users, statement_timeout=self.execution_timeout)

    def execute(self, context: Context) -> dict[str, Any]:
        """
        Derive and record the outcomes of the partition, and return the counts.

        :raises NrLlmPrivilegeError: at the end, if runs wrote a table that may not be read; all others are answered
        """
        partition = self._partition(context)
        window = window_seconds(self.window)
        self.log.info("Partition %s; window %d days; edited means %s", partition, window // DAY, self.edited_means)
        outcomes: Counter[ObservedOutcome] = Counter()
        several = SeveralRecords()
        unreadable = 0
        written_tables: set[str] = set()

        def counts() -> dict[str, Any]:
            return {
                "interval_start": partition.start.astimezone(UTC).isoformat() if partition.start else None,
                "interval_end": partition.end.astimezone(UTC).isoformat(),
                "window_days": window // DAY,
                "edited_means": self.edited_means,
                "runs_answered": outcomes.total(),
                "outcomes": {str(value): outcomes[value] for value in ObservedOutcome},
                "unreadable_writes": unreadable,
                "several_records": {
                    "runs": several.runs,
                    "in_several_ways": several.in_several_ways,
                    "ways": dict(several.by_words),
                },
            }

        # A task that fails later has read these tables and answered these runs.
        self._for_lineage = counts(), written_tables
        refused: list[tuple[str, str]] = []
        pages = self.hook.pages(
            partition.start_second,
            partition.end_second,
            window=window,
            page_size=self.page_size,
            our_fields=self._our_fields(),
        )
        with _seldom_collected():
            for number, page in enumerate(pages, start=1):
                now = int(time.time())
                answers = page.outcomes(now)
                recorded = self.hook.record_observed(page.runs, answers)
                outcomes.update(answers[run.uuid] for run in recorded)
                several.update(page.several_records(recorded, now))
                unreadable += sum(run.unreadable_writes for run in recorded)
                written_tables |= page.tables
                self._for_lineage = counts(), written_tables
                refused += page.refused
                reached = datetime.fromtimestamp(page.reached, UTC)
                self.log.info(
                    "Page %d: %d runs answered, %d in all, up to %s",
                    number, len(recorded), outcomes.total(), reached.strftime("%Y-%m-%dT%H:%M:%SZ"),
                )  # fmt: skip
        result = counts()
        self.log.info(
            "%d runs answered: %s; %d writes name no record that can be read",
            outcomes.total(), ", ".join(f"{outcomes[value]} {value}" for value in ObservedOutcome), unreadable,
        )  # fmt: skip
        self.log.info(
            "%d of the runs wrote several records, and %d of these ended in more than one way: %s",
            several.runs, several.in_several_ways,
            ", ".join(f"{count} {ways}" for ways, count in several.by_words.items()) or "none",
        )  # fmt: skip
        self._warn_of_gap(partition, window)
        if refused:
            raise NrLlmPrivilegeError(_refused_in_words(self.nrllm_conn_id, refused))
        attach_counts(self, context, result)
        return result

    def get_openlineage_facets_on_complete(self, task_instance: Any) -> OperatorLineage[Any, Any]:  # noqa: ARG002
        """
        Tell OpenLineage, where its provider is installed, which tables were read and written, and the counts.

        Of a task that failed, the counts are those of the pages that were recorded, and there are none if it failed
        before it knew its partition.
        """
        from airflow_provider_nrllm.lineage import lineage_of

        return lineage_of(self.nrllm_conn_id, *self._for_lineage)

    def _warn_of_gap(self, partition: Partition, window: int) -> None:
        """
        Say how many earlier runs no derivation has answered, as with ``catchup=False`` or after a failed day.

        Only the newest partition looks: those of a catch-up or a backfill leave it to the last one.
        """
        start = partition.start_second
        if start is None or datetime.now(UTC) - partition.end > NEWEST:
            return
        gap = self.hook.gap_before(start, window=window)
        if gap.since is None:
            return
        since = datetime.fromtimestamp(gap.since, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        self.log.warning(
            "%d runs settled before this partition and have no outcome, the first at %s; no later partition answers "
            "them. Derive all that settled: `airflow dags trigger %s`, without a date. See docs/how-to/backfill.md.",
            gap.runs, since, self.dag_id,
        )  # fmt: skip

    def _our_fields(self) -> IgnoredFields | None:
        """Return the lists that tell changes of our fields apart, None where any change is an edit."""
        if EditedMeans(self.edited_means) is EditedMeans.ANY_CHANGE:
            return None
        return IgnoredFields.of(self.release_fields, self.automatic_fields, self.place_fields)

    def _partition(self, context: Context) -> Partition:
        """
        Return the partition of this run.

        :raises NrLlmPartitionError: where it is no range of time, or does not close for long; not retried
        :raises AirflowException: where it closes soon, as for a worker whose clock is behind
        """
        partition = partition_of_run(context, self)
        early = (partition.end - datetime.now(UTC)).total_seconds()
        if 0 < early <= CLOCK_WAIT:
            # The scheduler's clock may be ahead of this worker's.
            self.log.info("The partition ends in %.1f seconds by this worker's clock: waiting for it", early)
            while (early := (partition.end - datetime.now(UTC)).total_seconds()) > 0:
                time.sleep(early)
        now = datetime.now(UTC)
        if 0 < early <= CLOCK_RETRY:
            raise AirflowException(
                f"The partition {partition} ends {early:.0f} seconds after now, {now.isoformat()}, by this worker's "
                "clock; expected an end in the past. It is retried; compare the clocks of the worker and the scheduler."
            )
        if partition.end > now:
            raise NrLlmPartitionError(
                f"The partition {partition} ends after now, {now.isoformat()}; expected an end in the past: what "
                "settles until then cannot be known yet. Run it when it has closed; a schedule of partitions "
                "needs an offset of -1."
            )
        return partition


#: How many more objects than at the last time there may be before Python looks for circles of them.
_COLLECTED_EVERY = 100_000


@contextmanager
def _seldom_collected() -> Iterator[None]:
    """
    Let Python look seldom for circles of objects, which a derivation does not make.

    It would walk all that Airflow has in memory again and again while pages are read.
    """
    thresholds = gc.get_threshold()
    gc.set_threshold(max(_COLLECTED_EVERY, thresholds[0]), *thresholds[1:])
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)


#: The most runs that an error names.
_NAMED_RUNS = 20


def _refused_in_words(conn_id: str, refused: Sequence[tuple[str, str]]) -> str:
    """Return which runs were left out, since they wrote a table that may not be read, and the grants that help."""
    tables = sorted({table for _, table in refused})
    columns = ", ".join(("uid", *RECORD_COLUMNS))
    named = ", ".join(f"{uuid} ({table})" for uuid, table in refused[:_NAMED_RUNS])
    more = f" and {len(refused) - _NAMED_RUNS} more" if len(refused) > _NAMED_RUNS else ""
    grants = "; ".join(f"GRANT SELECT ({columns}) ON {table}" for table in tables)
    return (
        f"Connection {conn_id!r}: {len(refused)} runs have no outcome, since they wrote a table that the database "
        f"user may not read: {named}{more}. All other runs of the partition are answered. Missing, of the columns "
        f"that the table has: {grants}. See docs/how-to/database-user.md; then run this task again."
    )
