"""The interface of one step of the pattern search."""

from __future__ import annotations

from typing import Protocol

from remy_farm.v1 import evaluation_pb2
from remy_services.designer.pattern.context import Context
from remy_services.designer.pattern.pattern_state import PatternState
from remy_services.designer.strategy import StepReport


class Step(Protocol):
    """A step: what it asks for, and where the search stands after the answer. Pure functions."""

    def request(self, context: Context, state: PatternState) -> evaluation_pb2.EvaluationRequest:
        """What is to be evaluated."""

    def receive(
        self,
        context: Context,
        state: PatternState,
        request: evaluation_pb2.EvaluationRequest,
        outcome: evaluation_pb2.EvaluationOutcome,
    ) -> tuple[PatternState, StepReport]:
        """The next state, and what happened."""
