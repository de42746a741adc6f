"""Budgets of CPU time, wall time and packets, and the number of steps that they allow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from remy_farm.designer.designer import Designer
from remy_farm.designer.joint.schedule import Schedule, specimen_factor, start_count
from remy_farm.designer.search import with_steps
from remy_farm.specification.models import designed_tables
from remy_proto.completion import NEWEST_EDITION
from remy_proto.v1 import evaluation_pb2, progress_pb2, spec_pb2


@dataclass(frozen=True)
class Elapsed:
    """Time that a design has used, without the pauses between its runs."""

    wall_seconds: float = 0.0
    #: CPU time of the processes that evaluate its requests.
    cpu_seconds: float = 0.0


def exhausted_budget(stop: spec_pb2.Stop, elapsed: Elapsed) -> progress_pb2.StopReason | None:
    """Returns the budget of time that is used up; None if none is."""
    if stop.HasField("cpu_seconds") and elapsed.cpu_seconds >= stop.cpu_seconds:
        return progress_pb2.STOP_REASON_CPU_SECONDS
    if stop.HasField("wall_seconds") and elapsed.wall_seconds >= stop.wall_seconds:
        return progress_pb2.STOP_REASON_WALL_SECONDS
    return None


def estimate_seconds_left(
    stop: spec_pb2.Stop, elapsed: Elapsed, *, steps: float, epochs: int, share_done: float | None
) -> float | None:
    """Estimates the wall time, in seconds, until the first budget is used up.

    Assumes that the design continues at its average speed. `steps` may include a fraction for the
    running step. `share_done` is the finished share of a search of fixed length. Returns None if
    no budget allows an estimate.
    """
    wall = elapsed.wall_seconds
    estimates = []
    if stop.HasField("wall_seconds"):
        estimates.append(stop.wall_seconds - wall)
    if stop.HasField("cpu_seconds") and elapsed.cpu_seconds > 0:
        estimates.append((stop.cpu_seconds - elapsed.cpu_seconds) * wall / elapsed.cpu_seconds)
    if stop.HasField("steps") and steps > 0:
        estimates.append((stop.steps - steps) * wall / steps)
    if stop.HasField("epochs") and epochs > 0:
        estimates.append((stop.epochs - epochs) * wall / epochs)
    if share_done:
        estimates.append((1 - share_done) * wall / share_done)
    return max(min(estimates), 0.0) if estimates else None


# Conversion of a budget of CPU time or packets into a number of steps. A design depends on the
# number of steps only, so that it can be repeated on a faster or slower machine.


_MAXIMUM_STEPS = 10_000_000


def is_limited_by_budget(spec: spec_pb2.DesignSpec) -> bool:
    """Tells whether the length of the search is given as CPU time or packets, not as steps."""
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
    """Returns the length of the longest climb that is expected to stay within the budget.

    The result is at least one step. `step_costs` holds the cost, in the budget's unit, of a step of
    `search.specimens` antithetic pairs with a table that was split 0, 1, ... times; the last cost
    is used for all larger tables.
    """
    if min(step_costs) <= 0:
        raise ValueError(f"a step costs {min(step_costs)}; costs must be positive")
    # With more specimens than they were tuned for, one step replaces several of the settings.
    upper_limit = budget / min(step_costs) * max(specimen_factor(search), 1.0)
    low, high = 1, max(1, min(_MAXIMUM_STEPS, int(upper_limit)))
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
    """Returns the expected cost of a design with `steps` steps, in the unit of `step_costs`.

    Includes the trials of splits. Leaves out the steps that make splits, which cost as much as one
    or two steps in all.
    """
    planned = spec_pb2.Search()
    planned.CopyFrom(search)
    planned.joint.steps = steps
    schedule = Schedule(planned, edition)
    joint = schedule.search
    # A validation simulates each of its specimens once; a step simulates each of its own twice.
    validation = joint.validation_specimens / (2 * search.specimens)
    # Each of the short climbs makes the first steps and is then validated.
    starts = start_count(joint)
    short_steps = min(joint.start_steps, joint.steps) if starts > 1 else 0
    total, splits = step_costs[0] * validation, 0
    for step in range(joint.steps):
        pairs = schedule.settings(step).specimens / search.specimens
        # Each split adds at least one rule.
        if schedule.split_is_due(step, rules=1 + splits):
            splits += 1
            pairs += schedule.trial_specimens / search.specimens
        done = step + 1
        if done == short_steps or (done > short_steps and schedule.epoch_is_due(done)):
            pairs += validation
        cost = step_costs[min(splits, len(step_costs) - 1)]
        total += (starts if step < short_steps else 1) * pairs * cost
    return total


# A rehearsal stops when it has used this share of the budget.
_SHARE_OF_BUDGET = 0.05
# Size that the rehearsal's table grows to if no rule limit is set. The default limit depends on the
# number of steps, which is not known yet.
_REHEARSED_RULES = 72


class Rehearsal:
    """Measures what steps cost, to find how many steps a budget allows.

    A rehearsal is a short joint search that splits a rule after each step, so that it makes one
    step with every size of table that the real search will have. It is driven like a designer, and
    has no clock and no I/O.
    """

    def __init__(self, spec: spec_pb2.DesignSpec) -> None:
        self._spec = spec
        # At least as many steps as splits: each split adds at least one rule.
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
        budgets = search.joint
        self._counts_packets = budgets.HasField("simulated_packets")
        # In packets, or in seconds of CPU time.
        budget = budgets.simulated_packets if self._counts_packets else budgets.cpu_seconds
        # Tables that are designed together share the budget equally.
        self._tables = len(designed_tables(spec))
        self._budget = budget / self._tables
        self._climbs = 0
        self._used = 0.0
        # Index: the number of splits before the step.
        self._step_costs: list[float] = []
        self._is_over = False

    def next_request(self) -> evaluation_pb2.EvaluationRequest | None:
        """Returns the next request; None when the rehearsal is over."""
        return None if self._is_over else self._designer.next_request()

    def receive(self, outcome: evaluation_pb2.EvaluationOutcome, cpu_seconds: float) -> None:
        """Receives the outcome of the last request, and the CPU time of its evaluation."""
        step = self._designer.receive(outcome)[0].step_finished
        cost = step.simulated_packets if self._counts_packets else cpu_seconds
        self._used += cost
        if step.purpose == progress_pb2.STEP_PURPOSE_CLIMB:
            self._climbs += 1
            if self._climbs % self._tables > 0:
                # The tables take turns; only steps of the last table are measured.
                return
            # If no sender ever sends, a step still counts as one packet: costs must be positive.
            self._step_costs.append(max(cost, 1) if self._counts_packets else cost)
            self._is_over = (
                step.rules >= self._rules or self._used >= _SHARE_OF_BUDGET * self._budget
            )

    def spec_with_steps(self) -> spec_pb2.DesignSpec:
        """Returns the specification with a number of steps in place of the budget.

        Call it only when the rehearsal is over.
        """
        spec = self._spec
        steps = steps_within(spec.search, self._budget, self._step_costs, edition=spec.edition)
        return with_steps(spec, steps)
