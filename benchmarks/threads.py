"""What a second thread brings."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass

import remy_simulator
from benchmarks.figure import Figure, Row
from benchmarks.programs import ROOT
from benchmarks.tables import eight_rules
from remy_farm.v1 import evaluation_pb2
from remy_services.evaluation import LocalEvaluator
from remy_services.spec import draw_specimens, load_spec
from remy_simulator.messages import from_native

_SPECIMENS = 64
_SIMULATED_MS = 100_000
_PAIRS = 31

_Run = Callable[[], object]


@dataclass(frozen=True)
class _Seconds:
    """Wall and CPU time of one evaluation."""

    wall: float
    cpu: float


def measure() -> list[Row]:
    """One row for the simulator's own threads, one for those that `remy-farm` runs it on."""
    request = batch()
    with closing(LocalEvaluator(1)) as one, closing(LocalEvaluator(2)) as two:
        return [
            _row(
                "simulator",
                lambda: remy_simulator.evaluate(request, 1),
                lambda: remy_simulator.evaluate(request, 2),
            ),
            _row("remy-farm", lambda: one.evaluate(request), lambda: two.evaluate(request)),
        ]


def batch() -> evaluation_pb2.EvaluationRequest:
    """64 networks of the general-purpose design for 100 s each."""
    spec = load_spec(ROOT / "examples" / "general-purpose-delta1.yaml")
    return evaluation_pb2.EvaluationRequest(
        tables=[from_native(eight_rules())],
        candidates=[evaluation_pb2.Candidate()],
        specimens=draw_specimens(spec, seed=1, count=_SPECIMENS),
        duration_ms=_SIMULATED_MS,
        seed=1,
    )


def _row(name: str, with_one: _Run, with_two: _Run) -> Row:
    with_one()
    with_two()
    pairs = [(_time(with_one), _time(with_two)) for _ in range(_PAIRS)]
    ratios = sorted(one.wall / two.wall for one, two in pairs)
    return {
        "threads of": name,
        "1 thread s": statistics.median(one.wall for one, _ in pairs),
        "2 threads s": statistics.median(two.wall for _, two in pairs),
        "ratio (median)": statistics.median(ratios),
        "lowest": ratios[0],
        "highest": ratios[-1],
        "goal": 1.9,
        "CPU time, 2 over 1": statistics.median(two.cpu / one.cpu for one, two in pairs),
        "CPUs": len(os.sched_getaffinity(0)),
        "load": os.getloadavg()[0],
    }


def _time(run: _Run) -> _Seconds:
    wall, cpu = time.perf_counter(), time.process_time()
    run()
    return _Seconds(time.perf_counter() - wall, time.process_time() - cpu)


FIGURE = Figure(
    name="threads",
    title="Two threads over one",
    method=(
        "Wall time of one evaluation of 64 specimens of examples/general-purpose-delta1.yaml for "
        f"100 s each, with one thread and with two, in turn (A B A B ...); the median of {_PAIRS} "
        "ratios. Anything else that runs lowers it: look at the load, and at the CPU time of both "
        "threads over that of one, which should be 1."
    ),
    measure=measure,
)
