"""
Private MariaDB and PostgreSQL servers for the tests: started on a free port, stopped whatever happens.

pytest-mysql and pytest-postgresql were looked at first. Both start the server as the user who runs pytest,
which PostgreSQL refuses to root and CI often is root; neither can restart or crash a server in the middle of
a test; and they would bring a second client library (pymysql, psycopg 3) beside the ones Airflow uses.
"""

from __future__ import annotations

import os
import pwd
import random
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from glob import glob
from pathlib import Path
from typing import Any, ClassVar

from sqlalchemy import create_engine, text
from sqlalchemy.engine import URL, Engine
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool

USER = "nrllm"
DATABASE = "typo3"

#: The folders of programs that are used instead of the system's, by ``mariadb``, ``mysql`` or ``postgres``, as the
#: option ``--engine-server`` names them. With ``mysql``, MySQL stands wherever MariaDB would.
CHOSEN: dict[str, Path] = {}

# Where Debian and Homebrew keep servers that are not in everyone's PATH.
_PLACES = [
    "/usr/sbin",
    "/usr/local/sbin",
    "/opt/homebrew/opt/*/bin",
    "/usr/lib/postgresql/*/bin",
    "/usr/pgsql-*/bin",
]

# Each server has a keeper, which signals it when told so, and ends it and clears up when the test process is
# gone, however it went: a closed pipe needs no handler, and so works for SIGKILL and os._exit as well.
_KEEPER = """
import os, select, shutil, subprocess, sys
usual, user, group, *command = sys.argv[1:]
drop = {"user": int(user), "group": int(group), "extra_groups": []} if user else {}
server = subprocess.Popen(command, stdin=subprocess.DEVNULL, **drop)
while server.poll() is None and not select.select([sys.stdin], [], [], 0.2)[0]:
    pass
if server.poll() is None:
    told = sys.stdin.readline()
    server.send_signal(int(told or usual))
    server.wait()
    if not told:
        shutil.rmtree(os.getcwd(), ignore_errors=True)
"""


class ServerError(Exception):
    """A server is not installed, or does not start."""


class Server:
    """
    A database server of our own, with an empty database ``typo3`` and a user who may do anything.

    :ivar url: the SQLAlchemy URL of that user
    :ivar connection: the same as the fields of an Airflow connection
    """

    name: ClassVar[str]
    conn_type: ClassVar[str]
    driver: ClassVar[str]
    #: The account to run as where we are root; Debian's packages create it.
    account: ClassVar[str]
    install: ClassVar[str]
    #: Stop in good order: running statements are ended, all is written to disk.
    stop_signal: ClassVar[signal.Signals]
    #: Stop as by a crash: nothing is rolled back or written, the next start has to recover.
    kill_signal: ClassVar[signal.Signals]

    def __init__(self) -> None:
        self.port = free_port()
        self.password = secrets.token_hex(16)
        self.url = URL.create(self.driver, USER, self.password, "127.0.0.1", self.port, DATABASE)
        self.connection: dict[str, Any] = {
            "conn_type": self.conn_type,
            "host": "127.0.0.1",
            "port": self.port,
            "login": USER,
            "password": self.password,
            "schema": DATABASE,
        }
        self.directory = Path(tempfile.mkdtemp(prefix=f"nrllm-{self.name}-"))
        self.log = self.directory / "server.log"
        self._ids = self._unprivileged()
        # Servers that share a temporary directory delete each other's files in it.
        self.temporary = self.directory / "tmp"
        self.temporary.mkdir()
        if self._ids:
            os.chown(self.directory, *self._ids)
            os.chown(self.temporary, *self._ids)
        self._keeper: subprocess.Popen[str] | None = None
        try:
            self._create()
            self.start()
        except BaseException:
            self.remove()
            raise

    def engine(self, **options: Any) -> Engine:
        """Return an engine that keeps no connection, so that none is stale after a restart."""
        return create_engine(self.url, poolclass=NullPool, **options)

    def start(self) -> None:
        """Start the server, and wait until it answers."""
        user, group = self._ids or ("", "")
        usual = str(int(self.stop_signal))
        with self.log.open("a") as log:
            self._keeper = subprocess.Popen(
                [sys.executable, "-c", _KEEPER, usual, str(user), str(group), *self._command()],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self.directory,
                env=self._environment(),
                text=True,
                # Out of the terminal's reach: on Ctrl-C the tests end first, and then the server.
                start_new_session=True,
            )
        deadline = time.monotonic() + 60
        while not self._answers():
            if self._keeper.poll() is not None or time.monotonic() > deadline:
                raise ServerError(f"{self.name} does not start:\n{self.log.read_text(errors='replace')[-2000:]}")
            time.sleep(0.05)

    def is_running(self) -> bool:
        """Tell whether the server was started and has not ended since."""
        return self._keeper is not None and self._keeper.poll() is None

    def stop(self) -> None:
        """Stop the server in good order."""
        self._signal(self.stop_signal)

    def kill(self) -> None:
        """Stop the server as a crash would."""
        self._signal(self.kill_signal)

    def restart(self) -> None:
        """Stop the server in good order and start it again, on the same port with the same data."""
        self.stop()
        self.start()

    def remove(self) -> None:
        """Stop the server and delete all it had."""
        self.stop()
        shutil.rmtree(self.directory, ignore_errors=True)

    def _command(self) -> list[str]:
        raise NotImplementedError

    def _create(self) -> None:
        raise NotImplementedError

    def empty_database(self) -> None:
        """Drop all that is in the database."""
        raise NotImplementedError

    def _signal(self, number: signal.Signals) -> None:
        if self._keeper is None or self._keeper.stdin is None or not self.is_running():
            return
        self._keeper.stdin.write(f"{int(number)}\n")
        self._keeper.stdin.flush()
        self._keeper.wait(60)
        self._keeper.stdin.close()

    def _answers(self) -> bool:
        try:
            self.engine().connect().close()
        except DBAPIError:
            return False
        return True

    def _unprivileged(self) -> tuple[int, int] | None:
        if os.geteuid() != 0:
            return None
        for account in (self.account, "nobody"):
            try:
                entry = pwd.getpwnam(account)
            except KeyError:
                continue
            return entry.pw_uid, entry.pw_gid
        raise ServerError(f"{self.name} cannot run as root: add the user {self.account}")

    def _run(self, command: Sequence[str]) -> None:
        """Run a command to its end, as the user the server runs as."""
        drop: dict[str, Any] = {}
        if self._ids:
            drop = {"user": self._ids[0], "group": self._ids[1], "extra_groups": []}
        done = subprocess.run(
            command,
            cwd=self.directory,
            env=self._environment(),
            capture_output=True,
            text=True,
            check=False,
            stdin=subprocess.DEVNULL,
            **drop,
        )
        if done.returncode:
            raise ServerError(f"{command[0]} failed:\n{(done.stdout + done.stderr)[-2000:]}")

    def _environment(self) -> dict[str, str]:
        return {**os.environ, "TMPDIR": str(self.temporary)}

    def _program(self, name: str) -> str:
        chosen = CHOSEN.get("mysql" if name == "mysqld" else self.name)
        if chosen:
            # Only there: the system's would be another version.
            places = [str(chosen)]
        else:
            # The newest of several versions: their directories sort so, as long as the numbers have one length.
            known = [place for pattern in _PLACES for place in sorted(glob(pattern), reverse=True)]
            places = [*known, os.environ.get("PATH", os.defpath)]
        found = shutil.which(name, path=os.pathsep.join(places))
        if not found:
            shutil.rmtree(self.directory, ignore_errors=True)
            if chosen:
                raise ServerError(f"{name} is not in {chosen}; expected a program of that name there")
            raise ServerError(f"{self.name}: {name} is not installed; on Debian and Ubuntu: {self.install}")
        return found


class MariaDB(Server):
    """A private MariaDB server, or a MySQL server where the tests are run on MySQL."""

    name = "mariadb"
    conn_type = "mysql"
    driver = "mysql+mysqldb"
    account = "mysql"
    install = "apt-get install mariadb-server"
    stop_signal = signal.SIGTERM
    kill_signal = signal.SIGKILL

    def _create(self) -> None:
        if "mysql" in CHOSEN:
            # With the server's own settings: some of them cannot be changed afterwards.
            settings = [part for part in self._command() if not part.startswith("--init-file")]
            self._run([*settings, "--initialize-insecure"])
        else:
            self._run(
                [
                    self._program("mariadb-install-db"),
                    "--no-defaults",
                    f"--datadir={self.directory}/data",
                    f"--tmpdir={self.temporary}",
                    "--auth-root-authentication-method=normal",
                    "--skip-test-db",
                ]
            )
        # Runs at every start, before the first client is let in.
        (self.directory / "init.sql").write_text(
            f"CREATE DATABASE IF NOT EXISTS {DATABASE} CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci;\n"
            f"CREATE USER IF NOT EXISTS {USER} IDENTIFIED BY '{self.password}';\n"
            f"GRANT ALL ON *.* TO {USER} WITH GRANT OPTION;\n"
            "DROP USER IF EXISTS root@localhost;\n"
        )

    def _command(self) -> list[str]:
        return [
            self._program("mysqld" if "mysql" in CHOSEN else "mariadbd"),
            "--no-defaults",
            f"--datadir={self.directory}/data",
            f"--tmpdir={self.temporary}",
            f"--socket={self.directory}/server.sock",
            f"--pid-file={self.directory}/server.pid",
            f"--init-file={self.directory}/init.sql",
            "--bind-address=127.0.0.1",
            f"--port={self.port}",
            "--skip-name-resolve",
            "--skip-log-bin",
            # Each commit is handed to the system but not synced: fast, and it survives kill().
            "--innodb-flush-log-at-trx-commit=2",
            "--innodb-flush-method=nosync",
            "--innodb-doublewrite=OFF",
            "--innodb-buffer-pool-size=256M",
            "--innodb-use-native-aio=OFF",
            # The year of data comes in files; MySQL takes none from a client unless told to.
            "--local-infile=ON",
        ]

    def empty_database(self) -> None:
        with self.engine().begin() as connection:
            connection.execute(text(f"DROP DATABASE {DATABASE}"))
            connection.execute(text(f"CREATE DATABASE {DATABASE} CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci"))


class Postgres(Server):
    """A private PostgreSQL server."""

    name = "postgres"
    conn_type = "postgres"
    driver = "postgresql+psycopg2"
    account = "postgres"
    install = "apt-get install postgresql"
    # "Fast" and "immediate" shutdown. SIGKILL would leave backends behind, which hold on to the data.
    stop_signal = signal.SIGINT
    kill_signal = signal.SIGQUIT

    def _create(self) -> None:
        password_file = self.directory / "password"
        password_file.write_text(self.password)
        if self._ids:
            os.chown(password_file, *self._ids)
        self._run(
            [
                self._program("initdb"),
                f"--pgdata={self.directory}/data",
                f"--username={USER}",
                f"--pwfile={password_file}",
                "--auth=scram-sha-256",
                "--encoding=UTF8",
                "--locale=C",
                "--no-sync",
            ]
        )

    def start(self) -> None:
        super().start()
        maintenance = create_engine(self.url.set(database="postgres"), poolclass=NullPool, isolation_level="AUTOCOMMIT")
        with maintenance.connect() as connection:
            query = text("SELECT 1 FROM pg_database WHERE datname = :name")
            if connection.execute(query, {"name": DATABASE}).first() is None:
                connection.execute(text(f"CREATE DATABASE {DATABASE}"))

    def _answers(self) -> bool:
        try:
            create_engine(self.url.set(database="postgres"), poolclass=NullPool).connect().close()
        except DBAPIError:
            return False
        return True

    def _command(self) -> list[str]:
        return [
            self._program("postgres"),
            "-D",
            f"{self.directory}/data",
            "-p",
            str(self.port),
            "-k",
            str(self.directory),
            "-c",
            "listen_addresses=127.0.0.1",
            # As above: what was committed survives kill(), but not a crash of the machine.
            "-c",
            "fsync=off",
            "-c",
            "full_page_writes=off",
        ]

    def empty_database(self) -> None:
        with self.engine().begin() as connection:
            connection.execute(text("DROP SCHEMA public CASCADE"))
            connection.execute(text("CREATE SCHEMA public"))
            # As every database has it from the beginning.
            connection.execute(text("GRANT USAGE ON SCHEMA public TO PUBLIC"))


def free_port() -> int:
    """Return a port that nobody listens on, and that the system gives to no outgoing connection meanwhile."""
    while True:
        port = random.SystemRandom().randrange(20_000, 32_000)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        return port
