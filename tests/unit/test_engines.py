"""The servers that `make test-engines` lays beside the system's, and how MySQL differs in the docs."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from tests.typo3.grants import statements_of

SCRIPT = Path(__file__).parent.parent / "install-engines.sh"


def install(folder: Path, *names: str) -> subprocess.CompletedProcess[str]:
    """Run the script in a checkout of its own, where neither apt-get nor pip is."""
    programs = folder / "programs"
    programs.mkdir()
    for name in ("dirname", "mkdir", "mktemp", "rm", "tail"):
        (programs / name).symlink_to(str(shutil.which(name)))
    copy = folder / "tests" / SCRIPT.name
    copy.parent.mkdir()
    shutil.copy(SCRIPT, copy)
    environment = {"PATH": str(programs), "PYTHON": str(programs / "python")}
    command = [str(shutil.which("sh")), str(copy), *names]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_an_engine_that_is_not_to_be_had_is_named_and_does_not_stop_the_others(tmp_path: Path) -> None:
    done = install(tmp_path, "mysql-9", "postgres-18")
    lines = done.stderr.splitlines()
    assert (0, 2) == (done.returncode, len(lines))
    assert "mysql-9 is not to be had here: no apt-get and dpkg-deb" == lines[0]
    assert lines[1].startswith("postgres-18 is not to be had here: ")
    assert [] == list((tmp_path / ".engines").iterdir())


def test_an_engine_that_is_not_known_is_an_error(tmp_path: Path) -> None:
    done = install(tmp_path, "oracle-23")
    assert (2, "No engine of the name oracle-23 is known\n") == (done.returncode, done.stderr)


def test_the_statements_for_mysql_are_those_for_mariadb_and_the_right_to_lock() -> None:
    reveals = "GRANT REFERENCES ON"
    expected = [each.replace(reveals, "GRANT REFERENCES, LOCK TABLES ON") for each in statements_of("MariaDB")]
    assert expected == statements_of("MySQL")
