"""Where scores go in tests: a server on loopback that answers as it is told, a real MLflow, and Langfuse's own SDK."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import threading
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
VENV = ROOT / ".venv-scores"


@dataclass(frozen=True)
class Received:
    """A request that a target got."""

    method: str
    path: str
    headers: dict[str, str]
    body: Any


Reply = tuple[int, dict[str, str], Any]


class Loopback:
    """
    An HTTP server on loopback that keeps the requests it gets.

    :param reply: what it answers to a request: status, headers and body
    """

    def __init__(self, reply: Callable[[Received], Reply] = lambda _: (202, {}, {"message": "Accepted"})) -> None:
        self.received: list[Received] = []
        self.reply = reply
        target = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self) -> None:
                content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                headers = {name.lower(): value for name, value in self.headers.items()}
                got = Received(self.command, self.path, headers, json.loads(content) if content else None)
                target.received.append(got)
                status, headers, body = target.reply(got)
                sent = json.dumps(body).encode()
                self.send_response(status)
                for name, value in {"Content-Type": "application/json", **headers}.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(sent)))
                self.end_headers()
                self.wfile.write(sent)

            do_GET = do_POST = do_PATCH = answer

            def log_message(self, *arguments: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def sent_to(self, path: str) -> list[Any]:
        """Return the bodies that were sent to a path."""
        return [each.body for each in self.received if each.path == path]

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


class MlflowServer:
    """A real MLflow server on SQLite, in processes of its own that can be killed and started again."""

    def __init__(self, directory: Path) -> None:
        if not (VENV / "bin" / "mlflow").exists():
            raise FileNotFoundError("MLflow is not installed: make .venv-scores/installed")
        self.directory = directory
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = int(free.getsockname()[1])
        self.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start it, and return when it answers."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("AIRFLOW", "MLFLOW"))}
        environment |= {"MLFLOW_DISABLE_TELEMETRY": "true", "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}
        self._log = (self.directory / "mlflow.log").open("a")
        self._process = subprocess.Popen(
            [str(VENV / "bin" / "python"), "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", str(self.port),
             "--workers", "1", "--backend-store-uri", f"sqlite:///{self.directory}/mlflow.db",
             "--artifacts-destination", str(self.directory / "artifacts")],
            env=environment, stdout=self._log, stderr=self._log, start_new_session=True,
        )  # fmt: skip
        answers = threading.Event()
        for _ in range(900):
            try:
                urllib.request.urlopen(f"{self.url}/health", timeout=5).close()
                return
            except OSError:
                if self._process.poll() is not None:
                    break
                answers.wait(0.2)
        raise AssertionError((self.directory / "mlflow.log").read_text()[-3000:])

    def kill(self) -> None:
        """Kill all its processes at once."""
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(30)
        self._log.close()

    def assessments(self, correlation_id: str) -> list[dict[str, Any]]:
        """Return the assessments of a run's trace, by name."""
        return sorted(self.info(correlation_id).get("assessments", []), key=lambda each: str(each["assessment_name"]))

    def info(self, correlation_id: str) -> dict[str, Any]:
        """Return what MLflow says of a run's trace; nothing if it has none."""
        return dict(self._ask(f"/api/3.0/mlflow/traces/tr-{correlation_id.replace('-', '')}")["trace"]["trace_info"])

    def spans(self, correlation_id: str) -> list[dict[str, Any]]:
        """Return the spans of a run's trace."""
        trace = correlation_id.replace("-", "")
        found = self._ask(f"/ajax-api/3.0/mlflow/get-trace-artifact?request_id=tr-{trace}")
        return list(found["spans"])

    def _ask(self, path: str) -> Any:
        try:
            with urllib.request.urlopen(self.url + path, timeout=30) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            if error.code == 404:
                return {"trace": {"trace_info": {}}}
            raise


_SDK = """
import json, sys
from datetime import datetime
from langfuse import Langfuse
url, scores = sys.argv[1], json.loads(sys.stdin.read())
client = Langfuse(public_key="pk", secret_key="sk", base_url=url)
for score in scores:
    client.create_score(
        score_id=score["id"], trace_id=score["traceId"], name=score["name"], value=score["value"],
        data_type="CATEGORICAL", metadata=score["metadata"], timestamp=datetime.fromisoformat(score["timestamp"]),
    )
client.flush()
"""


def send_with_sdk(url: str, scores: list[dict[str, Any]]) -> None:
    """Send scores with the newest Langfuse SDK."""
    if not (VENV / "bin" / "python").exists():
        raise FileNotFoundError("Langfuse's SDK is not installed: make .venv-scores/installed")
    subprocess.run(
        [str(VENV / "bin" / "python"), "-c", _SDK, url], input=json.dumps(scores), text=True, check=True, timeout=120,
        env={name: value for name, value in os.environ.items() if not name.startswith(("AIRFLOW", "LANGFUSE"))},
        capture_output=True,
    )  # fmt: skip
