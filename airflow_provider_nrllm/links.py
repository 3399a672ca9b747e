"""The link that Airflow's UI shows with a task."""

from __future__ import annotations

from typing import Any

from airflow.providers.common.compat.sdk import BaseOperator, BaseOperatorLink
from airflow.providers.common.compat.version_compat import AIRFLOW_V_3_1_PLUS

from airflow_provider_nrllm.ui import PAGE


class NrLlmPageLink(BaseOperatorLink):
    """A link to the page of readouts in Airflow's UI."""

    name = "AI outcomes"

    def get_link(self, operator: BaseOperator, *, ti_key: Any) -> str:  # noqa: ARG002
        """Return the page's address, relative to that of the UI: a worker need not know where the UI is."""
        return PAGE


#: What an operator sets as ``operator_extra_links``. Before Airflow 3.1 there is no page.
PAGE_LINKS = (NrLlmPageLink(),) if AIRFLOW_V_3_1_PLUS else ()
