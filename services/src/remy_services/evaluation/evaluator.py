"""The interface of an evaluator."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from remy_farm.v1 import evaluation_pb2


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
        """The request's outcome, candidate-major, specimens in the request's order.

        Raises remy_simulator.InvalidRequest for one that makes no sense.
        """

    def close(self) -> None:
        """Frees what the evaluator holds; it is of no use afterwards."""
