"""The check finds each violation that is planted, names it, and finds nothing in a database in good order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import delete, update

from tests.typo3.a2a_results import no_seal, result, seal
from tests.typo3.a2a_sites import hook_of
from tests.typo3.a2a_tables import NOW, add_events, add_task, event, row_of, rows_of, run, task
from tests.typo3.sites import Site

ARTIFACT = {"kind": "artifact", "payload": "nrv1:a", "state": "completed"}
STATUS = {"kind": "status", "state": "completed"}


def change_run(**values: Any) -> Callable[[Site], None]:
    """Return what changes every run."""

    def plant(site: Site) -> None:
        with site.engine.begin() as connection:
            connection.execute(update(run).values(**values))

    return plant


def change_task(**values: Any) -> Callable[[Site], None]:
    """Return what changes the first task, which is completed and projected."""

    def plant(site: Site) -> None:
        with site.engine.begin() as connection:
            connection.execute(update(task).where(task.c.uid == 1).values(**values))

    return plant


def change_events(kind: str, **values: Any) -> Callable[[Site], None]:
    """Return what changes the first task's events of a kind."""

    def plant(site: Site) -> None:
        with site.engine.begin() as connection:
            connection.execute(update(event).where(event.c.task == 1, event.c.kind == kind).values(**values))

    return plant


def lose_run(site: Site) -> None:
    """Delete the first task's run."""
    with site.engine.begin() as connection:
        connection.execute(delete(run).where(run.c.uid == 1001))


def lose_task(site: Site) -> None:
    """Delete the first task, and its run with it."""
    lose_run(site)
    with site.engine.begin() as connection:
        connection.execute(delete(task).where(task.c.uid == 1))


def lose_event(position: int) -> Callable[[Site], None]:
    """Return what deletes one of the first task's events."""

    def plant(site: Site) -> None:
        with site.engine.begin() as connection:
            connection.execute(delete(event).where(event.c.task == 1, event.c.position == position))

    return plant


def add(*rows: dict[str, Any]) -> Callable[[Site], None]:
    """Return what adds events to the first task, whose revision 2 is completed."""
    return lambda site: add_events(site.engine, *rows)


def move_status(position: int) -> Callable[[Site], None]:
    """Return what puts the first task's status in the place of one of its artifacts."""

    def plant(site: Site) -> None:
        lose_event(position)(site)
        change_events("status", position=position)(site)

    return plant


OTHERWISE = "task and journal ended differently"
OVER = {"content under a ceiling that keeps none", "content in the journal under a ceiling that keeps none"}


@pytest.mark.parametrize(
    ("plant", "rules"),
    [
        (change_task(artifacts=None, status_message=None), {"completed without a stored result"}),
        (
            change_task(artifacts=None, status_message=None, reason="RESULT_NOT_STORED", ceiling="none"),
            {"completed without a stored result", *OVER},
        ),
        (
            change_task(artifacts=None, status_message=None, reason="RESULT_NOT_RETAINABLE", ceiling="full"),
            {"completed without a stored result"},
        ),
        (change_run(status="running"), {"task and run disagree"}),
        (change_run(status="failed"), {"task and run disagree"}),
        (change_task(state="failed"), {"task and run disagree", OTHERWISE}),
        (change_task(state="working"), {"task and run disagree", OTHERWISE}),
        (change_task(state="unheard of"), {"task and run disagree", OTHERWISE}),
        (change_events("status", state="failed"), {OTHERWISE}),
        (change_task(revision=1), {"a journal ahead of its task"}),
        (move_status(1), {"an artifact missing from the journal"}),
        (change_task(artifacts='["nrv1:a", "nrv1:b", "nrv1:c"]'), {"an artifact missing from the journal"}),
        (lose_run, {"task without run"}),
        (lose_task, {"event without task"}),
        (lose_event(0), {"a revision with a gap", "an artifact missing from the journal"}),
        (lose_event(1), {"a revision with a gap", "an artifact missing from the journal"}),
        (lose_event(2), {"a revision without a status event"}),
        (
            add({**STATUS, "revision": 2, "position": 3}),
            {"a revision with two status events"},
        ),
        (
            add({**ARTIFACT, "revision": 2, "position": 3}),
            {"a revision whose status is not last"},
        ),
        (add({**STATUS, "revision": 3}), {"an event after a terminal state", "a journal ahead of its task"}),
        (change_task(reason="RESULT_NOT_RETAINABLE", ceiling="none"), {"a reason with a stored result", *OVER}),
        (change_task(ceiling="none"), OVER),
        (change_task(ceiling="metadata"), OVER),
        (change_task(ceiling=""), OVER),
        (change_task(ceiling="FULL"), OVER),
        (change_task(ceiling="a newer one"), OVER),
        (change_task(ceiling="redacted"), set()),
        (
            change_events("artifact", reason="RESULT_NOT_RETAINABLE"),
            {"a reason with a stored result in the journal"},
        ),
        (change_task(status_message="open text"), {"an unsealed value"}),
        (change_task(status_message="NRV1:open"), {"an unsealed value"}),
        (change_task(status_message="nrv1:"), {"an unsealed value"}),
        (change_task(artifacts='["nrv1:a", "open text"]'), {"an unsealed value"}),
        (change_task(artifacts="open text"), {"an unsealed value"}),
        (change_task(history='[{"text": "open text"}]'), {"an unsealed value"}),
        (change_events("artifact", payload="open text"), {"an unsealed value"}),
        (change_events("status", payload="V2:open text"), {"an unsealed value"}),
    ],
)
def test_a_planted_violation_is_found_and_none_else(
    a2a_site: Site, plant: Callable[[Site], None], rules: set[str]
) -> None:
    hook = hook_of(a2a_site)
    hook.complete(add_task(a2a_site.engine), result(), seal=seal, now=NOW)
    hook.project()
    plant(a2a_site)
    found = hook.check(lag=10**10)[0]
    assert rules == {finding.rule for finding in found}
    assert "open" not in " ".join(map(str, found))


@pytest.mark.parametrize(
    "plant",
    [lose_event(0), lose_event(2), move_status(1), add({**STATUS, "revision": 2, "position": 3})],
    ids=["a gap", "no status", "an artifact missing", "two statuses"],
)
def test_the_projector_writes_a_revision_anew_whose_events_were_deleted(
    a2a_site: Site, plant: Callable[[Site], None]
) -> None:
    # As the reference advises.
    hook = hook_of(a2a_site)
    hook.complete(add_task(a2a_site.engine), result(), seal=seal, now=NOW)
    hook.project()
    plant(a2a_site)
    assert [] != hook.check(lag=10**10)[0]
    with a2a_site.engine.begin() as connection:
        connection.execute(delete(event).where(event.c.task == 1, event.c.revision == 2))
    assert 3 == hook.project().events
    assert [] == hook.check(lag=10**10)[0]


@pytest.mark.parametrize("change", [{"ceiling": "none"}, {"status_message": "open text"}])
def test_a_scrub_mends_content_that_should_not_be_there(a2a_site: Site, change: dict[str, Any]) -> None:
    hook = hook_of(a2a_site)
    hook.complete(add_task(a2a_site.engine), result(), seal=seal, now=NOW)
    hook.project()
    change_task(**change)(a2a_site)
    assert [] != hook.check(lag=10**10)[0]
    hook.scrub("none", ["task-1"])
    assert [] == hook.check(lag=10**10)[0]


def test_a_database_in_good_order_has_no_violation(a2a_site: Site) -> None:
    hook = hook_of(a2a_site)
    ends = ["complete", "fail", "scrub", "none made", "redacted", "not stored"]
    for uid, how in enumerate(ends, start=1):
        task_id = add_task(a2a_site.engine, uid)
        hook.project()
        if how == "fail":
            hook.fail(task_id)
        else:
            sealer = no_seal if how == "not stored" else seal
            hook.complete(task_id, result(), seal=sealer, ceiling=lambda how=how: "none" if how == "scrub" else "full")
    for uid, state in enumerate(
        ["submitted", "working", "input_required", "auth_required", "completed", "failed", "canceled", "rejected"],
        start=10,
    ):
        add_task(a2a_site.engine, uid, state=state, artifacts="[]")
    hook.project()
    violations, late = hook.check(lag=0)
    assert ([], 0) == (violations, late.count)


def test_an_empty_database_has_no_violation(a2a_site: Site) -> None:
    violations, late = hook_of(a2a_site).check(lag=0)
    assert ([], 0) == (violations, late.count)


def test_a_violation_names_at_most_ten_uids_and_counts_them_all(a2a_site: Site) -> None:
    for uid in range(1, 14):
        add_task(a2a_site.engine, uid, state="completed")
    (finding,) = hook_of(a2a_site).check(lag=10**10)[0]
    assert (finding.count, finding.uids) == (13, tuple(range(1, 11)))
    assert "completed without a stored result: 13 of tx_nrllm_a2a_task, uid 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 ..." == str(
        finding
    )


@pytest.mark.parametrize(("after", "late"), [(900, 0), (901, 1)])
def test_an_end_that_is_not_in_the_journal_after_the_lag_is_late(a2a_site: Site, after: int, late: int) -> None:
    hook = hook_of(a2a_site)
    hook.complete(add_task(a2a_site.engine), result(), seal=seal, now=NOW)
    violations, found = hook.check(lag=900, now=NOW + after)
    assert ([], late) == (violations, found.count)


def test_the_check_reads_only(a2a_site: Site) -> None:
    add_task(a2a_site.engine, state="completed")
    before = [rows_of(a2a_site.engine, table) for table in (run, task, event)]
    hook_of(a2a_site).check(lag=0)
    assert before == [rows_of(a2a_site.engine, table) for table in (run, task, event)]
    assert row_of(a2a_site.engine, task, 1)["artifacts"] is None
