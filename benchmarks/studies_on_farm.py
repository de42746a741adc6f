"""Checks that studies give the same files on a farm whose workers are killed."""

from __future__ import annotations

import json
import subprocess
import threading
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from benchmarks.benchmark import Benchmark, Row
from benchmarks.disk import folder_on_disk
from benchmarks.programs import REMY_FARM, ROOT
from remy_proto.v1 import design_service_pb2 as messages
from remy_services.client.design_client import DesignClient
from services.tests.cli.service.real_coordinator import Coordinator
from tests.observability.local_worker import LocalWorker
from tests.service.watcher import connect

_WORKERS = 2
_SECONDS_BETWEEN_KILLS = 60.0


def measure() -> list[Row]:
    """Returns one row per run: on this machine, on the farm, and on the farm again."""
    with folder_on_disk() as folder, ExitStack() as stack:
        local_run = _reproduce(folder / "here")
        local_files = files_of(folder / "here")
        rows = [_row("here, on all CPUs", local_run, True)]
        coordinator = Coordinator(folder / "farm", "--evaluator", "workers")
        stack.callback(coordinator.close)
        coordinator.start()
        workers = _Workers(coordinator.address, folder, stack)
        killer = threading.Thread(target=workers.kill_periodically, daemon=True)
        killer.start()
        for name in ("on 2 workers, one killed each minute", "again, from another directory"):
            killed, evaluated = workers.killed, _evaluations(coordinator.address)
            out = folder / f"there-{len(rows)}"
            farm_run = _reproduce(out, "--coordinator", coordinator.address)
            row = _row(name, farm_run, files_of(out) == local_files)
            row["evaluations"] = _evaluations(coordinator.address) - evaluated
            rows.append(row | {"kills": workers.killed - killed})
        workers.stop.set()
        killer.join()
    return rows


class _Workers:
    """Worker processes, one of which is killed and replaced periodically."""

    def __init__(self, coordinator: str, folder: Path, stack: ExitStack) -> None:
        self._coordinator = coordinator
        self._folder = folder
        self._stack = stack
        self._number = 0
        self._workers = [self._start() for _ in range(_WORKERS)]
        self.killed = 0
        self.stop = threading.Event()

    def kill_periodically(self) -> None:
        """Kills and replaces a worker every _SECONDS_BETWEEN_KILLS until `stop` is set."""
        while not self.stop.wait(_SECONDS_BETWEEN_KILLS):
            self._workers.pop(0).kill()
            self.killed += 1
            self._workers.append(self._start())

    def _start(self) -> LocalWorker:
        self._number += 1
        worker = LocalWorker(self._coordinator, self._folder / f"worker-{self._number}")
        return self._stack.enter_context(worker)


def _evaluations(address: str) -> int:
    """Returns the number of evaluations that the farm has made so far."""
    with connect(address) as connection:
        jobs = DesignClient(connection).list(messages.ListJobsRequest()).jobs
    return sum(job.progress.evaluations for job in jobs)


def _reproduce(out: Path, *flags: str) -> dict[str, Any]:
    began = time.monotonic()
    command: list[str | Path]
    command = [REMY_FARM, "reproduce", "--quiet", "--json", *flags]
    done = subprocess.run(
        [*command, "--out", str(out)], cwd=ROOT, check=True, stdout=subprocess.PIPE
    )
    counts: dict[str, Any] = json.loads(done.stdout)
    return counts | {"seconds": time.monotonic() - began}


def files_of(out: Path) -> dict[str, bytes]:
    """Returns all data, pictures and pages by path; the database of simulated cells is left out."""
    return {
        str(path.relative_to(out)): path.read_bytes()
        for path in out.rglob("*")
        if path.is_file() and path.suffix != ".db"
    }


def _row(name: str, counts: dict[str, Any], is_equal: bool) -> Row:
    return {
        "simulated": name,
        "cells": counts["cells_simulated"] + counts["cells_found"],
        "evaluations": counts["cells_simulated"],
        "kills": 0,
        "seconds": counts["seconds"],
        "same_files": is_equal,
    }


BENCHMARK = Benchmark(
    "studies-on-farm",
    "Studies on workers that are killed",
    "`remy-farm reproduce` makes every figure three times: on this machine; on workers of a "
    "coordinator, one of which is killed and replaced each minute; and on the same farm once more "
    "from an empty directory. Evaluations are simulations made during the run. Data, pictures and "
    "pages are compared byte by byte.",
    measure,
)
