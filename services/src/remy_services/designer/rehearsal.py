"""A rehearsal of a joint search: finds out how many steps a budget of CPU time or packets buys.

It is a design that divides a rule after each step, and so makes one step with every size of table
that the real one will have. Driven like a designer: no clock, no I/O.
"""

from __future__ import annotations

from remy_farm.v1 import evaluation_pb2, progress_pb2, spec_pb2
from remy_services.designer.designer import Designer
from remy_services.designer.joint.length_budget import budget_of, steps_within
from remy_services.designer.schedule_length import with_steps

# A rehearsal is cut short when it has used so much of the budget.
_SHARE_OF_BUDGET = 0.05


class Rehearsal:
    """The rehearsal of a specification whose length is given as a budget."""

    def __init__(self, spec: spec_pb2.DesignSpec) -> None:
        self._spec = spec
        # Each division adds a rule at least.
        plan = with_steps(spec, spec.search.joint.maximum_rules)
        plan.ClearField("stop")
        joint = plan.search.joint
        joint.starts, joint.first_split, joint.steps_per_split, joint.fine_share = 1, 1, 1, 0
        joint.steps_per_epoch = joint.steps
        joint.ClearField("tuned_for_specimens")
        self._designer = Designer(plan)
        self._counts_packets = spec.search.joint.HasField("simulated_packets")
        self._budget = budget_of(spec.search.joint)
        self._used = 0.0
        # By the number of divisions before the step.
        self._step_costs: list[float] = []
        self._is_over = False

    def next_request(self) -> evaluation_pb2.EvaluationRequest | None:
        """What to evaluate next; None when the rehearsal is over."""
        return None if self._is_over else self._designer.next_request()

    def receive(self, outcome: evaluation_pb2.EvaluationOutcome, cpu_seconds: float) -> None:
        """Takes the last request's outcome, and the CPU time that it took."""
        step = self._designer.receive(outcome)[0].step_finished
        cost = step.simulated_packets if self._counts_packets else cpu_seconds
        self._used += cost
        if step.purpose == progress_pb2.STEP_PURPOSE_CLIMB:
            # Where nobody ever sends, a step costs a packet all the same.
            self._step_costs.append(max(cost, 1) if self._counts_packets else cost)
            self._is_over = (
                step.rules >= self._spec.search.joint.maximum_rules
                or self._used >= _SHARE_OF_BUDGET * self._budget
            )

    def resolved(self) -> spec_pb2.DesignSpec:
        """The specification with steps in place of the budget, once the rehearsal is over."""
        steps = steps_within(self._spec.search, self._budget, self._step_costs)
        return with_steps(self._spec, steps)
