"""A budget of CPU time as a number of steps, so that a design never depends on a clock.

What a step costs is measured by a rehearsal: a design that divides a rule after each step, and so
makes one step with every size of table that the real one will have.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from remy_farm.v1 import progress_pb2, spec_pb2
from remy_services.designer import Designer
from remy_services.designer.joint.schedule import Schedule
from remy_services.designer.joint.starts import start_count
from remy_services.evaluation import Evaluator, OnProgress

# The rehearsal is cut short when it has used so much of the budget.
_REHEARSAL_SHARE = 0.05
_MAXIMUM_STEPS = 10_000_000


def resolve_budget(
    spec: spec_pb2.DesignSpec, evaluator: Evaluator, on_progress: OnProgress | None = None
) -> spec_pb2.DesignSpec:
    """The specification with `search.joint.steps` in place of `search.joint.cpu_seconds`.

    One without such a budget is returned as it is. The evaluator must work in this process, whose
    CPU time is what counts. `on_progress` is called as by the evaluator; what it raises comes out.
    """
    if not is_by_cpu_time(spec):
        return spec
    step_seconds = _rehearse(spec, evaluator, on_progress)
    steps = steps_within(spec.search, spec.search.joint.cpu_seconds, step_seconds)
    return with_steps(spec, steps)


def is_by_cpu_time(spec: spec_pb2.DesignSpec) -> bool:
    """Whether the length of the design is given as CPU time."""
    search = spec.search
    return search.mode == spec_pb2.SEARCH_MODE_JOINT and search.joint.HasField("cpu_seconds")


def with_steps(spec: spec_pb2.DesignSpec, steps: int) -> spec_pb2.DesignSpec:
    """The specification with a climb of so many steps, whatever its budget was."""
    changed = spec_pb2.DesignSpec()
    changed.CopyFrom(spec)
    changed.search.joint.steps = steps
    changed.search.joint.ClearField("cpu_seconds")
    return changed


def steps_within(search: spec_pb2.Search, cpu_seconds: float, step_seconds: Sequence[float]) -> int:
    """The longest climb whose design is expected to take `cpu_seconds`; at least one step.

    `step_seconds` holds the CPU time of a step of `search.specimens` antithetic pairs, with a table
    that was divided 0, 1, ... times; the last is that of all larger tables.
    """
    if min(step_seconds) <= 0:
        raise ValueError(f"a step takes {min(step_seconds)} s; a positive time is needed")
    low, high = 1, max(1, min(_MAXIMUM_STEPS, int(cpu_seconds / min(step_seconds))))
    while low < high:
        middle = (low + high + 1) // 2
        if expected_seconds(search, middle, step_seconds) <= cpu_seconds:
            low = middle
        else:
            high = middle - 1
    return low


def expected_seconds(search: spec_pb2.Search, steps: int, step_seconds: Sequence[float]) -> float:
    """CPU time, in seconds, of a design with a climb of `steps` steps.

    Divisions cost no more than a step or two in all, and are left out.
    """
    planned = spec_pb2.Search()
    planned.CopyFrom(search)
    planned.joint.steps = steps
    schedule = Schedule(planned)
    # A comparison simulates each of its specimens once, a step each of its own twice.
    validation = search.joint.validation_specimens / (2 * search.specimens)
    # Every start makes the first steps, and is compared after the last of them.
    starts = start_count(search.joint)
    tried = min(search.joint.start_steps, steps) if starts > 1 else 0
    total, splits = step_seconds[0] * validation, 0
    for step in range(steps):
        if splits + 1 < len(step_seconds) and schedule.split_is_due(step, rules=1):
            splits += 1
        pairs = schedule.settings(step).specimens / search.specimens
        done = step + 1
        if done == tried or (done > tried and schedule.epoch_is_due(done)):
            pairs += validation
        total += (starts if step < tried else 1) * pairs * step_seconds[splits]
    return total


def _rehearse(
    spec: spec_pb2.DesignSpec, evaluator: Evaluator, on_progress: OnProgress | None
) -> list[float]:
    """CPU time, in seconds, of a step with a table that was divided 0, 1, ... times."""
    # Each division adds a rule at least.
    plan = with_steps(spec, spec.search.joint.maximum_rules)
    plan.ClearField("stop")
    joint = plan.search.joint
    joint.starts, joint.first_split, joint.steps_per_split, joint.fine_share = 1, 1, 1, 0
    joint.steps_per_epoch = joint.steps
    designer = Designer(plan)
    limit = _REHEARSAL_SHARE * spec.search.joint.cpu_seconds
    began = before = time.process_time()
    step_seconds: list[float] = []
    while (request := designer.next_request()) is not None:
        outcome = evaluator.evaluate(request, on_progress)
        step = designer.receive(outcome)[0].step_finished
        now = time.process_time()
        if step.purpose == progress_pb2.STEP_PURPOSE_CLIMB:
            step_seconds.append(now - before)
            if step.rules >= joint.maximum_rules or now - began >= limit:
                break
        before = now
    return step_seconds
