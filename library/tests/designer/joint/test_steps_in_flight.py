"""Tests steps that are requested before earlier steps are finished."""

from itertools import pairwise

import pytest

from library.tests.designer.analytic_evaluator import AnalyticEvaluator
from library.tests.designer.recorded_design import (
    RecordedDesign,
    finish,
    specimen_keys,
    table_bytes,
)
from library.tests.designer.small_joint_spec import small_joint_spec
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


#: Steps after which rules are split, and the last step.
_DUE = (4, 10, 16, 24)


@pytest.mark.parametrize("in_flight", [2, 4, 8])
def test_requests_ahead_are_the_later_requests(in_flight: int) -> None:
    """The number of steps in flight is the setting's, except that none is beyond a split or the
    end. Validations, one every 6 steps, do not limit it."""
    spec = small_joint_spec(steps_in_flight=in_flight, splits="disagreement", edition=3)
    designer = Designer(spec)
    expected: list[evaluation_pb2.EvaluationRequest] = []
    numbers = set()
    while (request := designer.next_request()) is not None:
        purpose, step = _purpose(designer), _climb(designer).steps
        if purpose == _CLIMB and expected:
            assert request is expected[0]
        other = Designer.resume(spec, designer.checkpoint())
        assert other.next_request() == request, "a resumed designer makes another request"

        expected = [*designer.requests_ahead()]
        assert list(designer.requests_ahead()) == expected, "a second call returns other requests"
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
    # The last split is 8 steps before the end.
    assert max(numbers) == min(in_flight, 7)


def test_a_step_perturbs_the_table_at_the_time_of_its_request() -> None:
    designer = Designer(small_joint_spec(steps_in_flight=3, maximum_rules=1, steps=12))
    current, perturbed = [], []
    while (request := designer.next_request()) is not None:
        if _purpose(designer) == _CLIMB:
            current.append(to_native(_climb(designer).table))
            perturbed.append(to_native(request.tables[0]))
        designer.receive(_EVALUATE(request))
    assert len(current) == 12
    assert all(before != after for before, after in pairwise(current)), "a step changed nothing"
    for step, table in enumerate(perturbed):
        assert table == current[max(step - 2, 0)]


def test_one_step_in_flight_is_the_default() -> None:
    default = RecordedDesign(small_joint_spec(), _EVALUATE)
    one = RecordedDesign(small_joint_spec(steps_in_flight=1), _EVALUATE)
    two = RecordedDesign(small_joint_spec(steps_in_flight=2), _EVALUATE)
    assert one.table == default.table
    assert two.table != default.table


def test_a_stopped_design_has_no_requests_ahead() -> None:
    designer = Designer(small_joint_spec(steps_in_flight=4))
    designer.receive(_EVALUATE(_next(designer)))
    assert len(designer.requests_ahead()) == 3
    designer.stop(progress_pb2.STOP_REASON_CANCELLED)
    assert not designer.requests_ahead()
    finish(designer, _EVALUATE)
    assert designer.next_request() is None
    assert not designer.requests_ahead()


def test_stopping_and_continuing_does_not_change_the_design() -> None:
    spec = small_joint_spec(steps_in_flight=4)
    stopping, uninterrupted = Designer(spec), Designer(spec)
    while stopping.finished != progress_pb2.STOP_REASON_SCHEDULE_COMPLETE:
        request = _next(stopping)
        stopping.requests_ahead()
        stopping.receive(_EVALUATE(request))
        if stopping.steps % 5 == 0 and stopping.finished is None:
            stopping.stop(progress_pb2.STOP_REASON_WALL_SECONDS)
            stopping.reconsider()
    finish(uninterrupted, _EVALUATE)
    assert table_bytes(stopping) == table_bytes(uninterrupted)


def _wide(in_flight: int) -> spec_pb2.DesignSpec:
    """Returns a specification with many specimens a step, so that moving averages decay fast."""
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
def test_a_climb_with_steps_in_flight_gains_almost_as_much(in_flight: int) -> None:
    walks = [RecordedDesign(_wide(1), _EVALUATE), RecordedDesign(_wide(in_flight), _EVALUATE)]
    assert walks[0].steps == walks[1].steps
    first = walks[0].designer.epochs[0].comparison.before.mean
    gains = [recorded.designer.epochs[-1].comparison.after.mean - first for recorded in walks]
    assert gains[1] > 0.9 * gains[0] > 0


def _next(designer: Designer) -> evaluation_pb2.EvaluationRequest:
    request = designer.next_request()
    assert request is not None
    return request
