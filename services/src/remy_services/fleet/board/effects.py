"""What a board hands out: everything that is to be done because of what it was told."""

from __future__ import annotations

from dataclasses import dataclass, field

from remy_farm.v1 import evaluation_pb2
from remy_services.evaluation import Share
from remy_services.evaluation.partition import Task as Slice


@dataclass(frozen=True, slots=True)
class Assignment:
    """A worker is to do a task."""

    worker_id: str
    lease_id: int
    #: Whose it is.
    share: Share
    evaluation_id: int
    slice: Slice
    #: All of the evaluation's request; the task is the slice of it.
    whole: evaluation_pb2.EvaluationRequest


@dataclass(frozen=True, slots=True)
class Completion:
    """An evaluation is done."""

    #: The outcomes of slices that cover the request once.
    parts: list[tuple[Slice, evaluation_pb2.EvaluationOutcome]]
    cpu_seconds: float
    workers: frozenset[str]


@dataclass(frozen=True, slots=True)
class Refusal:
    """An evaluation failed because the simulator refuses it. One sentence."""

    why: str


@dataclass(frozen=True, slots=True)
class Quarantine:
    """An evaluation failed because a part of it kept ending its workers."""

    #: That part as a request of its own, to reproduce it with.
    request: evaluation_pb2.EvaluationRequest
    workers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Contradiction:
    """A job failed because workers gave different answers to one of its tasks. One sentence."""

    why: str


@dataclass(slots=True)
class Effects:
    """In any order, except that a task is assigned before it is cancelled."""

    assignments: list[Assignment] = field(default_factory=list)
    #: By worker: leases whose answers nobody waits for any more.
    cancelled: dict[str, list[int]] = field(default_factory=dict)
    #: By worker that gets no more tasks: why, in one sentence.
    expelled: dict[str, str] = field(default_factory=dict)
    #: By evaluation: how it ended.
    ended: dict[int, Completion | Refusal | Quarantine | Contradiction] = field(
        default_factory=dict
    )
