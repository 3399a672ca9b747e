"""NrLlmOutcomeReadoutOperator: explicit and observed outcomes by model, each source for itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, TypeVar

from airflow.providers.common.compat.sdk import BaseOperator, Context, ObjectStoragePath

from airflow_provider_nrllm.database.errors import kind_of
from airflow_provider_nrllm.edits.meanings import (
    AUTOMATIC_FIELDS,
    PLACE_FIELDS,
    RELEASE_FIELDS,
    EditedMeans,
    IgnoredFields,
)
from airflow_provider_nrllm.exceptions import NrLlmSettingError
from airflow_provider_nrllm.hooks.audit import NrLlmEditedAuditHook
from airflow_provider_nrllm.hooks.readout import NrLlmReadoutHook
from airflow_provider_nrllm.links import PAGE_LINKS
from airflow_provider_nrllm.operators.arguments import (
    check_interval,
    check_partitions,
    checked_sites,
    is_resolved_later,
    partition_of_run,
)
from airflow_provider_nrllm.outcomes.partitions import Partition, window_seconds
from airflow_provider_nrllm.outcomes.rules import ObservedOutcome
from airflow_provider_nrllm.readout.behind import Explain
from airflow_provider_nrllm.readout.counts import RangeOf, Readout
from airflow_provider_nrllm.readout.exports import XCOM_GROUPS, as_json
from airflow_provider_nrllm.readout.files import page_writer, write_files
from airflow_provider_nrllm.readout.groups import Dimension, filters_of, grouping_of, grouping_of_sites
from airflow_provider_nrllm.readout.markdown import as_markdown
from airflow_provider_nrllm.readout.periods import PeriodWidth
from airflow_provider_nrllm.readout.runs import AnsweredRun, LinkTemplate
from airflow_provider_nrllm.readout.sites import of_sites

T = TypeVar("T")


class NrLlmOutcomeReadoutOperator(BaseOperator):
    """
    Read how outcomes are spread over models, configurations and the like, each source for itself (ADR-176).

    Returns the figures as plain JSON, at most 200 groups of them, and logs them as Markdown. With ``output_path`` it
    also writes ``outcomes.json``, ``outcomes.csv`` and ``outcomes.html`` with all groups. Makes no
    recommendation. Writes nothing into the database, reads no record content, user id or approval; safe to
    repeat: it overwrites its files. With ``dated_folders`` a readout of another range leaves them in place.

    The range is ``interval_start`` and ``interval_end``; else the run's data interval, if it has width; else its
    partition; else all before now.

    :param nrllm_conn_id: the Airflow connection to the TYPO3 database, or a list of those of several sites: then it is
        one readout of all, one dimension is told within each site, and a site that cannot be read is named and left out
    :param group_by: one of ``served_model``, ``requested_model``, ``response_model``, ``configuration``,
        ``served_configuration``, ``routing_mode``, ``source_extension``, ``operation``, ``tool``, ``table``,
        ``site``, or two of them: then the second is compared within each of the first
    :param where: the names that count, by dimension, such as ``{"configuration": ["seo-meta"], "table": ["pages"]}``
    :param reference: the name that the others stand beside: of the one dimension, or of the second of two; without it,
        the one with the most cases
    :param currency: the unit of the costs in telemetry, such as ``USD``; nothing is converted
    :param range_of: whose time has to be in the range. ``outcome``: when an observed outcome's run settled, or when a
        rating was given; ``recorded``: when the outcome was recorded; ``run``: when the run was made, which leaves out
        ratings without a run
    :param interval_start: the start of the range, included (templated; a datetime or ISO 8601 text, UTC)
    :param interval_end: the end of the range, not included (templated; a datetime or ISO 8601 text, UTC)
    :param partition_width: how long a partition of a partitioned schedule is: a timedelta, of which whole days are
        counted by the wall clock, or ``month``
    :param partition_timezone: the time zone of that schedule, and of a partition key without an offset; None: that of
        the DAG's timetable, or UTC where it has none
    :param output_path: the directory to write the files to: a local path, a URL such as ``s3://conn_id@bucket/key``,
        or an ``ObjectStoragePath`` (templated); needs the extra ``readout``
    :param dated_folders: whether each readout goes into a folder of its own below ``output_path``, named by the end of
        its range (UTC), and the newest of them into ``latest`` as well
    :param runs: whether to write also ``runs.csv``, a row for each outcome that counts, with the records that its run
        wrote, and to show the last 200 of each source on the page; needs ``output_path``. Why a run is ``unknown`` is
        told if the connection's user may read what a derivation reads
    :param link_template: the address of a record in the TYPO3 backend, such as
        ``https://www.example.org/typo3/record/edit?edit[{table}][{uid}]=edit``; ``{run}`` and ``{site}`` may be in it
        as well; needs ``runs``
    :param edited_audit: whether to look also at how much of EDITED is about the text that runs wrote, how much of
        ACCEPTED UNCHANGED was taken up, and which runs ended in more than one way (ADR-185); needs the right to read
        ``sys_history.history_data`` and ``hidden``, ``disabled`` or ``disable`` of the written tables
    :param edited_means: what made a run ``edited`` when the outcomes were derived; only for the audit
    :param window: the window the outcomes were derived with: whole days or a timedelta
    :param release_fields: the fields that release a record; only for the audit
    :param automatic_fields: the fields TYPO3 changes by itself, ``*`` for any rest of a name; only for the audit
    :param place_fields: the fields that tell where a record stands, which a move changes
    :raises ValueError: for an invalid argument, when the DAG is parsed
    """

    template_fields: Sequence[str] = ("nrllm_conn_id", "reference", "interval_start", "interval_end", "output_path")
    ui_color = "#d7ebf7"
    operator_extra_links = PAGE_LINKS

    def __init__(
        self,
        *,
        nrllm_conn_id: str | Sequence[str] = NrLlmReadoutHook.default_conn_name,
        group_by: str | Sequence[str] = "served_model",
        where: Mapping[str, Sequence[str]] | None = None,
        reference: str | None = None,
        currency: str = "",
        range_of: str = "outcome",
        interval_start: str | datetime | None = None,
        interval_end: str | datetime | None = None,
        partition_width: timedelta | str = timedelta(days=1),
        partition_timezone: str | None = None,
        output_path: str | ObjectStoragePath | None = None,
        dated_folders: bool = False,
        runs: bool = False,
        link_template: str | None = None,
        edited_audit: bool = False,
        edited_means: str = "any change",
        window: int | timedelta = 7,
        release_fields: Sequence[str] = RELEASE_FIELDS,
        automatic_fields: Sequence[str] = AUTOMATIC_FIELDS,
        place_fields: Sequence[str] = PLACE_FIELDS,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        grouping_of(group_by)
        if not isinstance(nrllm_conn_id, str) and not is_resolved_later(nrllm_conn_id):
            checked_sites(nrllm_conn_id)
        filters_of(where)
        if not isinstance(currency, str) or len(currency) > 10:
            raise ValueError(f"currency is {currency!r}; expected the unit of telemetry's costs, such as 'USD'")
        RangeOf(range_of)
        window_seconds(window)
        IgnoredFields.of(release_fields, automatic_fields, place_fields)
        EditedMeans(edited_means)
        if runs and output_path is None:
            raise ValueError("runs is True without output_path; expected the directory that runs.csv is written to")
        if link_template is not None:
            LinkTemplate.of(link_template)
            if not runs:
                raise ValueError("link_template is given without runs; expected runs=True, which the links are for")
        check_interval(interval_start, interval_end)
        check_partitions(partition_width, partition_timezone)
        self.nrllm_conn_id = nrllm_conn_id
        self.group_by = group_by
        self.where = where
        self.reference = reference
        self.currency = currency
        self.range_of = range_of
        self.interval_start = interval_start
        self.interval_end = interval_end
        self.partition_width = partition_width
        self.partition_timezone = partition_timezone
        self.output_path = output_path
        self.dated_folders = dated_folders
        self.runs = runs
        self.link_template = link_template
        self.edited_audit = edited_audit
        self.edited_means = edited_means
        self.window = window
        self.release_fields = release_fields
        self.automatic_fields = automatic_fields
        self.place_fields = place_fields

    def execute(self, context: Context) -> dict[str, Any]:
        """Count, log, write the files, and return the figures."""
        as_html = page_writer() if self.output_path else None
        partition = partition_of_run(context, self)
        self.log.info("Range %s", partition)
        if isinstance(self.nrllm_conn_id, str):
            readout = self._read(self.nrllm_conn_id, partition, grouping_of(self.group_by))
        else:
            readout = self._read_sites(partition)
        readout = replace(readout, reference=self.reference, currency=self.currency)
        self.log.info("Readout\n%s", as_markdown(readout, XCOM_GROUPS))
        files: list[str] = []
        if as_html and self.output_path:
            link = LinkTemplate.of(self.link_template) if self.link_template else None
            runs = self._runs_behind(readout) if self.runs else None
            written = write_files(
                self.output_path, readout, as_html, dated_folders=self.dated_folders, runs=runs, link=link
            )
            files = list(written)
        return {**as_json(readout, XCOM_GROUPS), "files": files}

    def _hook(self, site: str) -> NrLlmReadoutHook:
        return NrLlmReadoutHook(site, statement_timeout=self.execution_timeout)

    def _audit_hook(self, site: str) -> NrLlmEditedAuditHook:
        return NrLlmEditedAuditHook(site, statement_timeout=self.execution_timeout)

    @property
    def _ignored(self) -> IgnoredFields:
        return IgnoredFields.of(self.release_fields, self.automatic_fields, self.place_fields)

    def _read(
        self, site: str, partition: Partition, grouping: Sequence[Dimension], width: PeriodWidth | None = None
    ) -> Readout:
        """Return the readout of one site, with what its observed outcomes are worth if that is asked."""
        start, end = partition.start_second, partition.end_second
        asked: dict[str, Any] = {
            "grouping": grouping,
            "range_of": RangeOf(self.range_of),
            "where": filters_of(self.where),
            "window": window_seconds(self.window),
        }
        readout = self._hook(site).readout(start, end, width=width, **asked)
        if not self.edited_audit:
            return readout
        means = EditedMeans(self.edited_means)
        audited = self._audit_hook(site).audited_by_group(
            start, end, ignored=self._ignored, edited_means=means, **asked
        )
        groups = tuple(replace(group, audit=audited.get(group.key)) for group in readout.groups)
        return replace(readout, groups=groups, audited=True)

    def _read_sites(self, partition: Partition) -> Readout:
        """
        Return one readout of all sites that can be read, with the names of the others.

        :raises NrLlmSettingError: where the list was rendered to none; not retried
        :raises Exception: that of the first site, where none can be read
        """
        failed: dict[str, Exception] = {}

        def of_each(sites: Iterable[str], read: Callable[[str], T]) -> dict[str, T]:
            found = {}
            for site in sites:
                try:
                    found[site] = read(site)
                except Exception as error:
                    self.log.exception("Site %r is left out.", site)
                    failed[site] = error
            return found

        start, end, window = partition.start_second, partition.end_second, window_seconds(self.window)
        range_of, grouping = RangeOf(self.range_of), grouping_of_sites(self.group_by)
        try:
            sites = checked_sites(self.nrllm_conn_id)
        except ValueError as error:
            raise NrLlmSettingError(str(error)) from error
        # Periods of one width, so that those of the sites can be laid together.
        widths = of_each(
            sites,
            lambda site: self._hook(site).width_of(start, end, range_of=range_of, window=window),
        )
        longest = max(widths.values(), key=list(PeriodWidth).index, default=None)
        readouts = of_each(widths, lambda site: self._read(site, partition, grouping, longest))
        if not readouts:
            raise next(iter(failed.values()))
        return of_sites(readouts, {site: kind_of(error) for site, error in failed.items()})

    def _runs_behind(self, readout: Readout) -> Iterator[AnsweredRun]:
        """Yield the runs that the readout counts, site by site."""
        for site in readout.sites or [str(self.nrllm_conn_id)]:
            hook = self._hook(site)
            explain: dict[str, Explain] = {ObservedOutcome.UNKNOWN: hook.explain_unknown(readout.window)}
            if self.edited_audit:
                audit = self._audit_hook(site)
                for outcome in (ObservedOutcome.EDITED, ObservedOutcome.ACCEPTED_UNCHANGED):
                    explain[outcome] = audit.explain(outcome, readout.window, self._ignored)
            yield from hook.runs(
                readout.start,
                readout.end,
                grouping=readout.grouping,
                range_of=readout.range_of,
                where=readout.where,
                window=readout.window,
                explain=explain,
            )
