"""Small TYPO3 sites for tests, in the form of the cases in tests/cases."""

from __future__ import annotations

from typing import Any

DAY = 86400
#: When the first run of a world wrote. All of 2026's first days are settled and asked about late.
START = 1767225600


def world(runs: list[dict[str, Any]], **changes: Any) -> dict[str, Any]:
    """Return a case with these runs, each of whose records is live and was created by its write."""
    targets = {write["target"]: write["at"] for run in runs for write in run["writes"] if "target" in write}
    history = [
        {"uid": uid, "record": target, "at": at - 1, "action": 1, "workspace": 0}
        for uid, (target, at) in enumerate(targets.items(), 1)
    ]
    records = {target: {"state": "live"} for target in targets}
    return {
        "name": "world",
        "now": START + 300 * DAY,
        "runs": runs,
        "history": history,
        "records": records,
        "outcomes": [],
        **changes,
    }


def run(number: int, *, at: int = START, uuid: str | None = None, **changes: Any) -> dict[str, Any]:
    """Return a completed run that created one content element."""
    write = {"target": f"tt_content:{number}", "at": at}
    return {
        "uuid": f"run-{number:05}" if uuid is None else uuid,
        "status": "completed",
        "created_at": at - 10,
        "finished_at": at + 2,
        "writes": [write],
        **changes,
    }


def many_runs(count: int, *, every: int = 60) -> dict[str, Any]:
    """Return a world of ``count`` runs, one in every so many seconds, all of them accepted unchanged."""
    return world([run(number, at=START + number * every) for number in range(1, count + 1)])


def accepted(case: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the outcome rows of a world all of whose runs are accepted unchanged."""
    return sorted((run["uuid"], "accepted_unchanged") for run in case["runs"])
