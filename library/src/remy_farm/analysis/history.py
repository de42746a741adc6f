"""Collects a design's history from its events, for plots and reports."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from remy_proto.v1 import progress_pb2


@dataclass(frozen=True, slots=True)
class StepPoint:
    """The score of the table before a step that improves a rule."""

    step: int
    visit: int
    """Number, from 0, of the visit to a rule; steps of one visit share their specimens."""
    score: float
    standard_error: float


@dataclass(frozen=True, slots=True)
class SizePoint:
    """The number of rules after a split or a merge."""

    step: int
    rules: int


@dataclass(slots=True)
class History:
    """The history of a design; every list is in order of the steps."""

    steps: list[StepPoint] = field(default_factory=list)
    epochs: list[progress_pb2.EpochRecord] = field(default_factory=list)
    splits: list[SizePoint] = field(default_factory=list)
    stalls: list[tuple[int, int]] = field(default_factory=list)
    """(step at which the climb reported a stall, number of steps without movement before it)"""
    merges: list[SizePoint] = field(default_factory=list)
    cpu_seconds: list[tuple[int, float]] = field(default_factory=list)
    """(step, CPU time in seconds after it), for steps whose event has a time."""
    wall_seconds: float | None = None
    simulated_packets: int = 0
    evaluations: int = 0
    """Number of simulations, each of one specimen under one candidate."""
    finished: progress_pb2.DesignFinished | None = None


def collect_history(events: Iterable[progress_pb2.ProgressEvent]) -> History:
    """Collects the events of a design, in their order, into a history."""
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
                history.stalls.append((event.step, event.climb_rested.steps))
            case "rules_merged":
                history.merges.append(SizePoint(event.step, event.rules_merged.rules))
            case "epoch_finished":
                history.epochs.append(event.epoch_finished.record)
            case "design_finished":
                history.finished = event.design_finished
    return history
