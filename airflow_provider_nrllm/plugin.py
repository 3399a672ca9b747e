"""
The plugin that puts the page of readouts into Airflow's UI, from Airflow 3.1 on.

Every process of Airflow imports this module, so that it imports next to nothing: the app behind the page is built when
the api-server asks for it.
"""

from __future__ import annotations

import functools
import logging
from typing import Any

from airflow.providers.common.compat.sdk import AirflowPlugin
from airflow.providers.common.compat.version_compat import AIRFLOW_V_3_1_PLUS

from airflow_provider_nrllm.ui import PAGE

log = logging.getLogger(__name__)


@functools.cache
def _apps() -> tuple[dict[str, Any], ...]:
    """Build the app once; without the check of rights there is none, and Airflow starts all the same."""
    try:
        from airflow_provider_nrllm.ui.app import create_app

        return ({"name": "nr_llm", "app": create_app(), "url_prefix": f"/{PAGE.rstrip('/')}"},)
    except Exception:
        log.exception("The page of nr_llm's outcomes is not shown: its app cannot be built on this Airflow.")
        return ()


class NrLlmPlugin(AirflowPlugin):
    """An entry "AI outcomes" in the Browse menu, and the page that it opens. Empty before Airflow 3.1."""

    name = "nrllm"
    external_views: list[dict[str, Any]] = (
        [{"name": "AI outcomes", "href": PAGE, "url_route": "nrllm", "destination": "nav", "category": "browse"}]
        if AIRFLOW_V_3_1_PLUS
        else []
    )

    # Before 3.1 an exception in here would end "airflow plugins", and there is no frame to show the page in.
    @property
    def fastapi_apps(self) -> list[dict[str, Any]]:  # type: ignore[override]
        """The app that the api-server mounts."""
        return list(_apps()) if AIRFLOW_V_3_1_PLUS else []
