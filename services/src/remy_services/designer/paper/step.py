"""The interface of one step of the paper's search."""

from __future__ import annotations

from typing import Protocol

from remy_farm.v1 import evaluation_pb2
from remy_services.designer.paper.context import Context
from remy_services.designer.paper.paper_state import PaperState
from remy_services.designer.strategy import StepReport


class Step(Protocol):
    """A step: what it asks for, and where the search stands after the answer. Pure functions."""

    def request(self, context: Context, state: PaperState) -> evaluation_pb2.EvaluationRequest:
        """What is to be evaluated."""

    def receive(
        self,
        context: Context,
        state: PaperState,
        request: evaluation_pb2.EvaluationRequest,
        outcome: evaluation_pb2.EvaluationOutcome,
    ) -> tuple[PaperState, StepReport]:
        """The next state, and what happened."""
