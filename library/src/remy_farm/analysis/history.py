"""A design's history, which plots and reports show."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from remy_proto.v1 import progress_pb2


@dataclass(frozen=True, slots=True)
class StepPoint:
    """The score, before a step, of the table that it tried to improve."""

    step: int
    visit: int
    """Steps of one visit to a rule share their specimens; visits are counted from 0."""
    score: float
    standard_error: float


@dataclass(frozen=True, slots=True)
class SizePoint:
    """A table's number of rules since a rule was divided, or rules were merged."""

    step: int
    rules: int


@dataclass(slots=True)
class History:
    """A design from its first step to its last, by increasing step."""

    steps: list[StepPoint] = field(default_factory=list)
    epochs: list[progress_pb2.EpochRecord] = field(default_factory=list)
    splits: list[SizePoint] = field(default_factory=list)
    rests: list[tuple[int, int]] = field(default_factory=list)
    """(step at which the climb was found at rest, steps that nothing had moved for)"""
    merges: list[SizePoint] = field(default_factory=list)
    cpu_seconds: list[tuple[int, float]] = field(default_factory=list)
    """(step, CPU-seconds used when it was over), where a clock was read."""
    wall_seconds: float | None = None
    simulated_packets: int = 0
    evaluations: int = 0
    """Simulations of one specimen under one candidate."""
    finished: progress_pb2.DesignFinished | None = None


def collect_history(events: Iterable[progress_pb2.ProgressEvent]) -> History:
    """Sorts the events of a design, in their order, into a history."""
    history = History()
    visit = -1
    was_improving = False
    for event in events:
        if event.HasField("wall_seconds"):
            history.wall_seconds = event.wall_seconds
        match event.WhichOneof("event"):
            case "step_finished":
                done = event.step_finished
                history.simulated_packets += done.simulated_packets
                history.evaluations += done.candidates * done.specimens
                if event.HasField("cpu_seconds"):
                    history.cpu_seconds.append((event.step, event.cpu_seconds))
                is_improving = done.purpose == progress_pb2.STEP_PURPOSE_IMPROVE
                if is_improving:
                    visit += not was_improving
                    if done.HasField("score"):
                        score, error = done.score.mean, done.score.standard_error
                        history.steps.append(StepPoint(event.step, visit, score, error))
                was_improving = is_improving
            case "rule_split":
                history.splits.append(SizePoint(event.step, event.rule_split.rules))
            case "climb_rested":
                history.rests.append((event.step, event.climb_rested.steps))
            case "rules_merged":
                history.merges.append(SizePoint(event.step, event.rules_merged.rules))
            case "epoch_finished":
                history.epochs.append(event.epoch_finished.record)
            case "design_finished":
                history.finished = event.design_finished
    return history
