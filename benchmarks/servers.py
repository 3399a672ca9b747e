"""The servers of the benchmark: private, with the memory and the care of a real one, and their sites are kept."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from sqlalchemy import create_engine
from sqlalchemy.engine import Engine
from sqlalchemy.pool import NullPool

from tests.typo3.servers import MariaDB, Postgres, Server
from tests.typo3.year import Rows, Site, build

#: Where the sites are kept, in the checkout.
KEPT = Path(__file__).resolve().parent.parent / ".bench"
#: The servers listen on this machine only, and only while the benchmark runs.
PASSWORD = "benchmark"


class _Kept(Server):
    """A server whose data stays where it is told."""

    def __init__(self, data: Path) -> None:
        self.data = data
        super().__init__()

    def _create(self) -> None:
        self.password = PASSWORD
        self.url = self.url.set(password=PASSWORD)
        self.connection["password"] = PASSWORD
        self.data.mkdir(parents=True, exist_ok=True)
        if self._ids:
            os.chown(self.data, *self._ids)
        (self.directory / "data").symlink_to(self.data)
        super()._create()

    def _run(self, command: Sequence[str]) -> None:
        """Run what makes the data, unless it is there."""
        if not any(self.data.iterdir()):
            super()._run(command)


class KeptMariaDB(_Kept, MariaDB):
    """A MariaDB server that syncs its commits, as is usual, with 2 GB for pages."""

    def _command(self) -> list[str]:
        usual = [option for option in super()._command() if not option.startswith("--innodb")]
        return [*usual, "--innodb-buffer-pool-size=2G", "--innodb-log-file-size=512M"]


class KeptPostgres(_Kept, Postgres):
    """A PostgreSQL server that syncs its commits, as is usual, with 2 GB for pages."""

    def _command(self) -> list[str]:
        settings = {
            "listen_addresses": "127.0.0.1",
            "shared_buffers": "2GB",
            "effective_cache_size": "6GB",
            "max_wal_size": "4GB",
        }
        usual = super()._command()
        return [*usual[: usual.index("-c")], *(part for item in settings.items() for part in ("-c", "=".join(item)))]


SERVERS: dict[str, type[_Kept]] = {"mariadb": KeptMariaDB, "postgres": KeptPostgres}
ENGINES = (*SERVERS, "sqlite")


class KeptSite:
    """
    A site of a size on an engine: built the first time, and there again the next.

    :param make: makes the site of so many runs
    :ivar engine: opens connections of a user who may do anything
    :ivar connection: the fields of an Airflow connection to it
    """

    def __init__(self, name: str, runs: int, make: Callable[..., Rows] = Site, **options: Any) -> None:
        self.name = name
        home = KEPT / "-".join([name, *([] if make is Site else [make.__name__.lower()]), str(runs)])
        home.mkdir(parents=True, exist_ok=True)
        self.server = SERVERS[name](home / "data") if name in SERVERS else None
        if self.server:
            self.engine: Engine = self.server.engine()
            self.connection = self.server.connection
        else:
            path = home / "typo3.sqlite"
            self.engine = create_engine(f"sqlite:///{path}", poolclass=NullPool)
            self.connection = {"conn_type": "sqlite", "host": str(path)}
        built = home / "built"
        try:
            if not built.exists():
                if self.server:
                    self.server.empty_database()
                else:
                    Path(self.connection["host"]).unlink(missing_ok=True)
                build(self.engine, make(runs, **options))
                built.touch()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Stop the server; the site stays."""
        if self.server:
            self.server.remove()
