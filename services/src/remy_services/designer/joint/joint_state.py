"""Where the joint search stands: a value, and its message."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from remy_farm.v1 import checkpoint_pb2, progress_pb2
from remy_services.designer.effort import NO_EFFORT, Effort
from remy_services.designer.errors import CheckpointError
from remy_services.designer.joint.climb import Climb
from remy_services.designer.joint.trials import Trials, from_messages, to_messages
from remy_services.designer.validation import Validated

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
