"""
The demo on one screen: what AI runs wrote, what editors did, what the provider answered and why; then the models.

``make demo`` runs this; run again, it keeps the site. ``make demo DEMO_ARGS=--all`` shows all of its runs.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any

from sqlalchemy import select

from airflow_provider_nrllm.outcomes.rules import ObservedOutcome
from demo.site import DATABASE, LOG, READOUTS, build, case, derive, shown, site
from demo.stories import story_of
from tests.typo3.tables import outcome_rows, run

_REPORTS = READOUTS / "main" / "latest"


def main() -> None:
    """Build the site if there is none, have Airflow derive and read, and print what came of it."""
    built = build()
    print(
        f"A TYPO3 {case()['typo3']} site, {'built now' if built else 'as an earlier demo built it'}:", shown(DATABASE)
    )
    before = _answers()
    print("Airflow derives what became of what AI runs wrote there, and reads it by model ...\n", flush=True)
    derive()
    became = _answers()
    with site().connect() as connection:
        uuids = [uuid for (uuid,) in connection.execute(select(run.c.uuid).order_by(run.c.uuid)) if uuid]
    every = "--all" in sys.argv[1:]
    print(*_stories(uuids, became, every=every), sep="\n")
    print()
    print(*_models(), sep="\n")
    print(f"\nThe report with its pictures: {shown(_REPORTS / 'outcomes.html')}   In Airflow's UI: make demo-ui")
    if not every:
        print(f"All {len(uuids)} runs: make demo DEMO_ARGS=--all   Airflow's log: {shown(LOG)}")
    added = len(became) - len(before)
    print(f"Added now: {added or 'nothing, for all that has settled was answered before'}.")


def _answers() -> dict[str, str]:
    """Return the observed outcomes by the runs' uuids; a rating is no answer of ours."""
    observed = {str(value) for value in ObservedOutcome}
    return {uuid: value for uuid, value in outcome_rows(site()) if value in observed}


def _stories(uuids: list[str], became: dict[str, str], *, every: bool) -> Iterator[str]:
    yield _line("run", "the AI wrote", "then editors", "answer", "why it is not what one would say")
    for uuid in uuids:
        name, story = story_of(uuid)
        if every or story.first:
            answer = became.get(uuid, "not yet")
            yield _line(name, story.wrote, story.then, answer, story.why if answer != story.one_would_say else "")


def _line(run: str, wrote: str, then: str, answer: str, why: str) -> str:
    return f"{run:7}{wrote:24}{then:33}{answer:20}{why}".rstrip()


def _models() -> Iterator[str]:
    observed = json.loads((_REPORTS / "outcomes.json").read_text())["observed"]["groups"]
    heads = "".join(f"{str(value).replace('_', ' '):>10}" for value in list(ObservedOutcome)[1:])
    yield f"{'model (made up)':24}{'runs':>6}   {'accepted unchanged, of those decided':38}{heads}"
    for group in observed:
        (label,) = group["group"]
        share = group["shares"]["accepted_unchanged"]
        counts = "".join(f"{group[value]:10}" for value in list(ObservedOutcome)[1:])
        yield f"{label['name'] or label['kind']:24}{group['runs']:6}   {_share(share):38}{counts}"


def _share(share: dict[str, Any]) -> str:
    if share["value"] is None:
        return "-"
    value, low, high = (100 * share[name] for name in ("value", "low", "high"))
    return f"{value:.1f} % (95 % interval: {low:.1f} to {high:.1f})"


if __name__ == "__main__":
    main()
