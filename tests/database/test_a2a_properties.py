"""Whatever happens to tasks, in whatever order: the journal is ordered, complete at every end, and stays."""

from __future__ import annotations

from itertools import groupby
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import delete, update
from sqlalchemy import event as listener

from airflow_provider_nrllm.a2a.rules import TERMINAL
from airflow_provider_nrllm.a2a.sealed import Result
from airflow_provider_nrllm.hooks.a2a import NrLlmA2AHook
from tests.typo3.a2a_results import artifact, result, seal
from tests.typo3.a2a_sites import hook_of
from tests.typo3.a2a_tables import add_task, empty_a2a_tables, journal, rows_of, run, task
from tests.typo3.sites import Site

MOVES = {"working": "running", "input_required": "waiting_for_input", "auth_required": "waiting_for_approval"}

tasks = st.sampled_from([1, 2])
steps = st.one_of(
    st.tuples(st.just("move"), tasks, st.sampled_from(sorted(MOVES))),
    st.tuples(st.just("complete"), tasks, st.sampled_from(["full", "redacted", "metadata"])),
    st.tuples(st.just("complete without artifacts"), tasks, st.just("full")),
    st.tuples(st.just("fail"), tasks, st.just("full")),
    st.tuples(st.just("cancel"), tasks, st.just("")),
    st.tuples(st.just("scrub"), tasks, st.sampled_from(["redacted", "metadata", "none"])),
    st.tuples(st.just("project"), tasks, st.just("")),
)


class Crash(Exception):
    """The end of an attempt, in the middle of it."""


class World:
    """A site with two tasks, and one who does to them what comes."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.hook = hook_of(site)
        self.crash_at: int | None = None
        for name in ("before_cursor_execute", "commit"):
            listener.listen(self.hook.database.engine, name, self._statement)

    def _statement(self, *_arguments: Any) -> None:
        if self.crash_at is not None:
            self.crash_at -= 1
            if self.crash_at == 0:
                self.crash_at = None
                raise Crash

    def begin(self) -> None:
        """Make the tasks anew."""
        empty_a2a_tables(self.site.engine)
        with self.site.engine.begin() as connection:
            connection.execute(delete(run))
        for uid in (1, 2):
            add_task(self.site.engine, uid)

    def step(self, action: str, uid: int, how: str, crash_at: int | None) -> None:
        """Do one thing; with ``crash_at``, only up to that statement, and then once more."""
        self.crash_at = crash_at
        try:
            self._do(self.hook, action, uid, how)
        except Crash:
            self.crash_at = None
            self._do(self.hook, action, uid, how)
        self.crash_at = None

    def _do(self, hook: NrLlmA2AHook, action: str, uid: int, how: str) -> None:
        task_id = f"task-{uid}"
        if action == "move":
            self._move(uid, how, MOVES[how])
        elif action == "cancel":
            self._move(uid, "canceled", "cancelled")
        elif action == "complete":
            hook.complete(task_id, result(), redacted=Result((artifact("r"),)), seal=seal, ceiling=lambda: how)
        elif action == "complete without artifacts":
            hook.complete(task_id, Result(), seal=seal)
        elif action == "fail":
            hook.fail(task_id)
        elif action == "scrub":
            hook.scrub_installation(how)
        else:
            hook.project()

    def _move(self, uid: int, state: str, status: str) -> None:
        """Change task and run in one transaction, as the extension does."""
        with self.site.engine.begin() as connection:
            goes_on = task.c.state.not_in([ended.value for ended in TERMINAL])
            moved = connection.execute(
                update(task).where(task.c.uid == uid, goes_on).values(state=state, revision=task.c.revision + 1)
            )
            if moved.rowcount:
                connection.execute(update(run).where(run.c.uid == uid + 1000).values(status=status))


@pytest.fixture
def world(a2a_site: Site) -> World:
    return World(a2a_site)


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(steps, st.none() | st.integers(1, 12)), min_size=1, max_size=10))
def test_the_journal_is_ordered_and_complete_at_every_end_and_unchanged_by_projecting_again(
    world: World, happened: list[tuple[tuple[str, int, str], int | None]]
) -> None:
    world.begin()
    for (action, uid, how), crash_at in happened:
        world.step(action, uid, how, crash_at)
    world.hook.project()
    violations, late = world.hook.check(lag=-1)
    assert ([], 0) == (violations, late.count)
    written = journal(world.site.engine)
    stored = {row["uid"]: row for row in rows_of(world.site.engine, task)}
    for uid, events in groupby(written, key=lambda row: row[0]):
        told = list(events)
        # Ordered: revisions rise, the status is the last of each, and the last of all is the task's own state.
        assert told == sorted(told, key=lambda row: row[1:3])
        assert ("status", stored[uid]["state"]) == told[-1][3:5]
        ended = [row for row in told if row[3] == "status" and row[4] in list(TERMINAL)]
        assert len(ended) == (stored[uid]["state"] in list(TERMINAL))
    assert {1, 2} == {row[0] for row in written}
    world.hook.project()
    assert written == journal(world.site.engine)
