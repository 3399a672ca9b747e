"""A Galera cluster of two MariaDB servers, whose nodes do not share row locks."""

from __future__ import annotations

from glob import glob

from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from tests.typo3.servers import MariaDB, ServerError, free_port

_LIBRARIES = ("/usr/lib/galera/libgalera_smm.so", "/usr/lib*/galera-4/libgalera_smm.so")


class Node(MariaDB):
    """
    A node of a cluster.

    :param other: a node that is there; it hands over its data. None for the first node
    """

    def __init__(self, other: Node | None = None) -> None:
        self.group_port = free_port()
        self._other = other
        super().__init__()
        if other is not None:
            self.password, self.url = other.password, self.url.set(password=other.password)
            self.connection = {**self.connection, "password": other.password}

    def _create(self) -> None:
        if self._other is not None:
            # What it is let in with comes with the other's data.
            self.password, self.url = self._other.password, self.url.set(password=self._other.password)
        super()._create()

    def _command(self) -> list[str]:
        library = next((found for pattern in _LIBRARIES for found in glob(pattern)), None)
        if library is None:
            raise ServerError("Galera is not installed; on Debian and Ubuntu: apt-get install galera-4 rsync lsof")
        address = f"127.0.0.1:{self._other.group_port}" if self._other else ""
        mine = f"127.0.0.1:{self.group_port}"
        return [
            *(part for part in super()._command() if part != "--skip-log-bin"),
            "--binlog-format=ROW",
            "--innodb-autoinc-lock-mode=2",
            "--wsrep-on=ON",
            f"--wsrep-provider={library}",
            f"--wsrep-cluster-address=gcomm://{address}",
            f"--wsrep-node-address={mine}",
            "--wsrep-sst-method=rsync",
            f"--wsrep-sst-receive-address=127.0.0.1:{free_port()}",
            f"--wsrep-provider-options=gmcast.listen_addr=tcp://{mine};ist.recv_addr=127.0.0.1:{free_port()}",
            *([] if self._other else ["--wsrep-new-cluster"]),
        ]

    def _answers(self) -> bool:
        try:
            with self.engine().connect() as connection:
                row = connection.execute(text("SHOW STATUS LIKE 'wsrep_ready'")).first()
        except DBAPIError:
            return False
        return row is not None and row[1] == "ON"


def wait_until_same(*nodes: Node) -> None:
    """Wait until each node has what the others committed before."""
    for node in nodes:
        with node.engine().connect() as connection:
            connection.execute(text("SET SESSION wsrep_sync_wait = 15"))
            connection.execute(text("SELECT 1 FROM information_schema.tables LIMIT 1"))
