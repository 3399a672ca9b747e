"""The journal: written from the committed state only, each event once, and read in its order."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from a2a.types import a2a_pb2
from sqlalchemy import CheckConstraint, MetaData, delete, insert, select, update
from sqlalchemy import event as listener

from airflow_provider_nrllm.a2a.reading import TaskFilter
from airflow_provider_nrllm.a2a.rules import State, TaskNotFoundError
from airflow_provider_nrllm.a2a.sealed import Result, UnreadableError, UnsealedValueError
from airflow_provider_nrllm.a2a.wire import event_json, list_json, task_json
from airflow_provider_nrllm.hooks.a2a import NrLlmA2AHook
from tests.typo3.a2a_results import artifact, logged, parsed, result, seal, unseal
from tests.typo3.a2a_sites import hook_of
from tests.typo3.a2a_tables import NOW, add_events, add_task, event, journal, row_of, rows_of, run, task
from tests.typo3.sites import Site

#: Long after every projector's transaction.
LATER = 2**31


def places(site: Site) -> list[tuple[Any, ...]]:
    """Return the journal's revisions, positions, kinds and states."""
    return [row[:5] for row in journal(site.engine)]


def test_the_events_of_a_completed_task_are_its_artifacts_and_then_its_status(a2a_site: Site) -> None:
    hook = hook_of(a2a_site)
    hook.complete(add_task(a2a_site.engine), result(), seal=seal, now=NOW + 60)
    done = hook.project(now=NOW + 65)
    assert (1, 3, 0, [], 5) == (done.tasks, done.events, done.present, done.unreadable, done.lag_seconds)
    assert [
        (1, 2, 0, "artifact", "completed"),
        (1, 2, 1, "artifact", "completed"),
        (1, 2, 2, "status", "completed"),
    ] == places(a2a_site)


def test_a_revision_projected_again_yields_its_events_once(a2a_site: Site) -> None:
    hook = hook_of(a2a_site)
    hook.complete(add_task(a2a_site.engine), result(), seal=seal)
    hook.project()
    before = rows_of(a2a_site.engine, event)
    assert (0, 0) == (hook.project().tasks, hook.project().events)
    assert before == rows_of(a2a_site.engine, event)


def test_every_event_a_client_is_told_of_is_a2a_and_tells_what_the_task_tells(a2a_site: Site) -> None:
    hook = hook_of(a2a_site)
    task_id = add_task(a2a_site.engine)
    hook.project()
    hook.complete(task_id, result(), seal=seal)
    hook.project()
    found, events = hook.events(task_id)
    told = [event_json(entry, found.task_id, found.context_id, unseal=unseal) or {} for entry in events]
    kinds = [parsed(entry, a2a_pb2.StreamResponse).WhichOneof("payload") for entry in told]
    assert ["status_update", "artifact_update", "artifact_update", "status_update"] == kinds
    shown = task_json(hook.task(task_id), unseal=unseal)
    parsed(shown, a2a_pb2.Task)
    assert [artifact("secret one"), artifact("secret two")] == shown["artifacts"]
    assert (shown["artifacts"], shown["status"]) == (
        [entry["artifactUpdate"]["artifact"] for entry in told[1:3]], told[3]["statusUpdate"]["status"]
    )  # fmt: skip


def test_a_client_gets_the_events_after_the_revision_it_has(a2a_site: Site) -> None:
    hook = hook_of(a2a_site)
    task_id = add_task(a2a_site.engine)
    hook.project()
    hook.complete(task_id, result(), seal=seal)
    hook.project()
    revisions = [[entry.revision for entry in hook.events(task_id, after_revision=n)[1]] for n in (0, 1, 2)]
    assert [[1, 2, 2, 2], [2, 2, 2], []] == revisions


def test_an_intermediate_revision_may_be_skipped_the_last_never_is(a2a_site: Site) -> None:
    hook = hook_of(a2a_site)
    task_id = add_task(a2a_site.engine, revision=1)
    hook.project()
    with a2a_site.engine.begin() as connection:
        connection.execute(update(task).values(state="input_required", revision=2))
        connection.execute(update(task).values(state="working", revision=3))
    hook.complete(task_id, result(), seal=seal)
    hook.project()
    assert [1, 4, 4, 4] == [row[1] for row in places(a2a_site)]


def test_the_row_of_a_slow_writer_is_not_missed(a2a_site: Site) -> None:
    # Its uid and its time are before those of what was projected long ago.
    hook = hook_of(a2a_site)
    add_task(a2a_site.engine, 9, tstamp=NOW + 1000)
    hook.project()
    add_task(a2a_site.engine, 2, tstamp=NOW - 1000)
    assert 1 == hook.project().tasks
    assert {2, 9} == {row[0] for row in places(a2a_site)}


def test_a_task_that_cannot_be_projected_does_not_hold_up_the_others(a2a_site: Site) -> None:
    hook = hook_of(a2a_site)
    add_task(a2a_site.engine, 1, state="completed", artifacts='["open text"]')
    add_task(a2a_site.engine, 2, state="completed", artifacts="open text")
    add_task(a2a_site.engine, 3, state="completed", artifacts="[]", status_message="open text")
    add_task(a2a_site.engine, 4, state="unheard of")
    add_task(a2a_site.engine, 5)
    done = hook.project(page_size=2)
    assert ([1, 2, 3, 4], 1) == (done.unreadable, done.tasks)
    assert {5} == {row[0] for row in places(a2a_site)}


def test_a_hundred_tasks_are_projected_page_by_page(a2a_site: Site) -> None:
    with a2a_site.engine.begin() as connection:
        ids = range(1, 101)
        connection.execute(insert(run), [{"uid": n, "uuid": f"run-{n}", "status": "running"} for n in ids])
        rows = [{"uid": n, "run": n, "task_id": f"task-{n}", "state": "working", "revision": 1} for n in ids]
        connection.execute(insert(task), rows)
    assert 100 == hook_of(a2a_site).project(page_size=7).tasks


def test_a_status_that_is_terminal_in_the_journal_is_the_last(a2a_site: Site) -> None:
    hook = hook_of(a2a_site)
    hook.complete(add_task(a2a_site.engine), result(), seal=seal)
    hook.project()
    hook.scrub_installation("none")
    assert 3 == row_of(a2a_site.engine, task, 1)["revision"]
    assert 0 == hook.project().tasks
    assert [] == hook.check(lag=0)[0]


def test_what_is_scrubbed_before_it_is_projected_never_comes_into_the_journal(a2a_site: Site) -> None:
    hook = hook_of(a2a_site)
    hook.complete(add_task(a2a_site.engine), result(), seal=seal)
    hook.scrub_installation("metadata")
    hook.project()
    assert [(1, 3, 0, "status", "completed", "RESULT_NOT_RETAINABLE", None)] == [
        row[:7] for row in journal(a2a_site.engine)
    ]


def test_a_writer_that_takes_no_lock_is_met_by_the_unique_key(a2a_site: Site) -> None:
    # It writes between the projector's look under the lock and its own statement.
    hook = hook_of(a2a_site)
    add_task(a2a_site.engine)
    other = {"task": 1, "revision": 1, "position": 0, "kind": "status", "state": "working", "status_at": NOW}
    written = []

    def write_first(connection: Any, _cursor: Any, statement: str, *_more: Any) -> None:
        if statement.startswith("INSERT") and not written:
            written.append(statement)
            if a2a_site.name == "sqlite":
                connection.execute(insert(event).values(other))
            else:
                with a2a_site.engine.begin() as meanwhile:
                    meanwhile.execute(insert(event).values(other))

    listener.listen(hook.database.engine, "before_cursor_execute", write_first)
    if a2a_site.name == "sqlite":
        # SQLite has one writer: the other's row goes with the transaction, and the refusal is not hidden.
        assert [1] == hook.project().refused
        assert [] == rows_of(a2a_site.engine, event)
        return
    done = hook.project()
    assert (0, 1) == (done.tasks, done.present)
    assert 1 == len(rows_of(a2a_site.engine, event))


def test_a_refusal_of_the_database_is_not_hidden_and_says_nothing_of_the_row(
    a2a_site: Site, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    event.drop(a2a_site.engine)
    strict = event.to_metadata(MetaData())
    strict.append_constraint(CheckConstraint("payload IS NULL", name="a2a_event_empty"))
    strict.create(a2a_site.engine)
    try:
        hook = hook_of(a2a_site)
        hook.complete(add_task(a2a_site.engine), result(), seal=seal)
        # A message of none is projected all the same: one task does not stop the others.
        add_task(a2a_site.engine, 2)
        done = hook.project()
        assert ([1], 1) == (done.refused, done.tasks)
        assert b"secret".hex() not in logged(caplog, capsys)
    finally:
        strict.drop(a2a_site.engine)


def test_a_task_that_another_holds_is_left_to_the_next_projector(a2a_server: Site) -> None:
    hook = hook_of(a2a_server)
    add_task(a2a_server.engine, 1)
    add_task(a2a_server.engine, 2)
    with a2a_server.engine.begin() as other:
        other.execute(select(task.c.uid).where(task.c.uid == 1).with_for_update())
        done = hook.project()
    assert ([1], 1) == (done.locked, done.tasks)
    assert 1 == hook.project().tasks


def test_a_task_of_thousands_of_artifacts_is_projected(a2a_site: Site) -> None:
    hook = hook_of(a2a_site)
    many = tuple(artifact(str(number)) for number in range(2500))
    hook.complete(add_task(a2a_site.engine), Result(artifacts=many), seal=seal)
    assert 2501 == hook.project().events


def test_a_task_is_not_found_after_its_run_was_purged(a2a_site: Site) -> None:
    hook = hook_of(a2a_site)
    task_id = add_task(a2a_site.engine)
    hook.complete(task_id, result(), seal=seal)
    with a2a_site.engine.begin() as connection:
        connection.execute(delete(run))
    for read in (hook.task, hook.events):
        with pytest.raises(TaskNotFoundError):
            read(task_id)
    assert ((), 0) == ((page := hook.tasks()).tasks, page.total_size)
    assert 0 == hook.project().tasks


def test_a_task_with_an_unsealed_value_is_not_shown(a2a_site: Site) -> None:
    task_id = add_task(a2a_site.engine, status_message="open text")
    with pytest.raises(UnsealedValueError) as raised:
        hook_of(a2a_site).task(task_id)
    assert "open text" not in str(raised.value)


def test_an_unsealed_event_is_not_shown(a2a_site: Site) -> None:
    task_id = add_task(a2a_site.engine)
    add_events(a2a_site.engine, {"payload": "open text"})
    with pytest.raises(UnsealedValueError) as raised:
        hook_of(a2a_site).events(task_id)
    assert "open text" not in str(raised.value)


@pytest.mark.parametrize(
    "change",
    [
        {"state": "unheard of"},
        {"state": ""},
        {"status_message": "open text"},
        {"history": '["open text"]'},
        {"artifacts": "open text"},
    ],
    ids=str,
)
def test_a_page_has_the_task_that_cannot_be_read_without_its_content_and_all_others(
    a2a_site: Site, change: dict[str, Any]
) -> None:
    for uid in (1, 2, 3):
        add_task(a2a_site.engine, uid, tstamp=NOW - uid, **(change if uid == 2 else {}))
    hook = hook_of(a2a_site)
    first = hook.tasks(page_size=2, include_artifacts=True)
    second = hook.tasks(page_size=2, page_token=first.next_page_token)
    found = [*first.tasks, *second.tasks]
    assert [(1, False), (2, True), (3, False)] == [(each.uid, each.is_withheld) for each in found]
    bare = found[1]
    assert (None, None, None) == (bare.status_message, bare.artifacts, bare.history)
    assert (State.UNSPECIFIED if "state" in change else State.WORKING) is bare.state
    shown = list_json(found, next_page_token="", page_size=2, total_size=3, unseal=unseal)
    assert "open text" not in str(shown)
    for read in (hook.task, hook.events):
        with pytest.raises(UnreadableError, match="a2a task 2") as raised:
            read("task-2")
        assert "open text" not in str(raised.value)


@pytest.mark.parametrize(
    ("after", "expected"), [(-(2**70), 1), (-1, 1), (0, 1), (1, 0), (2**63 - 1, 0), (2**63, 0), (2**70, 0)]
)
def test_a_client_may_name_any_number_as_the_revision_it_has(a2a_site: Site, after: int, expected: int) -> None:
    hook = hook_of(a2a_site)
    task_id = add_task(a2a_site.engine)
    hook.project()
    assert expected == len(hook.events(task_id, after_revision=after)[1])
    assert expected == hook.tasks(TaskFilter(status_after=after + NOW if after < 2**62 else after)).total_size


@pytest.mark.parametrize("value", [1.5, "1", True, None])
def test_what_is_no_number_is_refused_where_a_number_is_expected(a2a_site: Site, value: Any) -> None:
    hook = hook_of(a2a_site)
    task_id = add_task(a2a_site.engine)
    with pytest.raises(ValueError, match=r"after_revision is a .*; expected a whole number"):
        hook.events(task_id, after_revision=value)
    with pytest.raises(ValueError, match=r"position is a .*; expected a whole number"):
        hook.events_after(value)
    with pytest.raises(ValueError, match="page_size"):
        hook.tasks(page_size=value)
    if value is not None:
        with pytest.raises(ValueError, match=r"status_after is a .*; expected a whole number"):
            hook.tasks(TaskFilter(status_after=value))
    with pytest.raises(ValueError, match="is not a valid State"):
        hook.tasks(TaskFilter(states=["unheard of"]))  # type: ignore[list-item]


def test_the_events_of_all_tasks_come_in_the_order_of_the_journal_each_once(a2a_site: Site) -> None:
    hook = hook_of(a2a_site)
    ids = [add_task(a2a_site.engine, uid) for uid in (1, 2, 3)]
    hook.project()
    for task_id in ids:
        hook.complete(task_id, result(), seal=seal)
    hook.project()
    whole = hook.events_after(now=LATER)
    assert 12 == len(whole.entries)
    assert [row["uid"] for row in rows_of(a2a_site.engine, event)] == [entry.uid for entry in whole.entries]
    assert [["task-1"] * 4, ["task-2"] * 4, ["task-3"] * 4] == [
        [entry.task_id for entry in whole.entries if entry.task_id == task_id] for task_id in ids
    ]
    for task_id in ids:
        of_it = [entry.event for entry in whole.entries if entry.task_id == task_id]
        assert hook.events(task_id)[1] == of_it
    position, paged = 0, []
    while (page := hook.events_after(position, page_size=5, now=LATER)).entries:
        paged += page.entries
        position = page.position
    assert list(whole.entries) == paged
    assert ((), position) == ((after := hook.events_after(position)).entries, after.position)


def test_nobody_is_told_of_a_task_whose_run_has_gone_or_of_what_is_not_sealed(a2a_site: Site) -> None:
    hook = hook_of(a2a_site)
    for uid in (1, 2, 3):
        add_task(a2a_site.engine, uid)
    hook.project()
    with a2a_site.engine.begin() as connection:
        connection.execute(delete(run).where(run.c.uid == 1001))
        connection.execute(update(event).where(event.c.task == 2).values(payload="open text"))
    page = hook.events_after(now=LATER)
    assert ["task-2", "task-3"] == [entry.task_id for entry in page.entries]
    (withheld, _) = [entry.event for entry in page.entries]
    assert withheld is not None
    assert (None, True) == (withheld.payload, withheld.is_withheld)
    shown = event_json(withheld, "task-2", "context-1", unseal=unseal)
    assert "The content of this task cannot be shown." in str(shown)


def many_tasks(site: Site) -> NrLlmA2AHook:
    """Add seven tasks, of which some reached their status in the same second."""
    for uid, at in enumerate([5, 3, 3, 9, 3, 1, 5], start=1):
        add_task(site.engine, uid, tstamp=NOW + at, context_id=f"context-{uid % 2}")
    return hook_of(site)


def test_tasks_are_listed_by_status_time_newest_first_each_once(a2a_site: Site) -> None:
    hook = many_tasks(a2a_site)
    for page_size in (1, 2, 3, 7, 100):
        pages = [hook.tasks(page_size=page_size)]
        while token := pages[-1].next_page_token:
            pages.append(hook.tasks(page_size=page_size, page_token=token))
        assert [4, 7, 1, 5, 3, 2, 6] == [found.uid for page in pages for found in page.tasks]
        assert {7} == {page.total_size for page in pages}


def test_a_task_that_changes_meanwhile_does_not_push_another_off_its_page(a2a_site: Site) -> None:
    hook = many_tasks(a2a_site)
    first = hook.tasks(page_size=3)
    with a2a_site.engine.begin() as connection:
        connection.execute(update(task).where(task.c.uid == 6).values(tstamp=NOW + 100))
    second = hook.tasks(page_size=3, page_token=first.next_page_token)
    assert [5, 3, 2] == [found.uid for found in second.tasks]


def test_tasks_are_listed_by_context_state_and_time(a2a_site: Site) -> None:
    hook = many_tasks(a2a_site)
    hook.fail("task-1", now=NOW + 6)
    found = [
        [entry.uid for entry in hook.tasks(wanted).tasks]
        for wanted in (
            TaskFilter(context_id="context-0"),
            TaskFilter(states=[State.FAILED]),
            TaskFilter(status_after=NOW + 6),
            TaskFilter(context_id="context-1", states=[State.WORKING], status_after=NOW + 5),
        )
    ]
    assert [[4, 2, 6], [1], [4, 1], [7]] == found


def test_a_list_has_artifacts_only_if_they_are_asked_for(a2a_site: Site) -> None:
    hook = hook_of(a2a_site)
    hook.complete(add_task(a2a_site.engine), result(), seal=seal)
    assert (None, 2) == (
        hook.tasks().tasks[0].artifacts,
        len(hook.tasks(include_artifacts=True).tasks[0].artifacts or ()),
    )
    page = hook.tasks(include_artifacts=True)
    shown = list_json(
        page.tasks,
        next_page_token=page.next_page_token,
        page_size=50,
        total_size=page.total_size,
        unseal=unseal,
        include_artifacts=True,
    )
    parsed(shown["tasks"][0], a2a_pb2.Task)


def test_a_page_token_of_someone_elses_making_is_refused(a2a_site: Site) -> None:
    hook = hook_of(a2a_site)
    of_another_form = (
        "[Infinity,1]",
        "[[1],[2]]",
        "[1,9223372036854775808]",
        "[-1,1]",
        "[1.5,1]",
        "[true,1]",
        "[1,2,3]",
    )
    made_up = [base64.urlsafe_b64encode(text.encode()).decode() for text in (*of_another_form, "[" * 100_000)]
    for token in ("x", "bm90IGpzb24=", "WzFd", "é", "bnVsbA==", *made_up):
        with pytest.raises(ValueError, match="page token"):
            hook.tasks(page_token=token)


def test_a_page_has_1_to_100_tasks(a2a_site: Site) -> None:
    hook = hook_of(a2a_site)
    for page_size in (0, -1, 101):
        with pytest.raises(ValueError, match="1 to 100"):
            hook.tasks(page_size=page_size)


@pytest.mark.parametrize("context_id", ["CONTEXT-1", "context-1 ", "cóntext-1", "context-1\x00", "\ud800", 1])
def test_a_context_is_found_by_its_id_to_the_letter(a2a_site: Site, context_id: Any) -> None:
    add_task(a2a_site.engine)
    hook = hook_of(a2a_site)
    assert 0 == hook.tasks(TaskFilter(context_id=context_id)).total_size
    assert 1 == hook.tasks(TaskFilter(context_id="context-1")).total_size


def test_a_caller_sees_the_tasks_of_the_contexts_that_are_its_own(a2a_site: Site) -> None:
    hook = many_tasks(a2a_site)
    found = [
        [each.uid for each in hook.tasks(wanted).tasks]
        for wanted in (
            TaskFilter(context_ids={"context-0", "CONTEXT-1", "not there", "\x00"}),
            TaskFilter(context_ids=["context-0", "context-1"], context_id="context-1"),
            TaskFilter(context_ids=["context-0"], context_id="context-1"),
            TaskFilter(context_ids=[]),
        )
    ]
    assert [[4, 2, 6], [7, 1, 5, 3], [], []] == found
    assert 7 == hook.tasks().total_size
    with pytest.raises(ValueError, match="context_ids is a text"):
        hook.tasks(TaskFilter(context_ids="context-0"))


@pytest.mark.parametrize(
    "act",
    [
        lambda hook: hook.project(page_size=0),
        lambda hook: hook.settle(page_size=0),
        lambda hook: hook.scrub("none", [], page_size=0),
        lambda hook: hook.scrub_installation("none", page_size=0),
        lambda hook: hook.delete_lost(page_size=-1),
    ],
    ids=["project", "settle", "scrub", "scrub_installation", "delete_lost"],
)
def test_a_page_of_nothing_is_refused(a2a_site: Site, act: Any) -> None:
    with pytest.raises(ValueError, match="expected a whole number, at least 1"):
        act(hook_of(a2a_site))
