"""Runs a whole design step by step, and records its events and checkpoints."""

from __future__ import annotations

from collections.abc import Callable

from remy_farm.designer import Designer
from remy_proto.v1 import evaluation_pb2, progress_pb2, spec_pb2
from remy_simulator.messages import from_native

Evaluate = Callable[[evaluation_pb2.EvaluationRequest], evaluation_pb2.EvaluationOutcome]


class RecordedDesign:
    """A finished design, with its events and its checkpoint before every step."""

    def __init__(self, spec: spec_pb2.DesignSpec, evaluate: Evaluate) -> None:
        self.spec = spec
        self.evaluate = evaluate
        designer = Designer(spec)
        self.checkpoints = [designer.checkpoint()]
        self.events: list[progress_pb2.ProgressEvent] = []
        while (request := designer.next_request()) is not None:
            self.events += designer.receive(evaluate(request))
            self.checkpoints.append(designer.checkpoint())
        self.designer = designer
        self.table = table_bytes(designer)
        self.steps = designer.steps

    @property
    def purposes(self) -> list[progress_pb2.StepPurpose]:
        """Purposes of the steps, in order."""
        steps = [event for event in self.events if event.HasField("step_finished")]
        return [event.step_finished.purpose for event in steps]


def table_bytes(designer: Designer) -> bytes:
    """Returns the published table as bytes."""
    return from_native(designer.table).SerializeToString(deterministic=True)


def finish(designer: Designer, evaluate: Evaluate) -> list[progress_pb2.ProgressEvent]:
    """Makes all remaining steps and returns their events."""
    events = []
    while (request := designer.next_request()) is not None:
        events += designer.receive(evaluate(request))
    return events


def make_steps(designer: Designer, evaluate: Evaluate, count: int) -> None:
    """Makes `count` steps of a design that is not finished before."""
    for _ in range(count):
        request = designer.next_request()
        assert request is not None
        designer.receive(evaluate(request))


def specimen_keys(request: evaluation_pb2.EvaluationRequest) -> list[int]:
    """Returns the random-stream key of each specimen of a request."""
    return memoryview(request.specimen_columns.keys).cast("Q").tolist()
