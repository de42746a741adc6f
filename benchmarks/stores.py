"""Measures the latency of a commit to SQLite and to Redis."""

from __future__ import annotations

import os
import shutil
import statistics
import time
from contextlib import closing

from benchmarks.benchmark import Benchmark, Row, Unavailable
from benchmarks.disk import folder_on_disk
from benchmarks.job_at_work import step_commit
from remy_services.stores import open_store
from remy_services.stores.contract import CheckpointStore, retire_snapshots
from remy_services.stores.sqlite import SqliteStore
from services.tests.stores.local_redis import PROGRAM, LocalRedis

_JOB = "job"
_RULES = 200
_COMMITS = 1000
_JOBS = 1020


def measure() -> list[Row]:
    """Returns one row per store."""
    with folder_on_disk() as folder, closing(SqliteStore(folder / "jobs.db")) as store:
        rows = [_row(store)]
    if shutil.which(PROGRAM) is None:
        raise Unavailable(f"{PROGRAM} is not installed.")
    with (
        folder_on_disk() as folder,
        LocalRedis(folder) as server,
        closing(open_store(server.url)) as store,
    ):
        rows.append(_row(store))
    return rows


def _row(store: CheckpointStore) -> Row:
    commit = step_commit(_JOB, 1, _RULES)
    store.create(_JOB, commit)
    token = store.acquire(_JOB, "benchmark")
    commits_ms, retirements_ms = [], []
    for revision in range(1, 1 + _COMMITS):
        commit = step_commit(_JOB, revision + 1, _RULES)
        start = time.perf_counter()
        store.commit(_JOB, token, revision, commit)
        committed = time.perf_counter()
        retire_snapshots(store, _JOB, token)
        retirements_ms.append(1000 * (time.perf_counter() - committed))
        commits_ms.append(1000 * (committed - start))
    for number in range(_JOBS - 1):
        store.create(f"{_JOB}-{number}", step_commit(f"{_JOB}-{number}", 1, 1))
    listings_ms = []
    for _ in range(20):
        start = time.perf_counter()
        store.jobs()
        listings_ms.append(1000 * (time.perf_counter() - start))
    durability = store.durability()
    assert commit.snapshot is not None
    return {
        "store": f"{durability.kind} {durability.version}",
        "snapshot bytes": len(commit.snapshot),
        "commit ms: p50": statistics.median(commits_ms),
        "p99": _p99(commits_ms),
        "maximum": max(commits_ms),
        "goal (p99)": 10,
        "read back and retire ms: p50": statistics.median(retirements_ms),
        f"list {_JOBS} jobs ms": statistics.median(listings_ms),
        "load": os.getloadavg()[0],
    }


def _p99(values: list[float]) -> float:
    return statistics.quantiles(values, n=100)[98]


BENCHMARK = Benchmark(
    name="stores",
    title="Commit latency",
    method=(
        f"Wall time of each of {_COMMITS} commits, one after another, to a store on this "
        "repository's disk. A commit holds a job's record, one event, and the state of a joint "
        f"search whose table has at least {_RULES} rules; it is durable on disk before the call "
        "returns. After each commit the snapshot is read back and the last but one is removed, as "
        f"a coordinator does. Then {_JOBS} jobs are listed. Other users of the disk and the CPUs "
        "raise the times, so the load average is in the table."
    ),
    measure=measure,
)
