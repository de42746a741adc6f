"""Tests the conversion of budgets of CPU time and packets into steps."""

from __future__ import annotations

import asyncio
from contextlib import closing

import pytest

from library.tests.designer.small_spec import small_spec
from library.tests.driver.joint_spec import joint_spec
from remy_farm.designer import Designer
from remy_farm.designer.search import with_steps
from remy_farm.driver.loop import RunLoop
from remy_farm.driver.run import Interrupt
from remy_farm.evaluation.interface import Share
from remy_farm.evaluation.local import LocalEvaluator, ThreadPoolEvaluator
from remy_farm.specification import check_spec
from remy_proto.v1 import spec_pb2


def resolve_budget(
    spec: spec_pb2.DesignSpec, interrupt: Interrupt | None = None
) -> spec_pb2.DesignSpec | None:
    """Returns the specification with steps in place of a budget, as a run does.

    A rehearsal, a short search, measures what a step costs. None: the interrupt ended it.
    """

    async def rehearse() -> spec_pb2.DesignSpec | None:
        control, evaluator = interrupt or Interrupt(), ThreadPoolEvaluator(2)
        control.attach()
        try:
            return await RunLoop(evaluator, control, lambda: Share("design")).rehearse(spec)
        finally:
            await evaluator.close()

    return asyncio.run(rehearse())


def resolved_spec(spec: spec_pb2.DesignSpec) -> spec_pb2.DesignSpec:
    resolved = resolve_budget(spec)
    assert resolved is not None
    return resolved


def test_a_budget_of_cpu_time_becomes_steps_and_nothing_else_changes() -> None:
    spec = joint_spec()
    resolved = resolved_spec(spec)
    check_spec(resolved)
    assert spec == joint_spec()
    assert not resolved.search.joint.HasField("cpu_seconds")
    assert resolved == with_steps(spec, resolved.search.joint.steps)


def test_more_cpu_time_allows_more_steps() -> None:
    spec = joint_spec()
    spec.search.joint.cpu_seconds = 1e-9
    assert resolved_spec(spec).search.joint.steps == 1
    spec.search.joint.cpu_seconds = 100
    assert resolved_spec(spec).search.joint.steps > 100


def test_a_design_within_a_budget_of_packets_sends_about_as_many() -> None:
    spec = joint_spec()
    spec.search.joint.ClearField("cpu_seconds")
    spec.search.joint.simulated_packets = 2_000_000
    resolved = resolved_spec(spec)
    check_spec(resolved)
    assert resolved == with_steps(spec, resolved.search.joint.steps)
    # A second rehearsal gives as many steps, because it counts packets and reads no clock.
    assert resolved_spec(spec) == resolved

    designer = Designer(resolved)
    with closing(LocalEvaluator(2)) as evaluator:
        while (request := designer.next_request()) is not None:
            designer.receive(evaluator.evaluate(request))
    # Designed tables send more than the first one, especially in simulations as short as 1 s.
    assert 1_000_000 < designer.simulated_packets < 4_000_000


@pytest.mark.parametrize("spec", [with_steps(joint_spec(), 7), small_spec(epochs=3)])
def test_a_specification_without_such_a_budget_is_unchanged(spec: spec_pb2.DesignSpec) -> None:
    assert resolved_spec(spec) is spec


def test_an_interrupt_ends_the_rehearsal() -> None:
    interrupt = Interrupt()
    interrupt.set()
    assert resolve_budget(joint_spec(), interrupt) is None
