"""NrLlmA2AHook: the tasks of the A2A server role, stored, projected, read, scrubbed and purged (ADR-282)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlalchemy.exc import DBAPIError
from sqlalchemy.sql import ColumnElement

from airflow_provider_nrllm.a2a.check import Finding, find_late, find_violations
from airflow_provider_nrllm.a2a.completion import Attempt, Completion, complete, fail
from airflow_provider_nrllm.a2a.figures import RunFigures
from airflow_provider_nrllm.a2a.journal import Projection, due_tasks, project_task
from airflow_provider_nrllm.a2a.reading import (
    TaskFilter,
    TaskPage,
    events_of_task,
    find_state,
    find_task,
    journal_page,
    list_page,
)
from airflow_provider_nrllm.a2a.removal import (
    Removal,
    delete_lost_events_page,
    delete_lost_page,
    delete_of_runs,
    scrub_page,
    tasks_of,
)
from airflow_provider_nrllm.a2a.rows import present, without_content
from airflow_provider_nrllm.a2a.rules import Ceiling, State
from airflow_provider_nrllm.a2a.sealed import Json, Result, Seal, Sealed, seal_result
from airflow_provider_nrllm.a2a.settling import Settling, left_tasks, settle_task
from airflow_provider_nrllm.a2a.shapes import check_message, check_result
from airflow_provider_nrllm.a2a.tables import A2A_TABLES, event, run, task
from airflow_provider_nrllm.a2a.tasks import JournalPage, Task, TaskEvent
from airflow_provider_nrllm.database.conditions import slices
from airflow_provider_nrllm.database.errors import is_locked
from airflow_provider_nrllm.database.hook import SiteHook
from airflow_provider_nrllm.database.requirements import Requirements
from airflow_provider_nrllm.exceptions import NrLlmSchemaError

ALL = TaskFilter()


class NrLlmA2AHook(SiteHook):
    """
    Store the results of A2A tasks with their runs' completion, and keep the journal clients are told from.

    Works over the same connections as ``NrLlmHook``. Stored content
    is sealed: the hook moves it unopened, and neither logs it nor puts it into an error.

    :param nrllm_conn_id: the Airflow connection to the TYPO3 database
    """

    hook_name = "nr_llm A2A"
    requirements = Requirements(
        A2A_TABLES,
        inserted=(event,),
        deleted=(task, event),
        locked=(task,),
        # Only who ends a run needs these.
        unread=tuple(column for column in run.c if column.name not in ("uid", "status")),
        page="docs/how-to/a2a-database-user.md",
    )

    def require_tables(self) -> None:
        """
        Check that the installation has the tables of the A2A server role.

        :raises NrLlmSchemaError: names the table or column that is missing
        """
        if missing := self.database.missing():
            raise NrLlmSchemaError(self.database.explain_missing(missing))

    def has_tables(self) -> bool:
        """Return whether the installation has any table of the A2A server role."""
        return not {task.name, event.name} <= set(self.database.missing())

    def complete(
        self,
        task_id: str,
        result: Result,
        *,
        seal: Seal,
        redacted: Result | None = None,
        ceiling: Callable[[], str] | None = None,
        claimed_by: str | None = None,
        figures: RunFigures | None = None,
        now: int | None = None,
    ) -> Completion:
        """
        Complete a run and its task with the result, in one transaction, or fail both (ADR-282).

        Writes the task and its run. Safe to repeat: a task that has ended is left as it is. Where the result
        cannot be sealed or written, nothing of it is kept and a second transaction makes both failed.
        Deadlocks, lock wait time-outs and lost connections are passed on with nothing written; try again.

        :param task_id: the task
        :param result: what the run made
        :param seal: makes a sealed value of a text, what it is for and the task's id; called before any lock is taken
        :param redacted: the redacted result, made elsewhere; kept under the ceiling ``redacted``
        :param ceiling: returns the installation's answer ceiling, asked under the lock; the stricter of it and
            the task's own holds. Without it the task's own holds.
        :param claimed_by: the worker that holds the run; None where no worker does, and the run is under no lease
        :param figures: what the run took; written with its end, since the runtime may not write it after that
        :param now: the time of the status, in Unix seconds; by default the present, once the locks are had
        :raises ValueError: for invalid figures, or a result without the shape of A2A 1.0; before anything is
            sealed or locked
        :raises TaskNotFoundError: where there is no such task
        """
        check_result(result)
        if redacted is not None:
            check_result(redacted)
        attempt = self._attempt(task_id, claimed_by, ceiling, now, figures)
        # Sealing may be slow, and locks are held for as short as can be.
        whole = seal_result(result, seal, task_id)
        less = None if redacted is None else seal_result(redacted, seal, task_id)
        return complete(self.database, attempt, whole, less)

    def fail(
        self,
        task_id: str,
        *,
        message: Json | None = None,
        seal: Seal | None = None,
        redacted: Json | None = None,
        ceiling: Callable[[], str] | None = None,
        claimed_by: str | None = None,
        figures: RunFigures | None = None,
        now: int | None = None,
    ) -> Completion:
        """
        Fail a run and its task in one transaction; also a task whose run has failed already.

        Writes the task and its run. Safe to repeat. The message is kept as far as the ceiling lets it. The
        parameters not named here are those of ``complete``.

        :param message: the final status message, an A2A message; needs ``seal``
        :param redacted: the redacted message, kept under the ceiling ``redacted``
        :raises ValueError: for a message without ``seal``
        :raises TaskNotFoundError: where there is no such task
        """
        if message is not None and seal is None:
            raise ValueError("a message needs a function that seals it")
        for offered in (message, redacted):
            if offered is not None:
                check_message(offered, "message")
        attempt = self._attempt(task_id, claimed_by, ceiling, now, figures)
        whole = Sealed() if seal is None else seal_result(Result(message=message), seal, task_id)
        less = None if seal is None or redacted is None else seal_result(Result(message=redacted), seal, task_id)
        return fail(self.database, attempt, whole, less)

    def _attempt(
        self,
        task_id: str,
        claimed_by: str | None,
        ceiling: Callable[[], str] | None,
        now: int | None,
        figures: RunFigures | None,
    ) -> Attempt:
        if not isinstance(figures, RunFigures | None):
            raise ValueError(f"figures is a {type(figures).__name__}; expected RunFigures")
        columns = figures.columns() if figures else {}
        return Attempt(task_id, claimed_by, ceiling, now, columns, self.database.largest_statement())

    def settle(self, *, lag: int = 900, page_size: int = 100, now: int | None = None) -> Settling:
        """
        End every task that goes on though its run has ended: cancelled, dead-lettered, or settled by the extension.

        Writes the task alone: canceled after a cancelled run, else failed, after a completed one for the reason
        ``RESULT_NOT_STORED``. Each is a transaction of its own. Safe to repeat and to run several times at once.

        :param lag: how long ago the run must have ended, in seconds: the extension may be about to end the task
        :param page_size: how many tasks are looked up at once
        :param now: the time of the status, in Unix seconds; by default the present
        """
        _check_page_size(page_size)
        done, ended_before = Settling(), present(now) - lag
        with self.database.connection() as connection:
            page = [(0, "")]
            while page:
                with connection.begin():
                    page = left_tasks(connection, page[-1][0], page_size, ended_before=ended_before)
                for _, task_id in page:
                    try:
                        with connection.begin(), without_content():
                            settle_task(connection, task_id, now, done)
                    except DBAPIError as error:
                        if not is_locked(error):
                            raise
                        done.locked += 1
        return done

    def scrub(
        self,
        ceiling: str,
        task_ids: Sequence[str] | None = None,
        *,
        runs: Sequence[int] | None = None,
        page_size: int = 100,
    ) -> Removal:
        """
        Empty what some tasks hold beyond a ceiling, in the tasks and in the journal, and tighten theirs (ADR-270).

        Artifacts, status messages and history go; states, times and the events' order stay. A page of tasks is
        one transaction, under the locks of their runs and their own. Safe to repeat (ADR-282).

        :param ceiling: the answer ceiling that holds for them now
        :param task_ids: the tasks; one that is not there is passed over
        :param runs: the uids of runs, whose tasks are meant
        :param page_size: the most tasks of a transaction
        :raises ValueError: for a ceiling this version does not know, neither tasks nor runs, or a text instead of
            a list of tasks
        """
        if isinstance(task_ids, str):
            raise ValueError("task_ids is a text; expected a list of the ids of tasks")
        if task_ids is None and runs is None:
            raise ValueError("neither task_ids nor runs; expected one of them, or scrub_installation for all tasks")
        _check_uids(runs or ())
        _check_page_size(page_size)
        done = Removal()
        dialect = self.database.engine.dialect.name
        for some in slices(task_ids or (), page_size):
            self._scrub(ceiling, tasks_of(dialect, some, ()), page_size, done)
        for few in slices(runs or (), page_size):
            self._scrub(ceiling, tasks_of(dialect, (), few), page_size, done)
        return done

    def scrub_installation(self, ceiling: str, *, page_size: int = 100) -> Removal:
        """
        Do the same to every task of the installation, where its own setting was tightened.

        Also emptied is what holds content under a ceiling that keeps none, or that this version does not know.

        :param ceiling: the installation's answer ceiling now, as ``a2a.rules.answer_ceiling`` returns it: the global
            default ``metadata`` lets answers be kept in full, and as it stands would lose them all
        :param page_size: the most tasks of a transaction
        :raises ValueError: for a ceiling this version does not know
        """
        _check_page_size(page_size)
        done = Removal()
        self._scrub(ceiling, None, page_size, done)
        return done

    def _scrub(self, ceiling: str, only: ColumnElement[bool] | None, page_size: int, done: Removal) -> None:
        wanted = Ceiling(ceiling)
        with self.database.connection() as connection:
            after: int | None = 0
            while after is not None:
                with connection.begin(), without_content():
                    after = scrub_page(connection, wanted, after, page_size, done, only)

    def project(self, *, page_size: int = 500, now: int | None = None) -> Projection:
        """
        Write the events of every task's newest revision that has none, from the committed state only.

        Writes the journal, each task's revision in one statement and a transaction of its own. Safe to repeat
        and to run several times at once: each event is written once. A revision that was overtaken before it
        was projected is skipped, the last never is (ADR-282).

        :param page_size: how many tasks are looked up at once
        :param now: the time of writing, in Unix seconds; by default the present
        """
        _check_page_size(page_size)
        projection, largest = Projection(), self.database.largest_statement()
        with self.database.connection() as connection:
            page = [0]
            while page:
                with connection.begin():
                    page = due_tasks(connection, page[-1], page_size)
                for uid in page:
                    with without_content():
                        project_task(connection, uid, now, projection, largest)
        return projection

    def task(self, task_id: str) -> Task:
        """
        Return a task as it is committed; ``task_json`` shows it.

        :raises TaskNotFoundError: where there is none, or it went with its run
        :raises UnreadableError: where a value of it is not sealed, or its state not known; it is then not shown at all
        """
        with self.database.snapshot() as connection:
            return find_task(connection, task_id)

    def state(self, task_id: str) -> State:
        """
        Return the state of a task, reading nothing else of it.

        :raises TaskNotFoundError: where there is none, or it went with its run
        """
        with self.database.snapshot() as connection:
            return find_state(connection, task_id)

    def tasks(
        self, wanted: TaskFilter = ALL, *, page_size: int = 50, page_token: str = "", include_artifacts: bool = False
    ) -> TaskPage:
        """
        Return a page of tasks by status time, the newest first.

        A task of which a value is not sealed, or the state not known, is there without its content.

        :param page_size: how many tasks a page may have, 1 to 100 as A2A has it
        :param page_token: the ``next_page_token`` of the page before; empty for the first page
        :param include_artifacts: whether to read the artifacts too
        :raises ValueError: for an invalid page size, page token or filter
        """
        if type(page_size) is not int or not 1 <= page_size <= 100:
            raise ValueError(f"page_size is {page_size!r}; expected 1 to 100")
        with self.database.snapshot() as connection:
            return list_page(connection, wanted, page_size, page_token, include_artifacts)

    def events(self, task_id: str, *, after_revision: int = 0) -> tuple[Task, list[TaskEvent]]:
        """
        Return a task and its journal's events after a revision, in the order a client is to get them.

        :param after_revision: the last revision the client has
        :raises TaskNotFoundError: where there is no such task, or it went with its run
        :raises UnreadableError: where a value of them is not sealed, or a state not known
        """
        with self.database.snapshot() as connection:
            return events_of_task(connection, task_id, after_revision)

    def events_after(
        self, position: int = 0, *, page_size: int = 500, patience: int = 300, now: int | None = None
    ) -> JournalPage:
        """
        Return the next events of all tasks, in the order of the journal: for who hands them on, such as by push.

        Keep the position of a page once its entries are handed on, and begin the next one there: each event comes
        once, also those of a writer that commits late. An event of a task whose run has gone does not come.

        :param position: the position of the page before; 0 for the beginning
        :param page_size: the most events of a page
        :param patience: how long a projector's transaction may take, in seconds: so long an event waits behind one
            that is missing before it
        :param now: the present, in Unix seconds
        :raises ValueError: for a position that is no number, or a page size below 1
        """
        _check_page_size(page_size)
        with self.database.snapshot() as connection:
            return journal_page(connection, position, page_size, present(now) - patience)

    def delete(self, runs: Sequence[int]) -> Removal:
        """
        Delete the tasks of runs that are purged, with their events, in one transaction; the runs stay.

        A run that goes on keeps its task. Safe to repeat.

        :param runs: the uids of the runs
        :raises ValueError: for a uid that is not a whole number
        """
        _check_uids(runs)
        with self.database.transaction() as connection:
            return delete_of_runs(connection, runs)

    def delete_lost(self, *, page_size: int = 100) -> Removal:
        """
        Delete the tasks that have lost their run, and the events that have lost their task. Safe to repeat.

        :param page_size: the most tasks, or events, of a transaction
        """
        _check_page_size(page_size)
        done = Removal()
        with self.database.connection() as connection:
            after: int | None = 0
            while after is not None:
                with connection.begin():
                    after = delete_lost_page(connection, after, page_size, done)
            more = True
            while more:
                with connection.begin():
                    more = delete_lost_events_page(connection, page_size, done)
        return done

    def check(self, *, lag: int, now: int | None = None) -> tuple[list[Finding], Finding]:
        """
        Return what breaks a promise of ADR-282, and the tasks whose end is late in the journal. Reads only.

        :param lag: from when on it is late, in seconds after the task's end
        :param now: the present, in Unix seconds
        """
        with self.database.snapshot() as connection:
            return find_violations(connection), find_late(connection, present(now) - lag)


def _check_page_size(page_size: int) -> None:
    # Of no page at all, a scrub would end with nothing scrubbed and no word of it.
    if type(page_size) is not int or page_size < 1:
        raise ValueError(f"page_size is {page_size!r}; expected a whole number, at least 1")


def _check_uids(uids: object) -> None:
    # As a text, a database might find one, and this not know it again.
    if not isinstance(uids, Sequence) or not all(type(uid) is int for uid in uids):
        raise ValueError("runs are not uids; expected a list of whole numbers")
