"""A budget of CPU time or packets as a number of steps, which is all that a design depends on."""

from __future__ import annotations

from collections.abc import Sequence

from remy_farm.v1 import spec_pb2
from remy_services.designer.joint.pace import widening
from remy_services.designer.joint.schedule import Schedule
from remy_services.designer.joint.starts import start_count

_MAXIMUM_STEPS = 10_000_000


def is_by_budget(spec: spec_pb2.DesignSpec) -> bool:
    """Whether the length of the design is given as CPU time or as packets."""
    joint = spec.search.joint
    return spec.search.mode == spec_pb2.SEARCH_MODE_JOINT and (
        joint.HasField("cpu_seconds") or joint.HasField("simulated_packets")
    )


def budget_of(joint: spec_pb2.JointSearch) -> float:
    """The budget of such a design, in packets or in seconds of CPU time."""
    return joint.simulated_packets if joint.HasField("simulated_packets") else joint.cpu_seconds


def steps_within(search: spec_pb2.Search, budget: float, step_costs: Sequence[float]) -> int:
    """The longest climb whose design is expected to cost no more than the budget; at least a step.

    `step_costs` holds the cost, in the budget's unit, of a step of `search.specimens` antithetic
    pairs, with a table that was divided 0, 1, ... times; the last is that of all larger tables.
    """
    if min(step_costs) <= 0:
        raise ValueError(f"a step costs {min(step_costs)}; a positive cost is needed")
    # One step may take the place of several that the settings count.
    most = budget / min(step_costs) * max(widening(search), 1.0)
    low, high = 1, max(1, min(_MAXIMUM_STEPS, int(most)))
    while low < high:
        middle = (low + high + 1) // 2
        if expected_cost(search, middle, step_costs) <= budget:
            low = middle
        else:
            high = middle - 1
    return low


def expected_cost(search: spec_pb2.Search, steps: int, step_costs: Sequence[float]) -> float:
    """What a design costs whose settings say `steps` steps, in the unit of `step_costs`.

    Divisions cost no more than a step or two in all, and are left out, but for their trials.
    """
    planned = spec_pb2.Search()
    planned.CopyFrom(search)
    planned.joint.steps = steps
    schedule = Schedule(planned)
    joint = schedule.search
    # A comparison simulates each of its specimens once, a step each of its own twice.
    validation = joint.validation_specimens / (2 * search.specimens)
    # Every start makes the first steps, and is compared after the last of them.
    starts = start_count(joint)
    tried = min(joint.start_steps, joint.steps) if starts > 1 else 0
    total, splits = step_costs[0] * validation, 0
    for step in range(joint.steps):
        pairs = schedule.settings(step).specimens / search.specimens
        # Each division adds a rule at least.
        if schedule.split_is_due(step, rules=1 + splits):
            splits += 1
            pairs += schedule.trial_specimens / search.specimens
        done = step + 1
        if done == tried or (done > tried and schedule.epoch_is_due(done)):
            pairs += validation
        cost = step_costs[min(splits, len(step_costs) - 1)]
        total += (starts if step < tried else 1) * pairs * cost
    return total
