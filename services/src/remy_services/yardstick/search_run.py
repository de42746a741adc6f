"""A design whose published tables are measured when it is over."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from remy_farm.v1 import spec_pb2
from remy_services.embedded import DesignResult, DesignRun, SilentObserver
from remy_services.report.trial import Evaluate
from remy_services.yardstick.network import SPECIMENS
from remy_services.yardstick.score import YardstickScore, measure_table
from remy_simulator import RuleTable


@dataclass(frozen=True)
class Published:
    """A table that a design published, and what it had cost."""

    table: RuleTable
    #: Steps made; 0 for the table that a search begins with.
    steps: int
    #: Of the process since the design began: no table has been measured in between.
    cpu_seconds: float
    wall_seconds: float


@dataclass(frozen=True)
class CurvePoint:
    """What a search had reached."""

    seed: int
    steps: int
    rules: int
    cpu_seconds: float
    wall_seconds: float
    score: YardstickScore


@dataclass(frozen=True)
class SearchRun:
    """A design that went to its end."""

    result: DesignResult
    cpu_seconds: float
    wall_seconds: float
    published: tuple[Published, ...]


class _Recorder(SilentObserver):
    """Keeps every table with the time at which it was published."""

    def __init__(self) -> None:
        self._cpu_origin = time.process_time()
        self._wall_origin = time.monotonic()
        self.tables: list[Published] = []

    def elapsed(self) -> tuple[float, float]:
        """CPU-seconds and wall-seconds."""
        return time.process_time() - self._cpu_origin, time.monotonic() - self._wall_origin

    def published(self, table: RuleTable, steps: int) -> None:
        self.tables.append(Published(table, steps, *self.elapsed()))


def run_search(
    spec: spec_pb2.DesignSpec, folder: str | os.PathLike[str], *, threads: int
) -> SearchRun:
    """Designs as `DesignRun` does, and keeps each table that is published on the way.

    Measuring is left for afterwards, so that it takes nothing from the design. The times count
    everything that the design does, also what its budget of CPU time buys being found out. Raises
    KeyboardInterrupt if the run is interrupted, and what DesignRun raises.
    """
    recorder = _Recorder()
    result = DesignRun(spec, folder, threads=threads).run(recorder)
    cpu_seconds, wall_seconds = recorder.elapsed()
    if result.reason is None:
        raise KeyboardInterrupt
    return SearchRun(result, cpu_seconds, wall_seconds, tuple(recorder.tables))


def thinned(tables: Iterable[Published], every: int) -> list[Published]:
    """The tables that are at least `every` steps apart, and the last one."""
    *earlier, last = tables
    kept: list[Published] = []
    for each in earlier:
        if not kept or each.steps >= kept[-1].steps + every:
            kept.append(each)
    return [*kept, last]


def measure_curve(
    run: SearchRun,
    evaluate: Evaluate,
    *,
    every: int = 1,
    delta: float = 1.0,
    specimens: int = SPECIMENS,
) -> Iterator[CurvePoint]:
    """The points of a search's curve, one after the other as they are measured."""
    for each in thinned(run.published, every):
        yield CurvePoint(
            seed=run.result.spec.search.seed,
            steps=each.steps,
            rules=each.table.rule_count,
            cpu_seconds=each.cpu_seconds,
            wall_seconds=each.wall_seconds,
            score=measure_table(each.table, evaluate, delta=delta, specimens=specimens),
        )
