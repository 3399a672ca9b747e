"""A private PgBouncer in front of a PostgreSQL server: each transaction may get another session of the server."""

from __future__ import annotations

import os
import signal

from tests.typo3.servers import Postgres, Server


class PgBouncer(Server):
    """
    A pooler in transaction mode with few sessions, which several clients take turns in.

    :param behind: the server
    """

    name = "pgbouncer"
    conn_type = "postgres"
    driver = "postgresql+psycopg2"
    account = "postgres"
    install = "apt-get install pgbouncer"
    stop_signal = signal.SIGINT
    kill_signal = signal.SIGQUIT

    def __init__(self, behind: Postgres) -> None:
        self.behind = behind
        super().__init__()

    def _create(self) -> None:
        url = self.behind.url
        settings = self.directory / "pgbouncer.ini"
        settings.write_text(
            f"[databases]\n{url.database} = host={url.host} port={url.port} user={url.username} "
            f"password={url.password}\n"
            f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {self.port}\nunix_socket_dir =\n"
            "auth_type = any\npool_mode = transaction\ndefault_pool_size = 2\n"
        )
        if self._ids:
            os.chown(settings, *self._ids)

    def _command(self) -> list[str]:
        return [self._program("pgbouncer"), str(self.directory / "pgbouncer.ini")]
