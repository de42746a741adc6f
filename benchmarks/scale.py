"""How many workers one coordinator keeps busy, and how many tasks it hands out."""

from __future__ import annotations

import asyncio
import contextlib
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.figure import Figure, Row
from benchmarks.programs import ROOT
from benchmarks.tables import eight_rules
from benchmarks.worker_farm import WorkerFarm
from remy_farm.v1 import evaluation_pb2
from remy_services.evaluation import Share
from remy_services.fleet import WorkerFleetSettings
from remy_services.fleet.board import BoardSettings
from remy_simulator.messages import from_native

_PROCESSES = 4
_JOBS = 4
_WARM_UP_SECONDS = 10.0
_MEASURED_SECONDS = 30.0
_SENDERS = 8
# One packet a millisecond: a simulation's expected packets are its milliseconds.
_LINK_RATE_PACKETS_PER_MS = 1.0
_SIMULATED_MS = 100_000.0


@dataclass(frozen=True)
class Load:
    """What stand-ins are asked for."""

    name: str
    workers: int
    #: Recorded, of one simulation.
    simulation_seconds: float
    #: Of a task, at most.
    task_seconds: float


LOADS: Final = (
    Load("1 s tasks", 1000, simulation_seconds=0.1, task_seconds=1.0),
    Load("1 s tasks of shorter simulations", 1000, simulation_seconds=0.02, task_seconds=1.0),
    Load("short tasks", 1000, simulation_seconds=0.1, task_seconds=0.1),
)


def measure() -> list[Row]:
    """A row for each load."""
    return [_row(load) for load in LOADS]


@contextlib.contextmanager
def stand_ins(
    farm: WorkerFarm, count: int, seconds_per_packet: float, processes: int = _PROCESSES
) -> Iterator[None]:
    """So many stand-in workers of one thread, in a few processes, all connected."""
    each = -(-count // processes)
    started = []
    try:
        for number in range(processes):
            workers = min(each, count - each * number)
            command = [sys.executable, "-m", "benchmarks.stand_in_process"]
            flags = {
                "port": farm.port,
                "workers": workers,
                "name": f"stand-in-{number}",
                "seconds-per-packet": seconds_per_packet,
            }
            words = [f"--{name}={value}" for name, value in flags.items()]
            started.append(subprocess.Popen([*command, *words], cwd=ROOT))
        farm.wait_for_workers(count)
        yield
    finally:
        for process in started:
            process.kill()
            process.wait()


def _row(load: Load) -> Row:
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    settings = WorkerFleetSettings(BoardSettings(longest_task_seconds=load.task_seconds))
    seconds_per_packet = load.simulation_seconds / (_LINK_RATE_PACKETS_PER_MS * _SIMULATED_MS)
    with WorkerFarm(settings) as farm, stand_ins(farm, load.workers, seconds_per_packet):
        asking = [farm.begin(_ask_for_ever(farm, f"job-{number}", load)) for number in range(_JOBS)]
        time.sleep(_WARM_UP_SECONDS)
        before, began = _measures(farm), time.monotonic()
        time.sleep(_MEASURED_SECONDS)
        after, seconds = _measures(farm), time.monotonic() - began
        for each in asking:
            each.cancel()
        memory_bytes = _resident_bytes()
    return {
        "load": load.name,
        "workers": load.workers,
        "busy": (after.worker_seconds - before.worker_seconds) / (load.workers * seconds),
        "tasks per s": (after.tasks - before.tasks) / seconds,
        "simulations per s": (after.simulations - before.simulations) / seconds,
        "coordinator CPUs": (after.cpu_seconds - before.cpu_seconds) / seconds,
        "MiB": memory_bytes / 2**20,
    }


@dataclass(frozen=True)
class _Measures:
    tasks: int
    simulations: int
    #: That workers say they simulated for.
    worker_seconds: float
    #: Of this process.
    cpu_seconds: float


def _measures(farm: WorkerFarm) -> _Measures:
    counts = farm.now(farm.fleet.snapshot).counts
    return _Measures(
        counts.tasks_done, counts.simulations_done, counts.cpu_seconds, time.process_time()
    )


async def _ask_for_ever(farm: WorkerFarm, job_id: str, load: Load) -> None:
    """Always one request on the board, and the next one right after it."""
    request = _request(load)
    while True:
        await farm.fleet.evaluate(Share(job_id), request)
        # Others are to have their turn even if everything is there at once.
        await asyncio.sleep(0)


def _request(load: Load) -> evaluation_pb2.EvaluationRequest:
    """Work for all workers for some seconds."""
    simulations = int(load.workers * 8.0 / load.simulation_seconds / _JOBS)
    specimens = [
        evaluation_pb2.Specimen(
            key=key,
            link_rate_packets_per_ms=_LINK_RATE_PACKETS_PER_MS,
            rtt_ms=150.0,
            senders=[
                evaluation_pb2.SenderGroup(
                    count=_SENDERS,
                    traffic=evaluation_pb2.Traffic(
                        exponential_time={"mean_ms": 1000.0}, mean_off_ms=1000.0
                    ),
                )
            ],
        )
        for key in range(simulations // 2)
    ]
    return evaluation_pb2.EvaluationRequest(
        tables=[from_native(eight_rules())],
        candidates=[evaluation_pb2.Candidate(), evaluation_pb2.Candidate()],
        specimens=specimens,
        duration_ms=_SIMULATED_MS,
        seed=1,
        recording=evaluation_pb2.RECORDING_USES,
    )


def _resident_bytes() -> int:
    """The largest resident set that this process has had."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError("/proc/self/status does not tell VmHWM")


FIGURE = Figure(
    "scale",
    "Workers that one coordinator keeps busy",
    f"Stand-in workers of one thread, in {_PROCESSES} processes, speak the real protocol over gRPC "
    "and answer after a recorded time instead of simulating; their results are checked like all "
    f"others. {_JOBS} jobs ask for more all the time, in requests that last some seconds. Busy is "
    "the share of the workers' time that they say they simulated for. CPUs and memory are those of "
    f"the coordinator's process, over {_MEASURED_SECONDS:.0f} s.",
    measure,
)
