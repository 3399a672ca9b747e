"""The base of this provider's hooks: an Airflow connection to a TYPO3 database."""

from __future__ import annotations

from datetime import timedelta
from functools import cached_property
from typing import Any, ClassVar

from airflow.providers.common.compat.sdk import BaseHook

from airflow_provider_nrllm.database.opening import open_connection
from airflow_provider_nrllm.database.requirements import Requirements
from airflow_provider_nrllm.database.site import SiteDatabase


class SiteHook(BaseHook):
    """
    A hook to a TYPO3 database over any Airflow connection of type ``mysql``, ``postgres`` or ``sqlite``.

    :param nrllm_conn_id: the Airflow connection to the TYPO3 database
    :param statement_timeout: how long one statement may take; by default as long as the server lets it
    """

    conn_name_attr = "nrllm_conn_id"
    default_conn_name = "nrllm_default"
    hook_name: ClassVar[str]
    #: What the hook needs of the database.
    requirements: Requirements

    def __init__(
        self, nrllm_conn_id: str = default_conn_name, *, statement_timeout: timedelta | None = None, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.nrllm_conn_id = nrllm_conn_id
        self.statement_timeout = statement_timeout

    @cached_property
    def database(self) -> SiteDatabase:
        """The database behind the connection."""
        seconds = self.statement_timeout.total_seconds() if self.statement_timeout else None
        return SiteDatabase(self.nrllm_conn_id, self.requirements, seconds=seconds)

    def get_conn(self) -> Any:
        """Return a plain DB-API connection, as the Airflow hook of the connection opens it."""
        return open_connection(self.nrllm_conn_id)

    def test_connection(self) -> tuple[bool, str]:
        """
        Tell whether the tables and columns are there and the user has the privileges, and name what is missing.

        Writes nothing: the privileges are looked up in the database's catalogue.
        """
        try:
            wrong = self.database.test()
        except Exception as error:
            return False, "\n".join([str(error), *getattr(error, "__notes__", ())])
        if wrong:
            return False, wrong
        return True, f"Connection {self.nrllm_conn_id!r}: all that {self.hook_name} needs is there and may be used."
