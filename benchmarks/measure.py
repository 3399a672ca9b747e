"""
How long a derivation takes, against what the database can do: ``python -m benchmarks.measure --runs 10000``.

Everything is measured in one go and given as a ratio, since seconds do not hold from machine to machine.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from typing import Any

from sqlalchemy import delete, select, text

from airflow_provider_nrllm.outcomes.payloads import target_of
from airflow_provider_nrllm.outcomes.rules import ENDED
from benchmarks.many import ManySite, measure_many
from benchmarks.plans import recorded, scanned
from benchmarks.servers import ENGINES, KeptSite
from benchmarks.ways import Needed, floor, row_at_a_time
from tests.typo3.tables import event, metadata, outcome, run
from tests.typo3.year import BEGIN, DAY, END, Texts

WINDOW = 7 * DAY
#: The day out of the year, and the end of everything.
MIDDLE = BEGIN + 200 * DAY
LAST = END + 60 * DAY
#: So many runs are answered row at a time; the time for all is reckoned from them.
SAMPLE = 2000
#: What no statement of a day's partition may read from end to end.
LARGE = {"tx_nrllm_agentrun_event", "later", "sys_history"}

Partition = tuple[int | None, int]
#: A write: its run, when, and what it names.
Row = tuple[int, int, str]
DAY_PARTITION: Partition = (MIDDLE, MIDDLE + DAY)
ALL: Partition = (None, LAST)
#: Two months that have no day in common.
MONTHS: tuple[Partition, Partition] = (
    (MIDDLE - 60 * DAY, MIDDLE - 30 * DAY),
    (MIDDLE + 30 * DAY, MIDDLE + 60 * DAY),
)


class Benchmark:
    """
    What is measured on one site.

    :param site: on its engine
    :param page_size: of the derivations; None for the operator's own
    """

    def __init__(self, site: KeptSite | ManySite, page_size: int | None) -> None:
        self.site = site
        self.page_size = page_size
        os.environ["AIRFLOW_CONN_NRLLM_BENCHMARK"] = json.dumps(site.connection)
        from airflow_provider_nrllm.hooks.nrllm import NrLlmHook

        self.hook = NrLlmHook("nrllm_benchmark")

    def connect(self) -> Any:
        """Return a connection of the plain driver."""
        pooled = self.site.engine.raw_connection()
        pooled.detach()
        return pooled.dbapi_connection

    def version(self) -> str:
        """Return the engine and its version."""
        query = "SELECT sqlite_version()" if self.site.name == "sqlite" else "SELECT version()"
        with self.site.engine.connect() as connection:
            return f"{self.site.name} {connection.execute(text(query)).scalar_one()}"

    def needed(self, partition: Partition) -> Needed:
        """Return the runs that a derivation of the partition answers where nothing of it is answered."""
        runs, writes = self._settled(partition)
        tables = {target.table for _, _, payload in writes if (target := target_of(payload))}
        columns = {
            table: [name for name in ("uid", "deleted", "tstamp", "t3ver_wsid") if name in metadata.tables[table].c]
            for table in tables
        }
        return Needed(partition, list(runs), list(runs.values()), columns)

    def _settled(self, partition: Partition) -> tuple[dict[int, str], list[Row]]:
        """Return the runs that settled in the partition, and their writes in the order of time."""
        start, end = partition
        query = (
            select(run.c.uid, run.c.uuid, run.c.finished_at, event.c.crdate, event.c.payload)
            .join(event, event.c.run == run.c.uid)
            .where(event.c.kind == "tool_write", run.c.status.in_(ENDED))
            .order_by(event.c.crdate, event.c.uid)
        )
        settled: dict[int, int] = {}
        uuids: dict[int, str] = {}
        writes: list[Row] = []
        with self.site.engine.connect() as connection:
            for uid, uuid, finished_at, at, payload in connection.execute(query):
                uuids[uid] = uuid
                settled[uid] = max(finished_at, at + WINDOW, settled.get(uid, 0))
                writes.append((uid, at, payload))
        runs = {uid: uuid for uid, uuid in uuids.items() if (start or 0) <= settled[uid] < end}
        return runs, [write for write in writes if write[0] in runs]

    def forget(self, uuids: Iterable[str] | None = None) -> None:
        """Delete the outcomes of these runs, or all."""
        with self.site.engine.begin() as connection:
            if uuids is not None:
                connection.execute(delete(outcome).where(outcome.c.correlation_id.in_(sorted(uuids))))
            elif self.site.name == "sqlite":
                connection.execute(delete(outcome))
            else:
                connection.execute(text("TRUNCATE TABLE tx_nrllm_call_outcome"))

    def derive(self, *partitions: Partition) -> list[dict[str, Any]]:
        """Derive the partitions, each in a process of its own, all at once."""
        children = [self._child(partition) for partition in partitions]
        for child in children:
            assert child.stdout
            # Airflow may have something to say before.
            while (line := child.stdout.readline()) != "ready\n":
                assert line, "the derivation has ended before it began"
        for child in children:
            assert child.stdin
            child.stdin.write("\n")
            child.stdin.flush()
        return [json.loads(child.communicate()[0].splitlines()[-1]) for child in children]

    def _child(self, partition: Partition) -> subprocess.Popen[str]:
        start, end = partition
        job = {"connection": self.site.connection, "start": start, "end": end, "page_size": self.page_size}
        return subprocess.Popen(
            [sys.executable, "-W", "ignore", "-m", "benchmarks.child", json.dumps(job)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def plans(self) -> tuple[int, set[str]]:
        """Return how many statements a day's derivation has, and which tables they read from end to end."""
        self.forget(self.needed(DAY_PARTITION).uuids)
        with recorded(self.hook.database.engine) as statements:
            for page in self.hook.pages(*DAY_PARTITION, window=WINDOW, page_size=1000):
                self.hook.record_observed(page.runs, page.outcomes(LAST))
        with self.site.engine.connect() as connection:
            found = set().union(*(scanned(connection, one) for one in statements))
        assert not found & LARGE, found
        return len(statements), found


def measure(benchmark: Benchmark, name: str, partition: Partition, times: int) -> dict[str, Any]:
    """
    Measure a partition in all ways; its runs are answered at the end.

    Of each is the best of several taken: what else the machine does can only add to it.
    """
    needed = benchmark.needed(partition)
    mark = "?" if benchmark.site.name == "sqlite" else "%s"
    runs = len(needed.uuids)

    def forget() -> None:
        benchmark.forget(None if partition == ALL else needed.uuids)

    forget()
    rows_seconds, rows_runs = row_at_a_time(benchmark.connect, needed, mark, SAMPLE)
    rows = rows_seconds * runs / rows_runs
    floors: dict[bool, list[float]] = {False: [], True: []}
    derived = []
    for _ in range(times):
        for rules, taken in floors.items():
            forget()
            seconds, found = floor(benchmark.connect, needed, rules=rules)
            assert found == runs, (found, runs)
            taken.append(seconds)
        forget()
        derived.append(benchmark.derive(partition)[0])
        assert derived[-1]["runs"] == runs, (derived[-1], runs)
    least = min(one["seconds"] for one in derived)
    bare, with_rules = (min(taken) for taken in floors.values())
    return {
        "what": name,
        "runs": runs,
        "floor": round(bare, 3),
        "floor with rules": round(with_rules, 3),
        "derivation": round(least, 3),
        "of it connecting": round(min(one["connecting"] for one in derived), 3),
        "row at a time": round(rows, 3),
        "of so many runs": rows_runs,
        "times the floor": round(least / bare, 2),
        "times the floor with rules": round(least / with_rules, 2),
        "times as fast as row at a time": round(rows / least, 1),
        "peak MB": round(max(one["peak"] for one in derived)),
        "own MB": round(max(one["own"] for one in derived)),
    }


def two_at_once(benchmark: Benchmark) -> dict[str, Any]:
    """Measure the throughput of two derivations of disjoint partitions, one after the other and at once."""
    benchmark.forget()
    apart = sum(benchmark.derive(month)[0]["seconds"] for month in MONTHS)
    benchmark.forget()
    together = max(one["seconds"] for one in benchmark.derive(*MONTHS))
    return {
        "what": "two at once",
        "apart": round(apart, 3),
        "together": round(together, 3),
        "throughput": round(apart / together, 2),
    }


def main() -> None:
    """Build the sites that are not there yet, and print what was measured."""
    parser = argparse.ArgumentParser(description=__doc__.strip().partition("\n")[0])
    parser.add_argument("--runs", nargs="+", type=int, default=[10_000])
    parser.add_argument("--engines", nargs="+", choices=ENGINES, default=ENGINES)
    parser.add_argument("--page-size", type=int)
    parser.add_argument("--times", type=int, default=3, help="of each is the best taken")
    parts = ("all", "day", "plans", "two", "many")
    parser.add_argument("--only", nargs="+", choices=parts, default=parts)
    parser.add_argument("--event-text", type=int, default=1000)
    parser.add_argument("--history-text", type=int, default=500)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as home:
        os.environ.update(AIRFLOW_HOME=home, AIRFLOW__CORE__UNIT_TEST_MODE="True", AIRFLOW__CORE__LOAD_EXAMPLES="False")
        for name in arguments.engines:
            if {*arguments.only} - {"many"}:
                for runs in arguments.runs:
                    site = KeptSite(name, runs, texts=Texts(arguments.event_text, arguments.history_text))
                    try:
                        report(Benchmark(site, arguments.page_size), runs, arguments)
                    finally:
                        site.close()
            if "many" in arguments.only:
                measure_many(name, lambda site: Benchmark(site, arguments.page_size).derive(ALL)[0])


def report(benchmark: Benchmark, runs: int, arguments: argparse.Namespace) -> None:
    """Print what was measured on one site."""
    print(f"== {benchmark.version()}, {runs} runs", flush=True)
    if "all" in arguments.only:
        print(measure(benchmark, "everything at once", ALL, arguments.times), flush=True)
    else:
        benchmark.derive(ALL)
    # The rest of the year is answered.
    if "day" in arguments.only:
        print(measure(benchmark, "a day of the year", DAY_PARTITION, arguments.times + 2), flush=True)
    if "plans" in arguments.only:
        statements, found = benchmark.plans()
        scans = ", ".join(sorted(found)) or "nothing"
        print(f"a day: {statements} statements; read from end to end: {scans}", flush=True)
    if "two" in arguments.only and benchmark.site.name != "sqlite":
        print(two_at_once(benchmark), flush=True)


if __name__ == "__main__":
    main()
