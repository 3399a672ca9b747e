"""What the hooks of this provider have in common: an Airflow connection to a TYPO3 database."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, ClassVar

from airflow.providers.common.compat.sdk import BaseHook
from sqlalchemy import Table

from airflow_provider_nrllm.database.opening import open_connection
from airflow_provider_nrllm.database.site import SiteDatabase


class SiteHook(BaseHook):
    """
    A hook to a TYPO3 database over any Airflow connection of type ``mysql``, ``postgres`` or ``sqlite``.

    :param nrllm_conn_id: the Airflow connection to the TYPO3 database
    """

    conn_name_attr = "nrllm_conn_id"
    default_conn_name = "nrllm_default"
    hook_name: ClassVar[str]
    #: The tables without which the hook cannot work.
    required: Sequence[Table]

    def __init__(self, nrllm_conn_id: str = default_conn_name, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.nrllm_conn_id = nrllm_conn_id

    @cached_property
    def database(self) -> SiteDatabase:
        """The database behind the connection."""
        return SiteDatabase(self.nrllm_conn_id, required=self.required)

    def get_conn(self) -> Any:
        """Return a plain DB-API connection, as the Airflow hook of the connection opens it."""
        return open_connection(self.nrllm_conn_id)

    def test_connection(self) -> tuple[bool, str]:
        """Tell whether the tables and columns are there, and name what is missing."""
        try:
            missing = self.database.missing()
        except Exception as error:
            return False, "\n".join([str(error), *getattr(error, "__notes__", ())])
        if missing:
            return False, self.database.explain_missing(missing)
        return True, f"Connection {self.nrllm_conn_id!r}: all tables and columns that {self.hook_name} needs are there."
