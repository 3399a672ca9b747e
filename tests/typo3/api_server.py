"""
An api-server of Airflow in a process of its own, since an auth manager is chosen once a process.

Run as a program, it answers requests that stand on its standard input as JSON, one a line.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MANAGERS = {
    "simple": "airflow.api_fastapi.auth.managers.simple.simple_auth_manager.SimpleAuthManager",
    "fab": "airflow.providers.fab.auth_manager.fab_auth_manager.FabAuthManager",
}


@dataclass(frozen=True)
class Answer:
    """What the api-server answered."""

    status: int
    headers: dict[str, str]
    body: str


class ApiServer:
    """
    The app of the api-server, which is asked without a socket.

    :param directory: Airflow's home, of its own
    :param manager: ``simple`` or ``fab``
    :param prefix: the path below which Airflow is served, such as ``/team-a``
    """

    def __init__(self, directory: Path, manager: str, prefix: str = "") -> None:
        self.directory = directory
        self.prefix = prefix
        environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("AIRFLOW_")},
            "AIRFLOW_HOME": str(directory),
            "AIRFLOW__CORE__AUTH_MANAGER": MANAGERS[manager],
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": "someone:viewer",
            "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{directory}/airflow.db",
            "AIRFLOW__API__BASE_URL": f"http://testserver{prefix}",
            "AIRFLOW__API_AUTH__JWT_SECRET": "0" * 64,
        }
        self._log = (directory / "api-server.log").open("w")
        self._process = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-m", "tests.typo3.api_server", manager, prefix],
            env=environment, cwd=Path(__file__).parent.parent.parent, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log,
        )  # fmt: skip

    def ask(
        self,
        path: str,
        role: str | None = "viewer",
        *,
        readout_path: str = "",
        method: str = "GET",
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """
        Ask for a path below the prefix.

        :param role: the role of who asks: ``anonymous`` is not logged in, None is logged in and has no role
        :param readout_path: what ``[nrllm] readout_path`` is
        """
        question = {
            "method": method,
            "path": path,
            "role": role,
            "readout_path": readout_path,
            "headers": dict(headers or {}),
        }
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()
        # What Airflow prints itself stands in between.
        for line in self._process.stdout:
            if line.startswith("ANSWER "):
                return Answer(**json.loads(line.removeprefix("ANSWER ")))
        raise AssertionError((self.directory / "api-server.log").read_text()[-4000:])

    def stop(self) -> None:
        """End the process."""
        assert self._process.stdin
        self._process.stdin.close()
        self._process.wait(30)
        self._log.close()


def _answer_all(manager: str, prefix: str) -> None:
    from airflow.utils.db import initdb

    initdb()
    from airflow.api_fastapi.app import create_app
    from fastapi.testclient import TestClient

    client = TestClient(
        create_app(apps="core"), base_url=f"http://testserver{prefix}", follow_redirects=False,
        raise_server_exceptions=False,
    )  # fmt: skip
    token = {"simple": _simple_token, "fab": _fab_token}[manager]
    for line in sys.stdin:
        question = json.loads(line)
        os.environ["AIRFLOW__NRLLM__READOUT_PATH"] = question["readout_path"]
        client.cookies.clear()
        if question["role"] != "anonymous":
            client.cookies.set("_token", token(question["role"]))
        # Without its slash the path is one below the prefix.
        path = question["path"].lstrip("/")
        response = client.request(question["method"], path, headers=question["headers"])
        answer = Answer(response.status_code, dict(response.headers), response.text)
        print("ANSWER", json.dumps(answer.__dict__), flush=True)


def _simple_token(role: str | None) -> str:
    from airflow.api_fastapi.app import get_auth_manager
    from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser

    manager: Any = get_auth_manager()
    return str(manager.generate_jwt(SimpleAuthManagerUser(username="someone", role=role)))


def _fab_token(role: str | None) -> str:
    from airflow.api_fastapi.app import get_auth_manager
    from airflow.providers.fab.auth_manager.cli_commands.utils import get_application_builder

    name = role or "nobody"
    with get_application_builder() as builder:
        security: Any = builder.sm
        roles = [security.find_role(role.capitalize())] if role else []
        user = security.find_user(username=name) or security.add_user(
            name, name, name, f"{name}@example.org", roles, password="secret"
        )
        manager: Any = get_auth_manager()
        return str(manager.generate_jwt(user))


if __name__ == "__main__":
    _answer_all(*sys.argv[1:])
