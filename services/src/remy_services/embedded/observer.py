"""What a design run tells whoever shows it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from remy_farm.v1 import progress_pb2
from remy_simulator import RuleTable


@dataclass(frozen=True)
class RunStarted:
    """A run begins."""

    #: Steps made by earlier runs; 0 for a new design.
    steps: int
    #: Whether there was a checkpoint to resume from.
    resumed: bool


@dataclass(frozen=True)
class StepProgress:
    """Where the running step stands."""

    #: The running step, from 1, and its epoch, from 0.
    step: int
    epoch: int
    #: Rules of the table that the step works on.
    rules: int
    #: Candidates in all, and those that are done on all specimens or would be if simulations ended
    #: candidate by candidate.
    candidates: int
    candidates_done: int
    #: Packets sent in this step's simulations, and a second of this step's wall time.
    simulated_packets: int
    packets_per_second: float
    #: Since the design began, without pauses.
    wall_seconds: float
    cpu_seconds: float
    #: A guess at the wall time left; None where there is nothing to go by.
    eta_seconds: float | None


class Observer(Protocol):
    """Is called in the thread that called `DesignRun.run`; should return at once."""

    def started(self, start: RunStarted) -> None:
        """Before the first step of this run."""

    def progress(self, progress: StepProgress) -> None:
        """Some ten times a second while a step is evaluated."""

    def event(self, event: progress_pb2.ProgressEvent) -> None:
        """The line was added to progress.jsonl; its checkpoint may not have been written yet."""

    def published(self, table: RuleTable, steps: int) -> None:
        """From now on `table` is the one to publish, `steps` steps after the design began; told at
        a run's first event and whenever it changes."""


class SilentObserver:
    """Shows nothing."""

    def started(self, start: RunStarted) -> None:
        pass

    def progress(self, progress: StepProgress) -> None:
        pass

    def event(self, event: progress_pb2.ProgressEvent) -> None:
        pass

    def published(self, table: RuleTable, steps: int) -> None:
        pass
