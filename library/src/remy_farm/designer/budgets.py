"""Budgets of CPU time, wall time and packets, and the number of steps that they buy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from remy_farm.designer.designer import Designer
from remy_farm.designer.joint.schedule import Schedule, start_count, widening
from remy_farm.designer.search import with_steps
from remy_farm.specification.models import designs
from remy_proto.completion import NEWEST_EDITION
from remy_proto.v1 import evaluation_pb2, progress_pb2, spec_pb2


@dataclass(frozen=True)
class Elapsed:
    """Time used since a design began, without the pauses between its runs."""

    wall_seconds: float = 0.0
    #: CPU time of whoever evaluated for it.
    cpu_seconds: float = 0.0


def exhausted(stop: spec_pb2.Stop, elapsed: Elapsed) -> progress_pb2.StopReason | None:
    """Which of the budgets that need a clock is used up, if one is."""
    if stop.HasField("cpu_seconds") and elapsed.cpu_seconds >= stop.cpu_seconds:
        return progress_pb2.STOP_REASON_CPU_SECONDS
    if stop.HasField("wall_seconds") and elapsed.wall_seconds >= stop.wall_seconds:
        return progress_pb2.STOP_REASON_WALL_SECONDS
    return None


def seconds_left(
    stop: spec_pb2.Stop, elapsed: Elapsed, *, steps: float, epochs: int, share_done: float | None
) -> float | None:
    """A guess at the wall time, in seconds, until the first budget is used up.

    Assumes that the design goes on at its average pace; `steps` may count the running step in part,
    and `share_done` is how much of a search of fixed length is done.
    None where there is nothing to go by.
    """
    pace = elapsed.wall_seconds
    guesses = []
    if stop.HasField("wall_seconds"):
        guesses.append(stop.wall_seconds - pace)
    if stop.HasField("cpu_seconds") and elapsed.cpu_seconds > 0:
        guesses.append((stop.cpu_seconds - elapsed.cpu_seconds) * pace / elapsed.cpu_seconds)
    if stop.HasField("steps") and steps > 0:
        guesses.append((stop.steps - steps) * pace / steps)
    if stop.HasField("epochs") and epochs > 0:
        guesses.append((stop.epochs - epochs) * pace / epochs)
    if share_done:
        guesses.append((1 - share_done) * pace / share_done)
    return max(min(guesses), 0.0) if guesses else None


# A budget of CPU time or packets as a number of steps, which is all that a design depends on.


_MAXIMUM_STEPS = 10_000_000


def is_by_budget(spec: spec_pb2.DesignSpec) -> bool:
    """Whether the length of the design is given as CPU time or as packets."""
    joint = spec.search.joint
    return spec.search.mode == spec_pb2.SEARCH_MODE_JOINT and (
        joint.HasField("cpu_seconds") or joint.HasField("simulated_packets")
    )


def steps_within(
    search: spec_pb2.Search,
    budget: float,
    step_costs: Sequence[float],
    *,
    edition: int = NEWEST_EDITION,
) -> int:
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
        if expected_cost(search, middle, step_costs, edition=edition) <= budget:
            low = middle
        else:
            high = middle - 1
    return low


def expected_cost(
    search: spec_pb2.Search,
    steps: int,
    step_costs: Sequence[float],
    *,
    edition: int = NEWEST_EDITION,
) -> float:
    """What a design costs whose settings say `steps` steps, in the unit of `step_costs`.

    Divisions cost no more than a step or two in all, and are left out, but for their trials.
    """
    planned = spec_pb2.Search()
    planned.CopyFrom(search)
    planned.joint.steps = steps
    schedule = Schedule(planned, edition)
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


# A rehearsal of a joint search: finds out how many steps a budget of CPU time or packets buys.
#
# It is a design that divides a rule after each step, and so makes one step with every size of table
# that the real one will have. Driven like a designer: no clock, no I/O.


# A rehearsal is cut short when it has used so much of the budget.
_SHARE_OF_BUDGET = 0.05
# How large its table grows where that follows from the length, which is what it is to find out.
_REHEARSED_RULES = 72


class Rehearsal:
    """The rehearsal of a specification whose length is given as a budget."""

    def __init__(self, spec: spec_pb2.DesignSpec) -> None:
        self._spec = spec
        # Each division adds a rule at least.
        search = spec.search
        self._rules = search.maximum_rules or search.joint.maximum_rules or _REHEARSED_RULES
        plan = with_steps(spec, self._rules)
        plan.ClearField("stop")
        joint = plan.search.joint
        plan.search.maximum_rules, joint.overgrowth = self._rules, 1
        joint.starts, joint.first_split, joint.steps_per_split, joint.fine_share = 1, 1, 1, 0
        joint.steps_per_epoch = joint.steps
        joint.ClearField("tuned_for_specimens")
        self._designer = Designer(plan)
        asked = search.joint
        self._counts_packets = asked.HasField("simulated_packets")
        #: In packets, or in seconds of CPU time.
        budget = asked.simulated_packets if self._counts_packets else asked.cpu_seconds
        # Of several tables each has a share.
        self._tables = len(designs(spec))
        self._budget = budget / self._tables
        self._climbs = 0
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
            self._climbs += 1
            if self._climbs % self._tables > 0:
                # The tables take turns: the steps of the last are those that count.
                return
            # Where nobody ever sends, a step costs a packet all the same.
            self._step_costs.append(max(cost, 1) if self._counts_packets else cost)
            self._is_over = (
                step.rules >= self._rules or self._used >= _SHARE_OF_BUDGET * self._budget
            )

    def resolved(self) -> spec_pb2.DesignSpec:
        """The specification with steps in place of the budget, once the rehearsal is over."""
        spec = self._spec
        steps = steps_within(spec.search, self._budget, self._step_costs, edition=spec.edition)
        return with_steps(spec, steps)
