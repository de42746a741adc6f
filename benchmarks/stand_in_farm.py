"""A coordinator's fleet with stand-in workers, and what it got out of them."""

from __future__ import annotations

import contextlib
import multiprocessing
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from logging import WARNING
from pathlib import Path
from typing import TypeVar

import structlog

from benchmarks.programs import ROOT
from benchmarks.worker_farm import WorkerFarm

_PROCESSES = 4

_Given = TypeVar("_Given")
_Found = TypeVar("_Found")


@dataclass(frozen=True)
class Measures:
    """Counts at one moment."""

    seconds: float
    tasks: int
    simulations: int
    #: That workers say they simulated for.
    worker_seconds: float
    #: Of this process.
    cpu_seconds: float
    #: Of messages with tasks, and of those with results.
    task_bytes: int
    result_bytes: int

    @classmethod
    def of(cls, farm: WorkerFarm) -> Measures:
        """Now."""
        counts = farm.now(farm.fleet.snapshot).counts
        return cls(
            time.monotonic(),
            counts.tasks_done,
            counts.simulations_done,
            counts.cpu_seconds,
            time.process_time(),
            farm.fleet.traffic.task_bytes,
            farm.fleet.traffic.result_bytes,
        )


def in_a_process_of_its_own(function: Callable[[_Given], _Found], given: _Given) -> _Found:
    """What a function of a module returns, without what earlier ones have left in memory."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context, initializer=_prepare) as pool:
        return pool.submit(function, given).result()


def _prepare() -> None:
    # A thousand workers come and go.
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(WARNING))
    raise_limit_of_files()


def raise_limit_of_files() -> None:
    """Lets this process have as many connections as the system allows it."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


@contextlib.contextmanager
def stand_ins(farm: WorkerFarm, count: int, seconds_per_packet: float) -> Iterator[None]:
    """So many stand-in workers of one thread, in a few processes, all connected."""
    each = -(-count // _PROCESSES)
    started = []
    try:
        for number in range(_PROCESSES):
            flags = {
                "port": farm.port,
                "workers": min(each, count - each * number),
                "name": f"stand-in-{number}",
                "seconds-per-packet": seconds_per_packet,
            }
            words = [f"--{name}={value}" for name, value in flags.items()]
            command = [sys.executable, "-m", "benchmarks.stand_in_process", *words]
            started.append(subprocess.Popen(command, cwd=ROOT))
        farm.wait_for_workers(count)
        yield
    finally:
        for process in started:
            process.kill()
            process.wait()


def largest_resident_bytes() -> int:
    """The largest resident set that this process has had."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError("/proc/self/status does not tell VmHWM")
