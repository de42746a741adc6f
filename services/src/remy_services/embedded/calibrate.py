"""A budget of CPU time or packets as a number of steps, measured on this process."""

from __future__ import annotations

import time

from remy_farm.v1 import spec_pb2
from remy_services.designer.joint.length_budget import is_by_budget
from remy_services.designer.rehearsal import Rehearsal
from remy_services.evaluation import Evaluator, OnProgress


def resolve_budget(
    spec: spec_pb2.DesignSpec, evaluator: Evaluator, on_progress: OnProgress | None = None
) -> spec_pb2.DesignSpec:
    """The specification with `search.joint.steps` in place of a budget of CPU time or packets.

    One without such a budget is returned as it is. The evaluator must work in this process, whose
    CPU time is what counts. `on_progress` is called as by the evaluator; what it raises comes out.
    """
    if not is_by_budget(spec):
        return spec
    rehearsal = Rehearsal(spec)
    before = time.process_time()
    while (request := rehearsal.next_request()) is not None:
        outcome = evaluator.evaluate(request, on_progress)
        now = time.process_time()
        rehearsal.receive(outcome, now - before)
        before = now
    return rehearsal.resolved()
