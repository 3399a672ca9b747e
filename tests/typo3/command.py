"""A stand-in for TYPO3's command line."""

from __future__ import annotations

import json
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent

_PROGRAM = """#!{python}
import json, sys
sys.path.insert(0, {root!r})
with open({calls!r}, "a") as calls:
    calls.write(json.dumps(sys.argv[1:]) + "\\n")
print("output of", sys.argv[-2])
{then}
sys.exit({exit_code})
"""


class StandIn:
    """
    A program that records its calls, in a path with a space and a quote in it.

    :ivar command: how a person types it in a shell
    """

    def __init__(self, directory: Path) -> None:
        self._calls = directory / "calls.jsonl"
        self.program = directory / "typo3 of Anna's site"
        self.command = f'"{self.program}" --ansi'
        self.write()

    def write(self, *, exit_code: int = 0, then: str = "") -> None:
        """
        Write the program anew.

        :param then: Python to run after the call is recorded
        """
        self.program.write_text(
            _PROGRAM.format(
                python=sys.executable, root=str(ROOT), calls=str(self._calls), then=then, exit_code=exit_code
            )
        )
        self.program.chmod(0o755)

    @property
    def calls(self) -> list[list[str]]:
        """The words after the program, call by call."""
        return [json.loads(line) for line in self._calls.read_text().splitlines()] if self._calls.exists() else []
