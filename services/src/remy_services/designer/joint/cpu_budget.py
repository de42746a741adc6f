"""A budget of CPU time as a number of steps, so that a design never depends on a clock."""

from __future__ import annotations

from collections.abc import Sequence

from remy_farm.v1 import spec_pb2
from remy_services.designer.joint.pace import widening
from remy_services.designer.joint.schedule import Schedule
from remy_services.designer.joint.starts import start_count

_MAXIMUM_STEPS = 10_000_000


def is_by_cpu_time(spec: spec_pb2.DesignSpec) -> bool:
    """Whether the length of the design is given as CPU time."""
    search = spec.search
    return search.mode == spec_pb2.SEARCH_MODE_JOINT and search.joint.HasField("cpu_seconds")


def steps_within(search: spec_pb2.Search, cpu_seconds: float, step_seconds: Sequence[float]) -> int:
    """The longest climb whose design is expected to take `cpu_seconds`; at least one step.

    `step_seconds` holds the CPU time of a step of `search.specimens` antithetic pairs, with a table
    that was divided 0, 1, ... times; the last is that of all larger tables.
    """
    if min(step_seconds) <= 0:
        raise ValueError(f"a step takes {min(step_seconds)} s; a positive time is needed")
    # One step may take the place of several that the settings count.
    most = cpu_seconds / min(step_seconds) * max(widening(search), 1.0)
    low, high = 1, max(1, min(_MAXIMUM_STEPS, int(most)))
    while low < high:
        middle = (low + high + 1) // 2
        if expected_seconds(search, middle, step_seconds) <= cpu_seconds:
            low = middle
        else:
            high = middle - 1
    return low


def expected_seconds(search: spec_pb2.Search, steps: int, step_seconds: Sequence[float]) -> float:
    """CPU time, in seconds, of a design whose settings say `steps` steps.

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
    total, splits = step_seconds[0] * validation, 0
    for step in range(joint.steps):
        pairs = schedule.settings(step).specimens / search.specimens
        # Each division adds a rule at least.
        if schedule.split_is_due(step, rules=1 + splits):
            splits += 1
            pairs += schedule.trial_specimens / search.specimens
        done = step + 1
        if done == tried or (done > tried and schedule.epoch_is_due(done)):
            pairs += validation
        seconds = step_seconds[min(splits, len(step_seconds) - 1)]
        total += (starts if step < tried else 1) * pairs * seconds
    return total
