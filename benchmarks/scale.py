"""Measures how many workers one coordinator keeps busy, and how many tasks per second it leases."""

from __future__ import annotations

import asyncio
import time
from array import array
from dataclasses import dataclass
from typing import Final

from benchmarks.benchmark import Benchmark, Row
from benchmarks.stand_in_farm import (
    Measures,
    peak_resident_bytes,
    run_in_new_process,
    stand_ins,
)
from benchmarks.tables import eight_rules
from benchmarks.worker_farm import WorkerFarm
from remy_farm.evaluation.interface import Share
from remy_farm.evaluation.scheduler.records import SchedulerSettings
from remy_proto.completion import complete
from remy_proto.v1 import evaluation_pb2, spec_pb2
from remy_services.transport.grpc import WorkerFleetSettings
from remy_simulator.columns import (
    Slice,
    pack_specimens,
    shared_part,
    slice_request,
    specimen_count,
)
from remy_simulator.messages import from_native

_WORKERS = 1000
_JOBS = 4
_WARM_UP_SECONDS = 10.0
_MEASURED_SECONDS = 15.0
_SENDERS = 8
# With one packet per millisecond, a simulation has as many expected packets as milliseconds.
_LINK_RATE_PACKETS_PER_MS = 1.0
_SIMULATED_MS = 100_000.0
# Duration of a request with all workers. Tasks get shorter towards the end of a request.
_SECONDS_PER_REQUEST = 8.0


@dataclass(frozen=True)
class Load:
    """The work that stand-in workers are given."""

    name: str
    #: Duration of one simulation by a stand-in worker.
    simulation_seconds: float
    #: The maximum duration of a task.
    task_seconds: float = 1.0


LOADS: Final = (
    Load("1 s tasks of one simulation", simulation_seconds=1.0),
    Load("tasks of up to 1 s, simulations of 0.1 s", simulation_seconds=0.1),
    Load("tasks of up to 1 s, simulations of 0.02 s", simulation_seconds=0.02),
    Load("tasks of up to 1 s, simulations of 1.6 ms", simulation_seconds=0.0016),
    Load("0.1 s tasks of one simulation", simulation_seconds=0.1, task_seconds=0.1),
)


def measure() -> list[Row]:
    """Returns one row per load."""
    return [run_in_new_process(row, load) for load in LOADS]


def row(load: Load) -> Row:
    """Measures a fleet under a load."""
    settings = WorkerFleetSettings(SchedulerSettings(longest_task_seconds=load.task_seconds))
    seconds_per_packet = load.simulation_seconds / (_LINK_RATE_PACKETS_PER_MS * _SIMULATED_MS)
    request = _request(load)
    with WorkerFarm(settings) as farm, stand_ins(farm, _WORKERS, seconds_per_packet):
        jobs = [
            farm.begin(_request_forever(farm, f"job-{number}", request, (number + 1) / _JOBS))
            for number in range(_JOBS)
        ]
        time.sleep(_WARM_UP_SECONDS)
        before = Measures.of(farm)
        time.sleep(_MEASURED_SECONDS)
        after = Measures.of(farm)
        for job in jobs:
            job.cancel()
        peak_bytes = peak_resident_bytes()
    seconds = after.seconds - before.seconds
    worker_seconds = after.worker_seconds - before.worker_seconds
    tasks = after.tasks - before.tasks
    return {
        "load": load.name,
        "busy": worker_seconds / (_WORKERS * seconds),
        "s per task": worker_seconds / tasks,
        "tasks per s": tasks / seconds,
        "simulations per s": (after.simulations - before.simulations) / seconds,
        "coordinator CPUs": (after.cpu_seconds - before.cpu_seconds) / seconds,
        "MiB": peak_bytes / 2**20,
    }


async def _request_forever(
    farm: WorkerFarm, job_id: str, request: evaluation_pb2.EvaluationRequest, first_share: float
) -> None:
    """Evaluates the request again and again, until it is cancelled.

    The first request is a fraction, `first_share`, of the others, so that the jobs' requests do not
    end at the same time.
    """
    part = shared_part(request)
    some = Slice(range(2), range(int(specimen_count(request) * first_share)))
    part.MergeFrom(slice_request(request, some))
    await farm.fleet.evaluate(Share(job_id), part)
    while True:
        await farm.fleet.evaluate(Share(job_id), request)
        # Yields to other jobs even if the outcome is available at once.
        await asyncio.sleep(0)


def _request(load: Load) -> evaluation_pb2.EvaluationRequest:
    """Returns a request that keeps a job's share of the workers busy for _SECONDS_PER_REQUEST."""
    simulations = int(_WORKERS * _SECONDS_PER_REQUEST / load.simulation_seconds / _JOBS)
    specimens = simulations // 2
    one = evaluation_pb2.Specimen(
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
    # One specimen is repeated in its packed form, because that many messages would dominate memory.
    columns = pack_specimens([one])
    columns.keys = array("Q", range(specimens)).tobytes()
    columns.link_rates_packets_per_ms *= specimens
    columns.rtts_ms *= specimens
    columns.sender_counts.extend(columns.sender_counts[:] * (specimens - 1))
    return evaluation_pb2.EvaluationRequest(
        objective=complete(spec_pb2.Objective()),
        tables=[from_native(eight_rules())],
        candidates=[evaluation_pb2.Candidate(), evaluation_pb2.Candidate()],
        specimen_columns=columns,
        duration_ms=_SIMULATED_MS,
        seed=1,
        recording=evaluation_pb2.RECORDING_USED,
    )


BENCHMARK = Benchmark(
    "scale",
    "Workers that one coordinator keeps busy",
    f"{_WORKERS:,} stand-in workers with one thread each, in four processes on the same machine, "
    "use the real protocol over gRPC and answer after a fixed time instead of simulating; their "
    f"results are checked like all others. Each of {_JOBS} jobs always has a request pending, and "
    f"a request takes about {_SECONDS_PER_REQUEST:.0f} s. Busy is the fraction of the workers' "
    "time that they report as spent simulating. CPUs and peak resident memory are those of the "
    f"coordinator's process, a new one per load, over {_MEASURED_SECONDS:.0f} s.",
    measure,
)
