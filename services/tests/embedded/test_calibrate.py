"""CPU time and packets as a number of steps."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from remy_farm.v1 import spec_pb2
from remy_services.designer import Designer
from remy_services.designer.strategy import with_steps
from remy_services.driver.run import resolve_budget
from remy_services.evaluation import EvaluationProgress, LocalEvaluator
from remy_services.specification import check_spec
from services.tests.designer.small_spec import small_spec
from services.tests.embedded.joint_spec import joint_spec


@pytest.fixture
def evaluator() -> Iterator[LocalEvaluator]:
    with closing(LocalEvaluator(2)) as evaluator:
        yield evaluator


def test_a_budget_of_cpu_time_becomes_steps_and_nothing_else_changes(
    evaluator: LocalEvaluator,
) -> None:
    spec = joint_spec()
    resolved = resolve_budget(spec, evaluator)
    check_spec(resolved)
    assert spec == joint_spec()
    assert not resolved.search.joint.HasField("cpu_seconds")
    assert resolved == with_steps(spec, resolved.search.joint.steps)


def test_time_buys_steps(evaluator: LocalEvaluator) -> None:
    spec = joint_spec()
    spec.search.joint.cpu_seconds = 1e-9
    assert resolve_budget(spec, evaluator).search.joint.steps == 1
    spec.search.joint.cpu_seconds = 100
    assert resolve_budget(spec, evaluator).search.joint.steps > 100


def test_packets_buy_steps_that_need_about_so_many(evaluator: LocalEvaluator) -> None:
    spec = joint_spec()
    spec.search.joint.ClearField("cpu_seconds")
    spec.search.joint.simulated_packets = 2_000_000
    resolved = resolve_budget(spec, evaluator)
    check_spec(resolved)
    assert resolved == with_steps(spec, resolved.search.joint.steps)
    # Nothing was measured by a clock.
    assert resolve_budget(spec, evaluator) == resolved

    designer = Designer(resolved)
    while (request := designer.next_request()) is not None:
        designer.receive(evaluator.evaluate(request))
    # The tables of a design send more than the first one, which a simulation of 1 s shows most.
    assert 1_000_000 < designer.simulated_packets < 4_000_000


@pytest.mark.parametrize("spec", [with_steps(joint_spec(), 7), small_spec(epochs=3)])
def test_without_such_a_budget_a_specification_stays_as_it_is(
    spec: spec_pb2.DesignSpec, evaluator: LocalEvaluator
) -> None:
    assert resolve_budget(spec, evaluator) is spec


def test_whoever_watches_may_end_the_measurement(evaluator: LocalEvaluator) -> None:
    class EnoughError(Exception):
        pass

    def end(_: EvaluationProgress) -> None:
        raise EnoughError

    with pytest.raises(EnoughError):
        resolve_budget(joint_spec(), evaluator, end)
