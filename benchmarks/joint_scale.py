"""Measures how large a joint search's steps must be to keep a fleet of workers busy."""

from __future__ import annotations

import statistics
import threading
import time
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import remy_simulator
from benchmarks.benchmark import Benchmark, Row
from benchmarks.stand_in_farm import Measures, run_in_new_process, stand_ins
from benchmarks.tables import ABSOLUTE, EXAMPLES
from benchmarks.worker_farm import WorkerFarm
from remy_farm.designer import Designer
from remy_farm.evaluation.interface import Evaluation, Share
from remy_farm.remycc import read_remycc
from remy_farm.specification import load_spec
from remy_proto.v1 import evaluation_pb2, spec_pb2
from remy_simulator import RuleTable

_WARM_UP_SECONDS = 10.0
_MEASURED_SECONDS = 30.0
_NEVER = 10_000_000


@dataclass(frozen=True)
class Load:
    """Concurrent joint designs and the fleet that evaluates for them."""

    name: str
    simulated_seconds: float
    jobs: int
    #: Antithetic pairs per step.
    pairs: int
    workers: int = 200
    #: Steps that are evaluated concurrently.
    in_flight: int = 1
    #: Steps between two validations.
    steps_per_epoch: int = _NEVER
    #: The directory of its specification and table, in absolute units or scale-free.
    tables: Path = ABSOLUTE


LOADS: Final = (
    Load("datacenter", 5, jobs=1, pairs=500),
    Load("datacenter", 5, jobs=1, pairs=2_000),
    Load("datacenter", 5, jobs=1, pairs=8_000),
    Load("datacenter", 5, jobs=4, pairs=2_000),
    Load("datacenter", 10, jobs=1, pairs=8_000),
    Load("general-purpose-delta1", 30, jobs=1, pairs=8_000),
    Load("general-purpose-delta1", 30, jobs=1, pairs=32_000, workers=150),
    Load("general-purpose-delta1", 30, jobs=1, pairs=96_000, workers=150),
    Load("general-purpose-delta1", 30, jobs=1, pairs=32_000, workers=150, tables=EXAMPLES),
    Load("general-purpose-delta1", 30, jobs=1, pairs=96_000, workers=150, tables=EXAMPLES),
    *(
        Load(
            "general-purpose-delta1",
            30,
            jobs=1,
            pairs=pairs,
            workers=150,
            in_flight=in_flight,
            steps_per_epoch=steps_per_epoch,
            tables=EXAMPLES,
        )
        for pairs, in_flight, steps_per_epoch in (
            (8_000, 1, 25),
            (8_000, 2, 25),
            (2_196, 2, 25),
            (4_392, 2, 25),
            (500, 8, 100),
        )
    ),
)


def measure() -> list[Row]:
    """Returns one row per load."""
    return [run_in_new_process(row, load) for load in LOADS]


@dataclass
class _StepTimes:
    """The durations of all designs' steps, shared by the threads that drive these designs."""

    stop: threading.Event = field(default_factory=threading.Event)
    #: Wall seconds of each step: in total, and in the designer.
    seconds: list[tuple[float, float]] = field(default_factory=list)


def row(load: Load) -> Row:
    """Measures a fleet of stand-in workers that serves real designers."""
    spec, table = design(load)
    seconds_per_packet = _seconds_per_packet(spec, table)
    steps = _StepTimes()
    with (
        ThreadPoolExecutor(load.jobs) as pool,
        WorkerFarm() as farm,
        stand_ins(farm, load.workers, seconds_per_packet),
    ):
        for number in range(load.jobs):
            spec.search.seed = number + 1
            job = spec_pb2.DesignSpec()
            job.CopyFrom(spec)
            pool.submit(_drive, farm, f"job-{number}", Designer(job, first_table=table), steps)
        time.sleep(_WARM_UP_SECONDS)
        steps.seconds.clear()
        before = Measures.of(farm)
        time.sleep(_MEASURED_SECONDS)
        after = Measures.of(farm)
        step_seconds = list(steps.seconds)
        steps.stop.set()
    seconds = after.seconds - before.seconds
    worker_seconds = after.worker_seconds - before.worker_seconds
    simulations = after.simulations - before.simulations
    return {
        "design": load.name,
        "edition": spec.edition,
        "simulated s": load.simulated_seconds,
        "designs": load.jobs,
        "pairs a step": load.pairs,
        "steps in flight": load.in_flight,
        "steps per epoch": load.steps_per_epoch if load.steps_per_epoch < _NEVER else None,
        "workers": load.workers,
        "ms per simulation": 1000 * worker_seconds / simulations,
        "busy": worker_seconds / (load.workers * seconds),
        "s per step": statistics.median(total for total, _ in step_seconds)
        if step_seconds
        else None,
        "s in the designer": statistics.median(own for _, own in step_seconds)
        if step_seconds
        else None,
        "simulations per s": simulations / seconds,
        "coordinator CPUs": (after.cpu_seconds - before.cpu_seconds) / seconds,
        "task bytes per pair": 2 * (after.task_bytes - before.task_bytes) / simulations,
        "result bytes per pair": 2 * (after.result_bytes - before.result_bytes) / simulations,
    }


def design(load: Load) -> tuple[spec_pb2.DesignSpec, RuleTable]:
    """Returns a joint design's specification, and the table that it starts from.

    The table does not grow: stand-ins report no memory values, which choose the rules to divide.
    """
    spec = load_spec(load.tables / load.name / "spec.yaml")
    spec.search.simulated_seconds = load.simulated_seconds
    spec.search.specimens = load.pairs
    spec.search.joint.first_split = _NEVER
    spec.search.joint.steps = _NEVER
    spec.search.joint.steps_in_flight = load.in_flight
    spec.search.joint.steps_per_epoch = load.steps_per_epoch
    return spec, read_remycc(load.tables / load.name / "remycc.json").table


def _drive(farm: WorkerFarm, job_id: str, designer: Designer, steps: _StepTimes) -> None:
    """Makes one step after another until `steps.stop` is set or the farm closes."""
    in_flight: dict[int, Future[Evaluation]] = {}

    def submit(request: evaluation_pb2.EvaluationRequest) -> None:
        if id(request) not in in_flight:
            in_flight[id(request)] = farm.begin(farm.fleet.evaluate(Share(job_id), request))

    with suppress(CancelledError):
        while not steps.stop.is_set():
            started = time.monotonic()
            request = designer.next_request()
            assert request is not None
            submit(request)
            for following in designer.requests_ahead():
                submit(following)
            submitted = time.monotonic()
            outcome = in_flight.pop(id(request)).result().outcome
            evaluated = time.monotonic()
            designer.receive(outcome)
            ended = time.monotonic()
            steps.seconds.append((ended - started, (submitted - started) + (ended - evaluated)))


def _seconds_per_packet(spec: spec_pb2.DesignSpec, table: RuleTable) -> float:
    """Measures the CPU seconds of simulating a packet, at full utilization of the links."""
    small = spec_pb2.DesignSpec()
    small.CopyFrom(spec)
    small.search.specimens = 64
    request = Designer(small, first_table=table).next_request()
    assert request is not None
    began = time.thread_time()
    remy_simulator.evaluate_columns(request)
    seconds = time.thread_time() - began
    rates = sum(memoryview(request.specimen_columns.link_rates_packets_per_ms).cast("d"))
    return seconds / (rates * request.duration_ms * len(request.candidates))


BENCHMARK = Benchmark(
    "joint-scale",
    "Step size that keeps a fleet busy in a joint search",
    "Joint designs of tests/data/remyccs-absolute or data/remyccs start from that directory's "
    "RemyCC. The designers are real; the workers are stand-ins with one thread each on the same "
    "machine, which simulate nothing and answer after as long as the simulations would take. Busy "
    "is the fraction of the workers' time that they report as spent simulating. Seconds per step "
    "are medians, in total and in the designer. Bytes are message sizes without gRPC's framing.",
    measure,
)
