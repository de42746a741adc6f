"""What a design did, as far as its plots and tables show it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from remy_farm.v1 import progress_pb2


@dataclass(frozen=True, slots=True)
class StepPoint:
    """The score, before a step, of the table that it tried to improve."""

    step: int
    visit: int
    """Steps of one visit to a rule share their specimens; visits are counted from 0."""
    score: float
    standard_error: float


@dataclass(frozen=True, slots=True)
class EpochPoint:
    """One epoch's end."""

    step: int
    record: progress_pb2.EpochRecord


@dataclass(frozen=True, slots=True)
class SplitPoint:
    """A rule was divided."""

    step: int
    rules: int


@dataclass(frozen=True, slots=True)
class History:
    """A design from its first step to its last, by increasing step."""

    steps: Sequence[StepPoint]
    epochs: Sequence[EpochPoint]
    splits: Sequence[SplitPoint]
    cpu_seconds: Sequence[tuple[int, float]]
    """(step, CPU-seconds used when it was over), where a clock was read."""
    wall_seconds: float | None
    simulated_packets: int
    evaluations: int
    """Simulations of one specimen under one candidate."""
    finished: progress_pb2.DesignFinished | None


def collect_history(events: Iterable[progress_pb2.ProgressEvent]) -> History:
    """Sorts the events of a design, in their order, into a history."""
    steps: list[StepPoint] = []
    epochs: list[EpochPoint] = []
    splits: list[SplitPoint] = []
    cpu_seconds: list[tuple[int, float]] = []
    wall_seconds: float | None = None
    simulated_packets = 0
    evaluations = 0
    finished: progress_pb2.DesignFinished | None = None
    visit = -1
    was_improving = False
    for event in events:
        if event.HasField("wall_seconds"):
            wall_seconds = event.wall_seconds
        match event.WhichOneof("event"):
            case "step_finished":
                done = event.step_finished
                simulated_packets += done.simulated_packets
                evaluations += done.candidates * done.specimens
                if event.HasField("cpu_seconds"):
                    cpu_seconds.append((event.step, event.cpu_seconds))
                is_improving = done.purpose == progress_pb2.STEP_PURPOSE_IMPROVE
                if is_improving:
                    visit += not was_improving
                    if done.HasField("score"):
                        error = done.score.standard_error
                        steps.append(StepPoint(event.step, visit, done.score.mean, error))
                was_improving = is_improving
            case "rule_split":
                splits.append(SplitPoint(event.step, event.rule_split.rules))
            case "epoch_finished":
                epochs.append(EpochPoint(event.step, event.epoch_finished.record))
            case "design_finished":
                finished = event.design_finished
    return History(
        steps=steps,
        epochs=epochs,
        splits=splits,
        cpu_seconds=cpu_seconds,
        wall_seconds=wall_seconds,
        simulated_packets=simulated_packets,
        evaluations=evaluations,
        finished=finished,
    )
