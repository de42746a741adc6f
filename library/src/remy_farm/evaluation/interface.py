"""The interfaces of evaluators: of one design, and of many that share one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from remy_proto.v1 import evaluation_pb2


@dataclass(frozen=True)
class EvaluationProgress:
    """How far the evaluation of one request has come."""

    #: Simulations of one specimen under one candidate, done and in all.
    simulations_done: int
    simulations: int
    #: Packets sent in those that are done.
    simulated_packets: int


#: Called in the thread that called `evaluate`, about ten times a second. What it raises abandons
#: the evaluation and comes out of `evaluate`.
OnProgress = Callable[[EvaluationProgress], None]


class Evaluator(Protocol):
    """Simulates every candidate of a request on every specimen."""

    def evaluate(
        self, request: evaluation_pb2.EvaluationRequest, on_progress: OnProgress | None = None
    ) -> evaluation_pb2.EvaluationOutcome:
        """The request's outcome in columns, candidate-major, specimens in the request's order.

        Raises remy_simulator.InvalidRequest for one that makes no sense.
        """

    def close(self) -> None:
        """Frees what the evaluator holds; it is of no use afterwards."""


@dataclass(frozen=True)
class Share:
    """Whose request it is, and what part of the evaluators it may have."""

    job_id: str
    #: Requests of higher priority go first.
    priority: int = 0
    #: Share among requests of equal priority; positive.
    weight: float = 1.0
    #: Names the step's span (W3C Trace Context); empty if it is not traced.
    trace_parent: str = ""
    #: How many packets a request of it may send; None: as many as it takes.
    packet_limit: int | None = None


@dataclass(frozen=True)
class Evaluation:
    """A request's outcome, and what it took."""

    outcome: evaluation_pb2.EvaluationOutcome
    #: CPU time of the evaluating threads.
    cpu_seconds: float
    #: Names of the workers that took part.
    workers: frozenset[str]


class PacketLimitReached(Exception):
    """The request sends more packets than its share may. One sentence for people."""


class TaskQuarantined(Exception):
    """A part of the request kept ending its workers and was given up. One sentence for people."""


class ResultsDiffer(Exception):
    """Workers gave different results for the same task of a job. One sentence for people."""


@dataclass(frozen=True)
class EvaluatorStatus:
    """Who evaluates, and how busy they are."""

    #: Word for people: threads of this process, workers, or a Ray cluster.
    kind: str
    workers: int
    busy_workers: int
    threads: int
    #: Workers that kept failing, and get no task for a while.
    quarantined_workers: int
    tasks_waiting: int
    tasks_running: int


@dataclass(frozen=True)
class WorkerLine:
    """A line of a worker's log."""

    worker_id: str
    host: str
    #: When the worker wrote it, seconds since 1970.
    unix_seconds: float
    level: str
    text: str


class SharedEvaluator(Protocol):
    """Evaluates the requests of many designs at once, in the event loop it was made in."""

    async def evaluate(
        self,
        share: Share,
        request: evaluation_pb2.EvaluationRequest,
        on_progress: OnProgress | None = None,
    ) -> Evaluation:
        """The request's outcome, candidate-major, specimens in the request's order.

        Waits for as long as there is nobody to evaluate it. Cancelling this call withdraws the
        request. `on_progress` is called in the event loop. Raises remy_simulator.InvalidRequest for
        a request that makes no sense, PacketLimitReached, TaskQuarantined, and ResultsDiffer.
        """

    def status(self) -> EvaluatorStatus:
        """Who evaluates here, and how busy they are."""

    def worker_lines(self, job_id: str) -> list[WorkerLine]:
        """The last lines that a job's workers have reported of their logs, oldest first."""

    async def close(self) -> None:
        """Withdraws all requests and frees what the evaluator holds."""
