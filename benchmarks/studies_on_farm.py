"""What killed workers leave in the data of studies: nothing."""

from __future__ import annotations

import json
import subprocess
import threading
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from benchmarks.disk import folder_on_disk
from benchmarks.figure import Figure, Row
from benchmarks.programs import REMY_FARM, ROOT
from remy_proto.v1 import design_service_pb2 as messages
from remy_services.client.design_client import DesignClient
from services.tests.cli.service.real_coordinator import Coordinator
from tests.observability.local_worker import LocalWorker
from tests.service.watcher import connect

_WORKERS = 2
_SECONDS_BETWEEN_KILLS = 60.0


def measure() -> list[Row]:
    """A row for each way to simulate them."""
    with folder_on_disk() as folder, ExitStack() as stack:
        here = _reproduce(folder / "here")
        made = files_of(folder / "here")
        rows = [_row("here, on all CPUs", here, True)]
        coordinator = Coordinator(folder / "farm", "--evaluator", "workers")
        stack.callback(coordinator.close)
        coordinator.start()
        workers = _Workers(coordinator.address, folder, stack)
        killer = threading.Thread(target=workers.kill_again_and_again, daemon=True)
        killer.start()
        for name in ("on 2 workers, one killed each minute", "again, from another folder"):
            killed, evaluated = workers.killed, _evaluations(coordinator.address)
            out = folder / f"there-{len(rows)}"
            found = _reproduce(out, "--coordinator", coordinator.address)
            row = _row(name, found, files_of(out) == made)
            row["evaluations"] = _evaluations(coordinator.address) - evaluated
            rows.append(row | {"kills": workers.killed - killed})
        workers.ended.set()
        killer.join()
    return rows


class _Workers:
    def __init__(self, coordinator: str, folder: Path, stack: ExitStack) -> None:
        self._coordinator = coordinator
        self._folder = folder
        self._stack = stack
        self._number = 0
        self._workers = [self._start() for _ in range(_WORKERS)]
        self.killed = 0
        self.ended = threading.Event()

    def kill_again_and_again(self) -> None:
        while not self.ended.wait(_SECONDS_BETWEEN_KILLS):
            self._workers.pop(0).kill()
            self.killed += 1
            self._workers.append(self._start())

    def _start(self) -> LocalWorker:
        self._number += 1
        worker = LocalWorker(self._coordinator, self._folder / f"worker-{self._number}")
        return self._stack.enter_context(worker)


def _evaluations(address: str) -> int:
    """Made on the farm so far."""
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
    tree: dict[str, Any] = json.loads(done.stdout)
    return tree | {"seconds": time.monotonic() - began}


def files_of(out: Path) -> dict[str, bytes]:
    """Data, pictures and pages, without what has been simulated."""
    return {
        str(path.relative_to(out)): path.read_bytes()
        for path in out.rglob("*")
        if path.is_file() and path.suffix != ".db"
    }


def _row(name: str, tree: dict[str, Any], is_equal: bool) -> Row:
    return {
        "simulated": name,
        "cells": tree["cells_simulated"] + tree["cells_found"],
        "evaluations": tree["cells_simulated"],
        "kills": 0,
        "seconds": tree["seconds"],
        "same_files": is_equal,
    }


FIGURE = Figure(
    "studies-on-farm",
    "Studies on workers that are killed",
    "Every figure by `remy-farm reproduce`: on this machine, on workers of a coordinator, one of "
    "which is killed each minute and another takes its place, and once more by a client that has "
    "nothing kept. Evaluations are simulations made for the run; the files are compared byte by "
    "byte: data, pictures and pages.",
    measure,
)
