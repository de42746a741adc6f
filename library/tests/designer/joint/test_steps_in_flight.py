"""Steps that are asked for while those before them are simulated."""

from itertools import pairwise

import pytest

from library.tests.designer.analytic_evaluator import AnalyticEvaluator
from library.tests.designer.small_joint_spec import small_joint_spec
from library.tests.designer.walk import Walk, finish, specimen_keys, table_bytes
from remy_farm.designer import Designer
from remy_farm.designer import checkpoint as sealing
from remy_proto.v1 import checkpoint_pb2, evaluation_pb2, progress_pb2, spec_pb2
from remy_simulator.messages import to_native

_EVALUATE = AnalyticEvaluator(noise=2.0).evaluate
_CLIMB = progress_pb2.STEP_PURPOSE_CLIMB
_VALIDATE = progress_pb2.STEP_PURPOSE_VALIDATE


def _climb(designer: Designer) -> checkpoint_pb2.Climb:
    return sealing.unseal(designer.checkpoint()).joint.climb


def _purpose(designer: Designer) -> progress_pb2.StepPurpose:
    return sealing.unseal(designer.checkpoint()).joint.purpose


#: The steps after which rules are divided; the last one.
_DUE = (4, 10, 16, 24)


@pytest.mark.parametrize("in_flight", [2, 4, 8])
def test_what_is_asked_for_ahead_is_what_is_asked_for_later(in_flight: int) -> None:
    """In flight are as many steps as may be, but none beyond a division, or the end; a validation,
    of which there is one every 6 steps, holds up none."""
    spec = small_joint_spec(steps_in_flight=in_flight, splits="disagreement", edition=3)
    designer = Designer(spec)
    expected: list[evaluation_pb2.EvaluationRequest] = []
    numbers = set()
    while (request := designer.next_request()) is not None:
        purpose, step = _purpose(designer), _climb(designer).steps
        if purpose == _CLIMB and expected:
            assert request is expected[0]
        other = Designer.resume(spec, designer.checkpoint())
        assert other.next_request() == request, "to the byte, by who did not look ahead"

        expected = [*designer.requests_ahead()]
        assert list(designer.requests_ahead()) == expected, "and the same when asked again"
        left = next(due for due in _DUE if due > step or due == 24) - step
        if purpose == _CLIMB:
            assert len(expected) == min(in_flight, left) - 1
        elif purpose == _VALIDATE:
            assert len(expected) == min(in_flight, left)
        else:
            assert not expected
        numbers.add(len(expected))
        keys = [specimen_keys(each) for each in (request, *expected)]
        assert len({key for each in keys for key in each}) == sum(map(len, keys))
        designer.receive(_EVALUATE(request))
    assert max(numbers) == min(in_flight, 7), "the last division is 8 steps before the end"


def test_a_step_perturbs_the_table_as_it_was_when_it_was_asked_for() -> None:
    designer = Designer(small_joint_spec(steps_in_flight=3, maximum_rules=1, steps=12))
    stood, asked = [], []
    while (request := designer.next_request()) is not None:
        if _purpose(designer) == _CLIMB:
            stood.append(to_native(_climb(designer).table))
            asked.append(to_native(request.tables[0]))
        designer.receive(_EVALUATE(request))
    assert len(stood) == 12
    assert all(before != after for before, after in pairwise(stood)), "it moves at every step"
    for step, table in enumerate(asked):
        assert table == stood[max(step - 2, 0)]


def test_one_step_in_flight_is_the_usual_search() -> None:
    usual = Walk(small_joint_spec(), _EVALUATE)
    alone = Walk(small_joint_spec(steps_in_flight=1), _EVALUATE)
    several = Walk(small_joint_spec(steps_in_flight=2), _EVALUATE)
    assert alone.table == usual.table
    assert several.table != usual.table


def test_a_design_that_is_stopped_asks_for_nothing_more() -> None:
    designer = Designer(small_joint_spec(steps_in_flight=4))
    designer.receive(_EVALUATE(_next(designer)))
    assert len(designer.requests_ahead()) == 3
    designer.stop(progress_pb2.STOP_REASON_CANCELLED)
    assert not designer.requests_ahead()
    finish(designer, _EVALUATE)
    assert designer.next_request() is None
    assert not designer.requests_ahead()


def test_a_design_that_is_stopped_and_goes_on_is_the_same() -> None:
    spec = small_joint_spec(steps_in_flight=4)
    stopping, going_on = Designer(spec), Designer(spec)
    while stopping.finished != progress_pb2.STOP_REASON_SCHEDULE_COMPLETE:
        request = _next(stopping)
        stopping.requests_ahead()
        stopping.receive(_EVALUATE(request))
        if stopping.steps % 5 == 0 and stopping.finished is None:
            stopping.stop(progress_pb2.STOP_REASON_WALL_SECONDS)
            stopping.reconsider()
    finish(going_on, _EVALUATE)
    assert table_bytes(stopping) == table_bytes(going_on)


def _wide(in_flight: int) -> spec_pb2.DesignSpec:
    """Steps that remember little of those before, since they see much themselves."""
    spec = small_joint_spec(
        steps=900,
        tuned_for_specimens=16,
        step_size=0.05 / 6,
        first_split=24,
        steps_per_split=36,
        steps_per_epoch=300,
        steps_in_flight=in_flight,
        edition=3,
    )
    spec.search.specimens = 96
    return spec


@pytest.mark.parametrize("in_flight", [2, 8])
def test_a_climb_with_steps_in_flight_gets_as_far(in_flight: int) -> None:
    usual, walk = Walk(_wide(1), _EVALUATE), Walk(_wide(in_flight), _EVALUATE)
    assert walk.steps == usual.steps
    began = usual.designer.epochs[0].comparison.before.mean
    gains = [each.designer.epochs[-1].comparison.after.mean - began for each in (usual, walk)]
    assert gains[1] > 0.9 * gains[0] > 0


def _next(designer: Designer) -> evaluation_pb2.EvaluationRequest:
    request = designer.next_request()
    assert request is not None
    return request
