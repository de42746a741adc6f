"""Interfaces of evaluators: Evaluator for one design, SharedEvaluator for many at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from remy_proto.v1 import evaluation_pb2


@dataclass(frozen=True)
class EvaluationProgress:
    """The progress of an evaluation."""

    #: Simulations done, and their total: candidates times specimens.
    simulations_done: int
    simulations: int
    #: Packets sent in the simulations that are done.
    simulated_packets: int


#: Called about ten times a second in the thread that called `evaluate`. If it raises, the
#: evaluation is abandoned and `evaluate` raises the exception.
OnProgress = Callable[[EvaluationProgress], None]


class Evaluator(Protocol):
    """Simulates every candidate of a request on every specimen."""

    def evaluate(
        self, request: evaluation_pb2.EvaluationRequest, on_progress: OnProgress | None = None
    ) -> evaluation_pb2.EvaluationOutcome:
        """Evaluates a request. The outcome is candidate-major, with specimens in request order.

        Raises remy_simulator.InvalidRequest if the simulator refuses the request.
        """

    def close(self) -> None:
        """Frees the evaluator's resources. It must not be used afterwards."""


@dataclass(frozen=True)
class Share:
    """The job that a request belongs to, and its claim on the evaluators."""

    job_id: str
    #: Requests of higher priority go first.
    priority: int = 0
    #: Weight among jobs of equal priority; positive.
    weight: float = 1.0
    #: The step's span in W3C Trace Context format; empty if the step is not traced.
    trace_parent: str = ""
    #: Maximum number of packets that a request may send; None means no limit.
    packet_limit: int | None = None


@dataclass(frozen=True)
class Evaluation:
    """A request's outcome, and what evaluating it took."""

    outcome: evaluation_pb2.EvaluationOutcome
    #: CPU time of the evaluating threads.
    cpu_seconds: float
    #: Names of the workers that took part.
    workers: frozenset[str]


class PacketLimitReached(Exception):
    """The request sends more packets than its limit. The text is one sentence for people."""


class TaskQuarantined(Exception):
    """A task of the request kept killing its workers. The text is one sentence for people."""


class ResultsDiffer(Exception):
    """Workers gave different results for the same task. The text is one sentence for people."""


@dataclass(frozen=True)
class EvaluatorStatus:
    """The workers of an evaluator, and how busy they are."""

    #: Kind of evaluator for people: threads of this process, workers, or a Ray cluster.
    kind: str
    workers: int
    busy_workers: int
    threads: int
    #: Workers that get no more tasks, because they repeatedly sent bad results.
    quarantined_workers: int
    tasks_waiting: int
    tasks_running: int


@dataclass(frozen=True)
class WorkerLine:
    """A line of a worker's log."""

    worker_id: str
    host: str
    #: Time at which the worker wrote it, seconds since 1970.
    unix_seconds: float
    level: str
    text: str


class SharedEvaluator(Protocol):
    """Evaluates the requests of many designs at once, in the event loop of its first evaluation."""

    async def evaluate(
        self,
        share: Share,
        request: evaluation_pb2.EvaluationRequest,
        on_progress: OnProgress | None = None,
    ) -> Evaluation:
        """Evaluates a request. The outcome is candidate-major, with specimens in request order.

        Waits while there are no workers. Cancelling this call withdraws the request. `on_progress`
        is called in the event loop. Raises remy_simulator.InvalidRequest if the simulator refuses
        the request, and PacketLimitReached, TaskQuarantined and ResultsDiffer.
        """

    def status(self) -> EvaluatorStatus:
        """The evaluator's workers, and how busy they are."""

    def worker_lines(self, job_id: str) -> list[WorkerLine]:
        """The most recent log lines of a job's workers, oldest first."""

    async def close(self) -> None:
        """Withdraws all requests and frees the evaluator's resources."""
