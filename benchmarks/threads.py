"""Measures the speed-up of a second thread."""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass

import remy_simulator
from benchmarks.benchmark import Benchmark, Row
from benchmarks.programs import REMY_FARM, ROOT
from benchmarks.tables import eight_rules
from remy_farm.evaluation.local import LocalEvaluator
from remy_farm.specification import Networks, load_spec
from remy_proto.v1 import evaluation_pb2
from remy_simulator.columns import unpack_specimens
from remy_simulator.messages import from_native

_SPECIMENS = 64
_SIMULATED_MS = 100_000
_PAIRS = 31
_DESIGN_PAIRS = 2

_Run = Callable[[], object]


@dataclass(frozen=True)
class _Seconds:
    """The wall and CPU seconds of one run."""

    wall: float
    cpu: float


def measure() -> list[Row]:
    """Returns three rows: the simulator's own threads, the evaluator's threads, a whole design."""
    request = batch()
    remy_simulator.evaluate_columns(request, 1)
    with closing(LocalEvaluator(1)) as one, closing(LocalEvaluator(2)) as two:
        return [
            _row(
                "simulator",
                _PAIRS,
                1.9,
                lambda: remy_simulator.evaluate_columns(request, 1),
                lambda: remy_simulator.evaluate_columns(request, 2),
            ),
            _row(
                "remy-farm",
                _PAIRS,
                1.9,
                lambda: one.evaluate(request),
                lambda: two.evaluate(request),
            ),
            _row("a whole design", _DESIGN_PAIRS, 1.85, lambda: _design(1), lambda: _design(2)),
        ]


def batch() -> evaluation_pb2.EvaluationRequest:
    """Returns a request for 64 networks of the general-purpose design, 100 s each."""
    spec = load_spec(ROOT / "examples" / "general-purpose-delta1.yaml")
    return evaluation_pb2.EvaluationRequest(
        tables=[from_native(eight_rules())],
        candidates=[evaluation_pb2.Candidate()],
        specimens=unpack_specimens(Networks(spec).draw(seed=1, count=_SPECIMENS)),
        duration_ms=_SIMULATED_MS,
        seed=1,
    )


def _design(threads: int) -> None:
    """Runs the demo's design as a command, from its start to the last file of its report."""
    with tempfile.TemporaryDirectory() as folder:
        flags = ["--out", folder, "--threads", str(threads), "--quiet"]
        command = [str(REMY_FARM), "design", str(ROOT / "examples" / "demo.yaml"), *flags]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def _row(name: str, count: int, goal: float, with_one: _Run, with_two: _Run) -> Row:
    pairs = [(_time(with_one), _time(with_two)) for _ in range(count)]
    ratios = sorted(one.wall / two.wall for one, two in pairs)
    return {
        "threads of": name,
        "1 thread s": statistics.median(one.wall for one, _ in pairs),
        "2 threads s": statistics.median(two.wall for _, two in pairs),
        "ratio (median)": statistics.median(ratios),
        "minimum": ratios[0],
        "maximum": ratios[-1],
        "goal": goal,
        "CPU time, 2 over 1": statistics.median(two.cpu / one.cpu for one, two in pairs),
        "CPUs": len(os.sched_getaffinity(0)),
        "load": os.getloadavg()[0],
    }


def _time(run: _Run) -> _Seconds:
    wall, cpu = time.perf_counter(), _cpu_seconds()
    run()
    return _Seconds(time.perf_counter() - wall, _cpu_seconds() - cpu)


def _cpu_seconds() -> float:
    """Returns the CPU seconds of this process and of its finished children."""
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


BENCHMARK = Benchmark(
    name="threads",
    title="Two threads over one",
    method=(
        "Wall time of one evaluation of 64 specimens of examples/general-purpose-delta1.yaml for "
        f"100 s each, alternately with one thread and with two (A B A B ...); the median of "
        f"{_PAIRS} ratios. The command that makes the demo is timed in the same way, "
        f"{_DESIGN_PAIRS} times each, with its start, checkpoints and report. Other programs "
        "lower the ratio: watch the load average, and the ratio of CPU times, which should be 1."
    ),
    measure=measure,
)
