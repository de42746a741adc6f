"""Runs a coordinator's fleet with stand-in workers and reads its counters."""

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

_Argument = TypeVar("_Argument")
_Result = TypeVar("_Result")


@dataclass(frozen=True)
class Measures:
    """A farm's counters at one moment. Differences between two moments are measurements."""

    #: The monotonic clock.
    seconds: float
    tasks: int
    simulations: int
    #: The seconds that workers report as spent simulating.
    worker_seconds: float
    #: The CPU seconds of this process.
    cpu_seconds: float
    #: The bytes of messages that carry tasks, and of those that carry results.
    task_bytes: int
    result_bytes: int

    @classmethod
    def of(cls, farm: WorkerFarm) -> Measures:
        """Reads a farm's counters."""
        counts = farm.call_in_loop(farm.fleet.snapshot).counts
        return cls(
            time.monotonic(),
            counts.tasks_done,
            counts.simulations_done,
            counts.cpu_seconds,
            time.process_time(),
            farm.fleet.traffic.task_bytes,
            farm.fleet.traffic.result_bytes,
        )


def run_in_new_process(function: Callable[[_Argument], _Result], argument: _Argument) -> _Result:
    """Calls a module's function in a new process, whose memory holds nothing from earlier calls."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context, initializer=_prepare) as pool:
        return pool.submit(function, argument).result()


def _prepare() -> None:
    # A thousand workers would log each connection.
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(WARNING))
    raise_limit_of_files()


def raise_limit_of_files() -> None:
    """Raises this process's limit of open files, and so of connections, to the hard limit."""
    hard_limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard_limit, hard_limit))


@contextlib.contextmanager
def stand_ins(farm: WorkerFarm, count: int, seconds_per_packet: float) -> Iterator[None]:
    """Runs `count` connected stand-in workers with one thread each, in a few processes.

    A stand-in answers a task after `seconds_per_packet` for each packet that the links of the
    task's networks could carry in the simulated time.
    """
    per_process = -(-count // _PROCESSES)
    processes = []
    try:
        for number in range(_PROCESSES):
            flags = {
                "port": farm.port,
                "workers": min(per_process, count - per_process * number),
                "name": f"stand-in-{number}",
                "seconds-per-packet": seconds_per_packet,
            }
            arguments = [f"--{name}={value}" for name, value in flags.items()]
            command = [sys.executable, "-m", "benchmarks.stand_in_process", *arguments]
            processes.append(subprocess.Popen(command, cwd=ROOT))
        farm.wait_for_workers(count)
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def peak_resident_bytes() -> int:
    """Returns the maximum resident set size of this process so far."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError("/proc/self/status has no line VmHWM")
