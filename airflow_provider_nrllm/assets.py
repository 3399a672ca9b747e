"""The asset that a derivation updates, the observed outcomes of one site, and what is attached to an asset."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import SplitResult

from airflow.providers.common.compat.sdk import Asset, BaseOperator, Context

SCHEME = "nrllm"
_PATH = "/observed-outcomes"
_SITE = re.compile(r"[A-Za-z0-9_.\-]+")


def observed_outcomes_asset(nrllm_conn_id: str = "nrllm_default") -> Asset:
    """
    Return the asset of a site's observed outcomes, for ``outlets`` and for ``schedule``.

    ``NrLlmDeriveOutcomesOperator`` attaches its counts to it.

    :param nrllm_conn_id: the Airflow connection to the TYPO3 database
    :raises ValueError: for a connection id that is no part of a URI
    """
    uri = sanitize_uri(SplitResult(SCHEME, nrllm_conn_id, _PATH, "", ""))
    return Asset(uri.geturl())


def sanitize_uri(uri: SplitResult) -> SplitResult:
    """
    Check a URI of the scheme ``nrllm``, as Airflow asks for it when an asset is made.

    :raises ValueError: for anything but ``nrllm://<connection>/observed-outcomes``
    """
    if not _SITE.fullmatch(uri.netloc) or uri.path != _PATH or uri.query or uri.fragment:
        raise ValueError(f"{uri.geturl()!r} names no asset; expected nrllm://<connection>{_PATH}")
    return uri


def attach_counts(operator: BaseOperator, context: Context, counts: Mapping[str, Any]) -> None:
    """Attach counts to the events of an operator's outlet assets, if it has any."""
    for outlet in operator.outlets:
        if isinstance(outlet, Asset):
            context["outlet_events"][outlet].extra.update(counts)
