"""What the steps of the joint search share: the context, the state and its message."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from remy_farm.v1 import checkpoint_pb2, evaluation_pb2, progress_pb2, spec_pb2
from remy_services.designer.actions import first_table
from remy_services.designer.joint.climb import Climb
from remy_services.designer.joint.divisions import Trials, from_messages, to_messages
from remy_services.designer.joint.schedule import Schedule, start_count
from remy_services.designer.scoring import CheckpointError
from remy_services.designer.strategy import (
    NO_EFFORT,
    Effort,
    StepReport,
    StrategyContext,
    Validated,
)
from remy_simulator import RuleTable

# What the steps of the joint search have in common.


@dataclass(frozen=True)
class Context(StrategyContext):
    """What a design fixes for all of its steps."""

    schedule: Schedule
    #: Begins the only climb, in place of the starts.
    given: RuleTable | None = None

    @property
    def search(self) -> spec_pb2.JointSearch:
        """The settings as they are followed."""
        return self.schedule.search

    @property
    def starts(self) -> int:
        """How many climbs are begun."""
        return start_count(self.search) if self.given is None else 1

    def is_trying_starts(self, start: int) -> bool:
        """Whether start number `start` is one of the short climbs. A single one has no rival, and
        simply goes on."""
        return start < self.starts > 1

    def first_climb(self, start: int) -> Climb:
        """The climb of start number `start` before its first step."""
        table = self.given or first_table(self.spec, self.space, start)
        return Climb.start(table, self.space)


# Where the joint search stands: a value, and its message.


_PURPOSES = (
    progress_pb2.STEP_PURPOSE_CLIMB,
    progress_pb2.STEP_PURPOSE_SPLIT,
    progress_pb2.STEP_PURPOSE_TRY_SPLITS,
    progress_pb2.STEP_PURPOSE_VALIDATE,
)


@dataclass(frozen=True)
class JointState:
    """The state between two steps."""

    #: What the next step is for.
    purpose: progress_pb2.StepPurpose
    #: The climb under way.
    climb: Climb
    #: Divisions of its rules to be tried in the next step, if that is what it is for.
    trials: Trials = ()
    #: The best table so far; None before the first validation.
    best: Validated | None = None
    #: The global epoch.
    epoch: int = 0
    #: Number of the start being tried; the number of all of them when that is over.
    start: int = 0
    #: The best of the short climbs that are over, and its score.
    best_start: Climb | None = None
    best_start_score: float = -math.inf
    #: What this epoch has cost.
    effort: Effort = NO_EFFORT

    def next_epoch(self) -> JointState:
        return replace(self, epoch=self.epoch + 1, effort=NO_EFFORT)

    def to_message(self) -> checkpoint_pb2.JointSearchState:
        return checkpoint_pb2.JointSearchState(
            purpose=self.purpose,
            epoch=self.epoch,
            best=self.best.to_message() if self.best else None,
            start=self.start,
            climb=self.climb.to_message(),
            trials=to_messages(self.trials),
            best_start=self.best_start.to_message() if self.best_start else None,
            best_start_score=self.best_start_score if self.best_start else None,
            evaluations=self.effort.evaluations,
            simulated_packets=self.effort.simulated_packets,
        )

    @classmethod
    def from_message(cls, message: checkpoint_pb2.JointSearchState) -> JointState:
        """The inverse. Raises CheckpointError for what `to_message` never writes."""
        has_best, has_start = message.HasField("best"), message.HasField("best_start")
        begins = message.purpose == progress_pb2.STEP_PURPOSE_VALIDATE
        if message.purpose not in _PURPOSES or not (has_best or begins):
            raise CheckpointError("the checkpoint names a step that the joint search never makes")
        if bool(message.trials) != (message.purpose == progress_pb2.STEP_PURPOSE_TRY_SPLITS):
            raise CheckpointError(
                "the checkpoint holds divisions on trial that no step is to try, or the reverse"
            )
        if has_start != message.HasField("best_start_score"):
            raise CheckpointError("the checkpoint holds a climb without its score, or the reverse")
        climb = Climb.from_message(message.climb)
        return cls(
            purpose=message.purpose,
            climb=climb,
            trials=from_messages(message.trials, climb.table),
            best=Validated.from_message(message.best) if has_best else None,
            epoch=message.epoch,
            start=message.start,
            best_start=Climb.from_message(message.best_start) if has_start else None,
            best_start_score=message.best_start_score if has_start else -math.inf,
            effort=Effort(message.evaluations, message.simulated_packets),
        )


# The interface of one step of the joint search.


class Step(Protocol):
    """A step: what it asks for, and where the search stands after the answer. Pure functions."""

    def request(self, context: Context, state: JointState) -> evaluation_pb2.EvaluationRequest:
        """What is to be evaluated."""

    def receive(
        self,
        context: Context,
        state: JointState,
        request: evaluation_pb2.EvaluationRequest,
        outcome: evaluation_pb2.EvaluationOutcome,
    ) -> tuple[JointState, StepReport]:
        """The next state, and what happened."""


# Antithetic pairs: all rules perturbed one way and the opposite way.
#
# Both of a pair run on the same specimen under the same random streams, so that nearly all of what
# differs between them is what the perturbation did (common random numbers).


Scores = Sequence[float | None]


def pair_request(
    context: Context,
    purpose: progress_pb2.StepPurpose,
    *path: int,
    table: RuleTable,
    perturbation: float,
    specimens: int,
) -> evaluation_pb2.EvaluationRequest:
    """A pair on each of so many fresh specimens; `purpose` and `path` name all that is drawn.

    `perturbation` is the standard deviation by which the coordinates of all actions are moved.
    """
    seed = context.streams.simulation_seed(purpose, *path)
    return context.request(
        purpose,
        *path,
        table=table,
        candidates=[
            evaluation_pb2.Candidate(
                perturbation=evaluation_pb2.Perturbation(
                    seed=seed, scale=scale, bounds=context.space.bounds
                )
            )
            for scale in (perturbation, -perturbation)
        ],
        specimens=context.streams.specimens(purpose, *path, count=specimens, stratified=True),
        recording=evaluation_pb2.RECORDING_USES,
    )


def half_differences(up: Scores, down: Scores) -> list[float | None]:
    """Half the difference of each pair's scores; None where one could not be scored."""
    return [
        None if plus is None or minus is None else (plus - minus) / 2
        for plus, minus in zip(up, down, strict=True)
    ]


def middles(up: Scores, down: Scores) -> list[float]:
    """The mean of each pair's scores, where both could be scored."""
    return [
        (plus + minus) / 2
        for plus, minus in zip(up, down, strict=True)
        if plus is not None and minus is not None
    ]
