"""A real Airflow beside the tests: its own processes, metadata and home, stopped whatever happens."""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Collection, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import urlopen

from sqlalchemy import create_engine, text
from sqlalchemy.pool import NullPool

from tests.typo3.servers import free_port

DAGS = Path(__file__).parent.parent.parent / "dags"


class RealAirflow:
    """
    DAG processor, API server and scheduler of Airflow 3 with a LocalExecutor, over the example DAGs.

    Its metadata is in SQLite, which has one writer at a time and tells a second one that it is locked. So the
    DAG processor ends when the DAGs are known, and the scheduler pauses while the command line writes.

    All DAGs are unpaused. The schedule makes no runs, so that there are only those a test asks for, until
    :meth:`follow_schedules`.

    :param directory: of its own
    :param connections: the fields of the Airflow connections by their ids
    :param dag_ids: the DAGs that have to be known before anything is asked for
    :param metadata: the SQLAlchemy URL of another database for Airflow's own, on a server that many may write to
    :param dags: the DAGs folder
    """

    def __init__(
        self,
        directory: Path,
        connections: Mapping[str, Mapping[str, Any]],
        dag_ids: Collection[str] = (),
        *,
        metadata: str | None = None,
        dags: Path = DAGS,
    ) -> None:
        self.directory = directory
        self.dag_ids = set(dag_ids)
        port = free_port()
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("AIRFLOW_")},
            "AIRFLOW_HOME": str(directory),
            "AIRFLOW__CORE__DAGS_FOLDER": str(dags),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "AIRFLOW__CORE__DAGS_ARE_PAUSED_AT_CREATION": "False",
            "AIRFLOW__CORE__EXECUTOR": "LocalExecutor",
            "AIRFLOW__CORE__PARALLELISM": "3",
            "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"http://127.0.0.1:{port}/execution/",
            "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": metadata or f"sqlite:///{directory}/airflow.db",
            "AIRFLOW__API_AUTH__JWT_SECRET": secrets.token_hex(32),
            "AIRFLOW__SCHEDULER__USE_JOB_SCHEDULE": "False",
            "AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "600",
            "AIRFLOW__LOGGING__LOGGING_LEVEL": "WARNING",
            "AIRFLOW__OPENLINEAGE__DISABLED": "True",
            **{f"AIRFLOW_CONN_{conn_id.upper()}": json.dumps(fields) for conn_id, fields in connections.items()},
        }
        self._port = port
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    @property
    def metadata(self) -> str:
        """The SQLAlchemy URL of Airflow's own database."""
        return self.environment["AIRFLOW__DATABASE__SQL_ALCHEMY_CONN"]

    @property
    def address(self) -> str:
        """Where a browser finds the UI, without a slash at its end."""
        base = self.environment.get("AIRFLOW__API__BASE_URL", "")
        return f"http://127.0.0.1:{self._port}{urlsplit(base).path}"

    def let_in(self, passwords: Mapping[str, str]) -> None:
        """
        Let users log in, before anything is started.

        :param passwords: the passwords by the names of the users, each of whom has the role of that name
        """
        file = self.directory / "passwords.json"
        file.write_text(json.dumps(dict(passwords)))
        self.environment["AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS"] = ",".join(f"{name}:{name}" for name in passwords)
        self.environment["AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE"] = str(file)

    def serve(self) -> None:
        """Start the API server with the UI alone, and wait until it answers."""
        self.command("db", "migrate")
        self._start("api-server", "--host", "127.0.0.1", "--port", str(self._port), "--workers", "1")
        self.wait(self._answers)

    def _answers(self) -> bool:
        try:
            with urlopen(f"{self.address}/api/v2/version", timeout=10) as response:
                return bool(response.status == 200)
        except OSError:
            return False

    def start(self) -> None:
        """Start all processes but the scheduler, and wait until the DAGs are known."""
        self.serve()
        self._start("dag-processor")
        self.wait(lambda: self.dag_ids <= {dag_id for (dag_id,) in self.query("SELECT dag_id FROM serialized_dag")})
        self._stop("dag-processor")

    def schedule(self) -> None:
        """Start the scheduler, which runs what is asked for."""
        self._start("scheduler")

    def watch_triggers(self) -> None:
        """Start the triggerer, in which deferred tasks wait."""
        self._start("triggerer")

    def kill(self, name: str) -> None:
        """Kill a process and all it started, as a machine that fails does."""
        process = self._processes.pop(name)
        _signal(process, signal.SIGKILL)
        process.wait()

    def follow_schedules(self, dag_id: str) -> None:
        """Let the schedule of one DAG make runs, all others paused."""
        self.environment["AIRFLOW__SCHEDULER__USE_JOB_SCHEDULE"] = "True"
        self._stop("scheduler")
        self.command("dags", "pause", f"^(?!{dag_id}$)", "--treat-dag-id-as-regex", "--yes")
        self._start("scheduler")

    def backfill(self, dag_id: str, first: datetime, last: datetime, *, again: bool = False) -> None:
        """
        Backfill the runs with logical or partition dates from first to last, and wait until all have ended.

        :param again: also those that are there already
        """
        # One backfill of a DAG at a time, and Airflow looks every 30 seconds whether one has ended.
        running = text("SELECT id FROM backfill WHERE dag_id = :dag_id AND completed_at IS NULL")
        self.wait(lambda: not self.query(running.bindparams(dag_id=dag_id)))
        if "scheduler" in self._processes:
            self._stop("scheduler")
        self.command(
            "backfill", "create", "--dag-id", dag_id, "--from-date", first.isoformat(), "--to-date", last.isoformat(),
            "--max-active-runs", "4", "--reprocess-behavior", "completed" if again else "none",
        )  # fmt: skip
        self._start("scheduler")
        ((backfill,),) = self.query("SELECT max(id) FROM backfill")
        runs = text("SELECT state FROM dag_run WHERE backfill_id = :backfill").bindparams(backfill=backfill)
        self.wait(lambda: all(state in ("success", "failed") for (state,) in self.query(runs)))

    def states(self, dag_id: str) -> list[str]:
        """Return the states of a DAG's runs."""
        statement = text("SELECT state FROM dag_run WHERE dag_id = :dag_id")
        return [state for (state,) in self.query(statement.bindparams(dag_id=dag_id))]

    def most_at_once(self, dag_id: str) -> int:
        """Return how many tasks of a DAG ran at one moment, at the most."""
        statement = text("SELECT start_date, end_date FROM task_instance WHERE dag_id = :dag_id")
        spans = [(str(start), str(end)) for start, end in self.query(statement.bindparams(dag_id=dag_id))]
        return max(sum(start <= moment < end for start, end in spans) for moment, _ in spans)

    def query(self, statement: Any) -> list[Any]:
        """Return what Airflow's own database says."""
        with create_engine(self.metadata, poolclass=NullPool).connect() as connection:
            return list(connection.execute(text(statement) if isinstance(statement, str) else statement))

    def command(self, *words: str) -> None:
        """Run the command line of Airflow to its end."""
        done = subprocess.run(
            [sys.executable, "-m", "airflow", *words],
            env=self.environment, cwd=self.directory, capture_output=True, text=True, timeout=150, check=False,
        )  # fmt: skip
        assert 0 == done.returncode, (done.stdout + done.stderr)[-4000:]

    def wait(self, reached: Any, timeout: float = 120) -> None:
        """Wait until a condition holds."""
        deadline = time.monotonic() + timeout
        while not reached():
            for name, process in self._processes.items():
                assert process.poll() is None, f"{name} ended:\n{self._log(name)}"
            assert time.monotonic() < deadline, "\n".join(self._log(name) for name in self._processes)
            time.sleep(0.3)

    def stop(self) -> None:
        """Stop all processes and what they started."""
        for process in self._processes.values():
            _signal(process, signal.SIGTERM)
        for name in list(self._processes):
            self._stop(name)

    def _start(self, *words: str) -> None:
        with (self.directory / f"{words[0]}.log").open("ab") as log:
            # A session of its own: the executor's workers end with it.
            self._processes[words[0]] = subprocess.Popen(
                [sys.executable, "-m", "airflow", *words],
                env=self.environment, cwd=self.directory, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True,
            )  # fmt: skip

    def _stop(self, name: str) -> None:
        process = self._processes.pop(name)
        _signal(process, signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            process.wait(5)
        _signal(process, signal.SIGKILL)
        process.wait()

    def _log(self, name: str) -> str:
        return (self.directory / f"{name}.log").read_text(errors="replace")[-3000:]


class RealAirflow2(RealAirflow):
    """
    The same with Airflow 2, which has no ``airflow backfill``: ``airflow dags backfill`` runs the tasks itself.

    :param metadata: Airflow 2 runs tasks at once only over a database server
    """

    def __init__(self, directory: Path, connections: Mapping[str, Mapping[str, Any]], metadata: str) -> None:
        super().__init__(directory, connections)
        self.environment["AIRFLOW__DATABASE__SQL_ALCHEMY_CONN"] = metadata
        # The executor's forks close the connections of a pool, and these are the backfill's own.
        self.environment["AIRFLOW__DATABASE__SQL_ALCHEMY_POOL_ENABLED"] = "False"

    def start(self) -> None:
        """Create Airflow's own tables; a backfill needs no other process."""
        self.command("db", "migrate")

    def backfill(self, dag_id: str, first: datetime, last: datetime, *, again: bool = False) -> None:
        """Backfill the runs with logical dates from first to last."""
        options = ["--reset-dagruns", "--yes"] if again else []
        first, last = first.astimezone(UTC), last.astimezone(UTC)
        self.command("dags", "backfill", dag_id, "-s", first.isoformat(), "-e", last.isoformat(), *options)


def _signal(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    """Signal a process and all it started, also where it has ended itself."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, number)
