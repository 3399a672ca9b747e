"""
A TYPO3 site of any number of AI runs: the same from the same seed, and loaded in bulk.

A year of runs, of which some wait long for approval, or still go on. Each has ten events of other kinds and
one to three writes. A written record has about ten history rows, one in a thousand has thousands; and there
are as many history rows again of records that no run wrote.
"""

from __future__ import annotations

import csv
import json
import tempfile
from array import array
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any, NamedTuple, Protocol
from uuid import UUID

from sqlalchemy import create_engine, text
from sqlalchemy.engine import Engine

from tests.typo3.tables import RECORD_TABLES, create_tables, metadata

DAY = 86400
#: The year of runs begins here.
BEGIN = int(datetime(2025, 1, 1, tzinfo=UTC).timestamp())
DAYS = 365
END = BEGIN + DAYS * DAY

OTHER_EVENTS = ("request", "llm", "tool", "llm", "tool", "context", "llm", "tool", "llm", "response")
ADD, MODIFY, MOVE, DELETE = 1, 2, 3, 4
TABLES = [table.name for table in RECORD_TABLES]
#: The history begins this long before the first run, and goes on this long after the last.
PAST = 200 * DAY
#: Records that no run wrote have uids from here.
UNWRITTEN = 10_000_000

Values = Sequence[Any]


class HistoryRow(NamedTuple):
    """A history row, which is kept as one number, so that a history of millions fits into memory."""

    stamp: int
    table: int
    action: int
    workspace: int
    record: int

    def packed(self) -> int:
        """Return the row as a number that sorts by time."""
        head = (self.stamp - BEGIN + PAST) << 6 | self.table << 4 | self.action << 1 | self.workspace
        return head << 32 | self.record

    @classmethod
    def unpacked(cls, number: int) -> HistoryRow:
        """Return the row that a number stands for."""
        head, record = number >> 32, number & 0xFFFFFFFF
        return cls((head >> 6) + BEGIN - PAST, head >> 4 & 3, head >> 1 & 7, head & 1, record)


@dataclass(frozen=True)
class Texts:
    """How long the texts are that nobody reads, in bytes."""

    event: int = 1000
    history: int = 500


class Rows(Protocol):
    """What can be loaded as a site."""

    def rows(self) -> Iterator[tuple[str, tuple[str, ...], Iterable[Values]]]:
        """Yield each table's name, the columns that are given, and its rows in the order of their uids."""
        ...


class Site:
    """
    The rows of a site, table by table.

    :param runs: how many runs the year has
    :param texts: how long the texts are that a derivation does not read
    :param seed: the same seed gives the same site
    """

    def __init__(self, runs: int, texts: Texts = Texts(), seed: int = 1) -> None:
        self.texts = texts
        self._random = Random(seed)
        self._history: dict[int, array[int]] = {}
        self._written = [0 for _ in TABLES]
        self._records: list[list[Values]] = [[] for _ in TABLES]
        self._recent: deque[tuple[int, int]] = deque(maxlen=200)
        self._runs = [self._run(number, runs) for number in range(runs)]
        self._leave_alone(sum(map(len, self._history.values())) // 10)

    def rows(self) -> Iterator[tuple[str, tuple[str, ...], Iterable[Values]]]:
        """Yield each table's name, the columns that are given, and its rows in the order of their uids."""
        yield "tx_nrllm_agentrun", RUN_COLUMNS, (row for row, _ in self._runs)
        yield "tx_nrllm_agentrun_event", EVENT_COLUMNS, self._events()
        yield "sys_history", HISTORY_COLUMNS, self._history_rows()
        for name, records in zip(TABLES, self._records, strict=True):
            columns = RECORD_COLUMNS if name != "sys_file_metadata" else RECORD_COLUMNS[:-1]
            yield name, columns, (row[: len(columns)] for row in records)

    def _run(self, number: int, runs: int) -> tuple[Values, list[tuple[int, str]]]:
        """Return a run's row, and the time and payload of each of its writes."""
        chance = self._random.random
        created = BEGIN + number * DAYS * DAY // runs + self._random.randrange(60)
        # Some wait for a person before they write, and some after that, before they end.
        started = created + (self._random.randrange(10 * DAY) if chance() < 0.03 else 0)
        writes = sorted(started + self._random.randrange(5, 300) for _ in range(self._random.randint(1, 3)))
        status = "completed" if chance() < 0.95 else "failed"
        ended = writes[-1] + (self._random.randrange(20 * DAY) if chance() < 0.03 else 10)
        if chance() < 0.01:
            status, ended = "waiting_for_approval", 0
        uuid = UUID(int=self._random.getrandbits(128), version=4)
        row = (number + 1, str(uuid), status, number % 50, "editor", ended, max(ended, created), created)
        return row, [(at, self._payload(at)) for at in writes]

    def _payload(self, at: int) -> str:
        table, record = self._target(at)
        payload = {
            "kind": "tool_write",
            "round": 1,
            "durationMs": 0,
            "toolName": "update_content",
            "writeTargetTable": TABLES[table],
            "writeTargetUid": record,
        }
        written = json.dumps(payload)
        return written if self._random.random() > 0.002 else written[:40]

    def _target(self, at: int) -> tuple[int, int]:
        """Return the record that a write names: one that was written lately, or another with its history."""
        own = at - self._random.randrange(30)
        if self._recent and self._random.random() < 0.1:
            table, record = self._random.choice(self._recent)
            self._remember(HistoryRow(own, table, MODIFY, 0, record))
            return table, record
        table = self._random.choices(range(len(TABLES)), (2, 6, 1, 1))[0]
        self._written[table] += 1
        record = self._written[table]
        self._record(table, record, own)
        self._recent.append((table, record))
        return table, record

    def _record(self, table: int, record: int, own: int) -> None:
        """Add a written record with its history: it was there before, or the write has made it."""
        chance = self._random.random
        made = own if chance() < 0.3 else own - self._random.randrange(PAST)
        self._remember(HistoryRow(made, table, ADD, 0, record))
        if made != own:
            self._remember(HistoryRow(own, table, MODIFY, 0, record))
        many = 2000 if chance() < 0.001 else self._random.randrange(15)
        for _ in range(many):
            stamp = self._random.randrange(made, END + PAST)
            workspace = int(chance() < 0.03)
            self._remember(HistoryRow(stamp, table, MOVE if chance() < 0.1 else MODIFY, workspace, record))
        deleted = 0
        if chance() < 0.05:
            deleted = own + self._random.randrange(30 * DAY)
            self._remember(HistoryRow(deleted, table, DELETE, 0, record))
        if chance() > 0.005:
            self._records[table].append((record, 1, deleted or own, made, int(deleted > 0)))

    def _leave_alone(self, records: int) -> None:
        """Add records that no run wrote, each with ten history rows."""
        for number in range(records):
            table, record = number % len(TABLES), UNWRITTEN + number
            for _ in range(10):
                self._remember(HistoryRow(self._random.randrange(BEGIN - PAST, END), table, MODIFY, 0, record))
            self._records[table].append((record, 1, END, BEGIN - PAST, 0))

    def _remember(self, row: HistoryRow) -> None:
        self._history.setdefault(row.stamp // DAY, array("Q")).append(row.packed())

    def _texts(self, length: int) -> list[str]:
        letters = "abcdefghijklmnop     "
        return ["".join(self._random.choices(letters, k=length)) for _ in range(100)]

    def _events(self) -> Iterator[Values]:
        bulk = [f'{{"content": "{some}"}}' for some in self._texts(self.texts.event)]
        uid = 0
        for row, writes in self._runs:
            run, created, begun = row[0], row[-1], writes[0][0]
            others = [(created if number < 2 else begun - 1, kind) for number, kind in enumerate(OTHER_EVENTS)]
            rows = [(at, kind, bulk[(uid + number) % 100]) for number, (at, kind) in enumerate(others)]
            rows += [(at, "tool_write", payload) for at, payload in writes]
            for sequence, (at, kind, payload) in enumerate(sorted(rows, key=lambda one: one[0]), start=1):
                uid += 1
                yield uid, run, sequence, kind, 1, payload, at

    def _history_rows(self) -> Iterator[Values]:
        bulk = [f'{{"oldRecord": {{"header": "{some}"}}}}' for some in self._texts(self.texts.history)]
        uid = 0
        for day in sorted(self._history):
            for number in sorted(self._history[day]):
                uid += 1
                row = HistoryRow.unpacked(number)
                yield uid, row.stamp, row.action, 7, row.record, TABLES[row.table], bulk[uid % 100], row.workspace


RUN_COLUMNS = ("uid", "uuid", "status", "be_user", "configuration_identifier", "finished_at", "tstamp", "crdate")
EVENT_COLUMNS = ("uid", "run", "sequence", "kind", "round", "payload", "crdate")
HISTORY_COLUMNS = ("uid", "tstamp", "actiontype", "userid", "recuid", "tablename", "history_data", "workspace")
RECORD_COLUMNS = ("uid", "pid", "tstamp", "crdate", "deleted")


def build(engine: Engine, site: Rows) -> None:
    """Create the tables in an empty database, load the site, and let the engine count what is in them."""
    create_tables(engine)
    load(engine, site)


def load(engine: Engine, site: Rows) -> None:
    """Load the site into empty tables, and let the engine count what is in them."""
    for name, columns, rows in site.rows():
        _load_table(engine, name, columns, rows)
    analyze(engine)


def analyze(engine: Engine) -> None:
    """Let the engine count what is in the tables; SQLite, as TYPO3 uses it, never does."""
    if engine.dialect.name == "sqlite":
        return
    statement = "ANALYZE TABLE {}" if engine.dialect.name == "mysql" else "VACUUM ANALYZE {}"
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        for table in metadata.sorted_tables:
            connection.execute(text(statement.format(table.name))).close()


def _load_table(engine: Engine, name: str, columns: Sequence[str], rows: Iterable[Values]) -> None:
    if engine.dialect.name == "sqlite":
        marks = ", ".join("?" for _ in columns)
        with engine.begin() as connection:
            # As a list of parameters SQLAlchemy would hold all of them at once.
            driver: Any = connection.connection.cursor()
            driver.executemany(f"INSERT INTO {name} ({', '.join(columns)}) VALUES ({marks})", rows)
        return
    with tempfile.TemporaryDirectory(prefix="nrllm-load-") as directory:
        path = Path(directory) / f"{name}.tsv"
        with path.open("w", newline="") as file:
            # No text has a tab, a line break, a quote mark to double or a backslash to escape.
            lines = csv.writer(file, delimiter="\t", quoting=csv.QUOTE_NONE, quotechar=None, lineterminator="\n")
            lines.writerows(rows)
        _load_file(engine, name, columns, path)


def _load_file(engine: Engine, name: str, columns: Sequence[str], path: Path) -> None:
    into = f"{name} ({', '.join(columns)})"
    if engine.dialect.name == "postgresql":
        with engine.begin() as connection, path.open() as file:
            connection.connection.cursor().copy_expert(f"COPY {into} FROM STDIN", file)
        return
    loader = create_engine(engine.url, connect_args={"local_infile": 1})
    with loader.begin() as connection:
        connection.exec_driver_sql("SET unique_checks = 0")
        connection.exec_driver_sql(
            f"LOAD DATA LOCAL INFILE '{path}' INTO TABLE {name} CHARACTER SET utf8mb4 ({', '.join(columns)})"
        )
    loader.dispose()
