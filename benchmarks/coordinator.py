"""Measures a coordinator's costs: listing many jobs, serving many watchers, writing checkpoints."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import grpc

from benchmarks.benchmark import Benchmark, Row
from benchmarks.checkpointing import measure_checkpoint_shares
from benchmarks.disk import folder_on_disk
from library.tests.designer.small_joint_spec import small_joint_spec
from remy_proto.v1 import design_service_pb2 as messages
from remy_services.stores.archive import put_archive, read_archive
from remy_services.stores.sqlite import SqliteStore
from services.tests.cli.service.real_coordinator import Coordinator
from services.tests.coordinator.running_server import (
    Client,
    RunningServer,
    settings_for,
    with_metadata,
)

_FINISHED = 1000
_RUNNING = 20
_WATCHERS = 50
_SECONDS = 20.0
_LISTS = 50
#: About ten steps a second on one thread.
_ENDLESS = small_joint_spec(steps=1_000_000, steps_per_epoch=50, simulated_seconds=30)
_WORKER = Path(sys.executable).with_name("remy-worker")


def measure() -> list[Row]:
    """Returns one row per goal."""
    with folder_on_disk() as folder:
        _fill(folder)
        coordinator = Coordinator(
            folder, "--evaluator", "workers", "--maximum-running-jobs", str(2 * _RUNNING)
        )
        with ExitStack() as stack:
            stack.callback(coordinator.close)
            coordinator.start()
            channel = stack.enter_context(grpc.insecure_channel(coordinator.address))
            client = Client(with_metadata(channel))
            jobs = [client.submit(_ENDLESS).id for _ in range(_RUNNING)]
            worker = subprocess.Popen(
                [_WORKER, "--coordinator", coordinator.address, "--threads", "1"],
                stderr=subprocess.DEVNULL,
            )
            stack.callback(worker.wait)
            stack.callback(worker.terminate)
            client.until(jobs[0], lambda shown: shown.progress.step > 0)
            rows = [_measure_listing(client), *_measure_watching(client, coordinator, jobs[0])]
    return [*rows, *_measure_checkpoints()]


def _fill(folder: Path) -> None:
    """Stores many finished jobs, which are copies of one that was run."""
    with RunningServer(settings_for(folder)) as server:
        client = server.client()
        job = client.until_final(client.submit(small_joint_spec()).id).id
    with closing(SqliteStore(folder / "farm.db")) as store:
        archive = read_archive(store, job)
        for number in range(_FINISHED - 1):
            archive.record.job.id = f"finished-{number}"
            archive.record.job.create_time.seconds += 1
            put_archive(store, archive)


def _measure_listing(client: Client) -> Row:
    request = messages.ListJobsRequest(page_size=1000)
    milliseconds = []
    for _ in range(_LISTS):
        began = time.perf_counter()
        listed, token = 0, ""
        while True:
            page = client.call("ListJobs", request)
            listed += len(page.jobs)
            token = request.page_token = page.next_page_token
            if not token:
                break
        milliseconds.append(1000 * (time.perf_counter() - began))
        assert listed == _FINISHED + _RUNNING
    return _row(
        f"list {_FINISHED} finished and {_RUNNING} running jobs (ms)",
        statistics.median(milliseconds),
        max(milliseconds),
        100.0,
    )


def _measure_watching(client: Client, coordinator: Coordinator, job: str) -> list[Row]:
    """Compares the coordinator's CPU time with watchers and without."""
    alone = _cpu_share(coordinator.pid)
    with ExitStack() as stack:
        for _ in range(_WATCHERS):
            stream = client.stub.WatchJob(messages.WatchJobRequest(job=job))
            stack.callback(stream.cancel)
            threading.Thread(target=_drain, args=(stream,), daemon=True).start()
        watched = _cpu_share(coordinator.pid)
    return [
        _row("running jobs without watchers (% of a core)", 100 * alone, None, None),
        _row(f"added by {_WATCHERS} watchers (% of a core)", 100 * (watched - alone), None, 5.0),
    ]


def _drain(stream: Any) -> None:
    try:
        for _ in stream:
            pass
    except grpc.RpcError:
        return


def _cpu_share(pid: int) -> float:
    before, began = cpu_seconds(pid), time.perf_counter()
    time.sleep(_SECONDS)
    return (cpu_seconds(pid) - before) / (time.perf_counter() - began)


def cpu_seconds(pid: int) -> float:
    """Returns the CPU seconds (user and system) that a process has used since its start."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _measure_checkpoints() -> list[Row]:
    with folder_on_disk() as folder:
        shares = measure_checkpoint_shares(folder, seconds=_SECONDS)
    return [
        _row("checkpoints: the designer waits (% of wall time)", 100 * shares.designer, None, 1.0),
        _row("checkpoints: the store writes (% of wall time)", 100 * shares.store, None, None),
    ]


def _row(what: str, value: float, highest: float | None, goal: float | None) -> Row:
    return {
        "what": what,
        "measured": value,
        "highest": highest,
        "goal": goal,
        "load": os.getloadavg()[0],
    }


BENCHMARK = Benchmark(
    name="coordinator",
    title="Coordinator",
    method=(
        f"A coordinator on SQLite has {_FINISHED} finished jobs, {_RUNNING} running ones and a "
        f"worker with one thread. Listing: a client lists all jobs in pages of 1000, {_LISTS} "
        f"times; median and maximum. Watching: the coordinator's CPU time over {_SECONDS:.0f} s "
        f"with {_WATCHERS} watchers of one running job, minus that without watchers. Checkpoints: "
        f"a joint design of 200 rules writes a checkpoint each second. The designer serializes its "
        f"state while the search waits; the store commits it and reads it back in parallel with "
        f"the next step."
    ),
    measure=measure,
)
