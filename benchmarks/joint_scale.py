"""How large a joint search's steps must be to keep a fleet busy, and what crosses the network."""

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
from benchmarks.figure import Figure, Row
from benchmarks.stand_in_farm import Measures, in_a_process_of_its_own, stand_ins
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
    """Designs that go on at once."""

    name: str
    simulated_seconds: float
    jobs: int
    #: Antithetic pairs of each step.
    pairs: int
    workers: int = 200
    #: Steps under way at once.
    in_flight: int = 1
    #: How many lie between two validations.
    steps_per_epoch: int = _NEVER
    #: Where its specification and table are: in absolute units, or scale-free.
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
    """A row for each load."""
    return [in_a_process_of_its_own(row, load) for load in LOADS]


@dataclass
class _Steps:
    """What the drivers of all designs have seen."""

    ended: threading.Event = field(default_factory=threading.Event)
    #: Wall seconds of each step: in all, and of these in the designer.
    seconds: list[tuple[float, float]] = field(default_factory=list)


def row(load: Load) -> Row:
    """What a fleet does for designs with real designers."""
    spec, table = design(load)
    recorded = _seconds_per_packet(spec, table)
    steps = _Steps()
    with (
        ThreadPoolExecutor(load.jobs) as pool,
        WorkerFarm() as farm,
        stand_ins(farm, load.workers, recorded),
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
        seen = list(steps.seconds)
        steps.ended.set()
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
        "s per step": statistics.median(whole for whole, _ in seen) if seen else None,
        "s in the designer": statistics.median(own for _, own in seen) if seen else None,
        "simulations per s": simulations / seconds,
        "coordinator CPUs": (after.cpu_seconds - before.cpu_seconds) / seconds,
        "task bytes per pair": 2 * (after.task_bytes - before.task_bytes) / simulations,
        "result bytes per pair": 2 * (after.result_bytes - before.result_bytes) / simulations,
    }


def design(load: Load) -> tuple[spec_pb2.DesignSpec, RuleTable]:
    """A joint design, and the table that it made to go on from.

    The table grows no more, since stand-ins do not tell what memory values rules see.
    """
    spec = load_spec(load.tables / load.name / "spec.yaml")
    spec.search.simulated_seconds = load.simulated_seconds
    spec.search.specimens = load.pairs
    spec.search.joint.first_split = _NEVER
    spec.search.joint.steps = _NEVER
    spec.search.joint.steps_in_flight = load.in_flight
    spec.search.joint.steps_per_epoch = load.steps_per_epoch
    return spec, read_remycc(load.tables / load.name / "remycc.json").table


def _drive(farm: WorkerFarm, job_id: str, designer: Designer, steps: _Steps) -> None:
    """Makes one step after the other until the farm closes."""
    under_way: dict[int, Future[Evaluation]] = {}

    def begin(request: evaluation_pb2.EvaluationRequest) -> None:
        if id(request) not in under_way:
            under_way[id(request)] = farm.begin(farm.fleet.evaluate(Share(job_id), request))

    with suppress(CancelledError):
        while not steps.ended.is_set():
            began = time.monotonic()
            request = designer.next_request()
            assert request is not None
            begin(request)
            for following in designer.requests_ahead():
                begin(following)
            asked = time.monotonic()
            outcome = under_way.pop(id(request)).result().outcome
            answered = time.monotonic()
            designer.receive(outcome)
            ended = time.monotonic()
            steps.seconds.append((ended - began, (asked - began) + (ended - answered)))


def _seconds_per_packet(spec: spec_pb2.DesignSpec, table: RuleTable) -> float:
    """CPU time of the design's own simulations over what their links could carry."""
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


FIGURE = Figure(
    "joint-scale",
    "How large a joint search's steps must be to keep a fleet busy",
    "Joint designs of tests/data/remyccs-absolute, or of data/remyccs, with "
    "that folder's RemyCC as their first table and with designers as they are, on "
    "stand-in workers of one thread on the same machine, which answer after what it takes for such "
    "simulations. Busy is the share of the workers' time that they say they simulated for. Seconds "
    "of a step are medians, in all and in the designer. Bytes are those of messages, without what "
    "gRPC adds.",
    measure,
)
