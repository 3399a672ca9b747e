"""The readouts of several sites as one. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from airflow_provider_nrllm.readout.audited import AuditedRuns
from airflow_provider_nrllm.readout.counts import Group, Readout, in_order, pooled, together
from airflow_provider_nrllm.readout.coverage import Coverage
from airflow_provider_nrllm.readout.groups import GroupKey


def of_sites(readouts: Mapping[str, Readout], failed: Mapping[str, str]) -> Readout:
    """
    Return one readout of all sites; groups of one key are one group.

    :param readouts: at least one, by site, all of the same question and with periods of one width
    :param failed: the kind of the error by each site that could not be read
    """
    told = list(readouts.values())
    by_key: dict[GroupKey, list[Group]] = {}
    for readout in told:
        for group in readout.groups:
            by_key.setdefault(group.key, []).append(group)
    return replace(
        told[0],
        groups=in_order(_as_one(groups) for groups in by_key.values()),
        periods=together(readout.periods for readout in told),
        without_run=sum(readout.without_run for readout in told),
        coverage=sum((readout.coverage for readout in told), Coverage()),
        sites=tuple(readouts),
        sites_failed=dict(failed),
    )


def _as_one(groups: Sequence[Group]) -> Group:
    if len(groups) == 1:
        return groups[0]
    periods = together(group.periods for group in groups)
    return Group(groups[0].key, *pooled(periods), _audit(group.audit for group in groups), periods)


def _audit(found: Iterable[AuditedRuns | None]) -> AuditedRuns | None:
    told = [audit for audit in found if audit is not None]
    return AuditedRuns.together(told) if told else None
