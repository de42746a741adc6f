"""Tests that stopping and resuming does not change a design, for every search."""

from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from library.tests.designer.analytic_evaluator import AnalyticEvaluator
from library.tests.designer.recorded_design import RecordedDesign, finish, make_steps, table_bytes
from library.tests.designer.small_joint_spec import small_joint_spec
from library.tests.designer.small_pattern_spec import small_pattern_spec
from library.tests.designer.small_spec import small_spec
from remy_farm.designer import Designer
from remy_proto.v1 import progress_pb2, spec_pb2

_EVALUATE = AnalyticEvaluator(noise=2.0).evaluate


def _wide() -> spec_pb2.DesignSpec:
    spec = small_joint_spec(tuned_for_specimens=16, steps=40)
    spec.search.specimens = 32
    return spec


def _merging(in_flight: int = 1) -> spec_pb2.DesignSpec:
    return small_joint_spec(
        edition=2,
        maximum_rules=3,
        overgrowth=3,
        first_split=6,
        steps_per_split=1,
        steps_in_flight=in_flight,
    )


_SPECS = {
    "paper": small_spec(signals="send_ewma, rtt_ratio", epochs_per_split=1, epochs=3),
    "joint": small_joint_spec(),
    "joint-starts": small_joint_spec(starts=3, start_steps=5, steps=14),
    "joint-disagreement": small_joint_spec(splits="disagreement"),
    "joint-wide": _wide(),
    "joint-merges": _merging(),
    "joint-in-flight-merges": _merging(in_flight=2),
    "joint-in-flight": small_joint_spec(starts=2, start_steps=5, steps=20, steps_in_flight=3),
    "pattern": small_pattern_spec(steps=51),
}
_JOINT_STEPS = {
    progress_pb2.STEP_PURPOSE_CLIMB,
    progress_pb2.STEP_PURPOSE_SPLIT,
    progress_pb2.STEP_PURPOSE_VALIDATE,
}
_STEPS = {
    "paper": {
        progress_pb2.STEP_PURPOSE_COUNT_USES,
        progress_pb2.STEP_PURPOSE_IMPROVE,
        progress_pb2.STEP_PURPOSE_VALIDATE,
        progress_pb2.STEP_PURPOSE_SPLIT,
    },
    "joint": _JOINT_STEPS,
    "joint-starts": _JOINT_STEPS,
    "joint-wide": _JOINT_STEPS,
    "joint-in-flight": _JOINT_STEPS,
    "joint-merges": {*_JOINT_STEPS, progress_pb2.STEP_PURPOSE_MERGE},
    "joint-in-flight-merges": {*_JOINT_STEPS, progress_pb2.STEP_PURPOSE_MERGE},
    "joint-disagreement": {*_JOINT_STEPS, progress_pb2.STEP_PURPOSE_TRY_SPLITS},
    "pattern": {
        progress_pb2.STEP_PURPOSE_COUNT_USES,
        progress_pb2.STEP_PURPOSE_IMPROVE,
        progress_pb2.STEP_PURPOSE_VALIDATE,
        progress_pb2.STEP_PURPOSE_SPLIT,
        progress_pb2.STEP_PURPOSE_TRY_SPLITS,
    },
}
_NAMES = sorted(_SPECS)


@cache
def _recorded(name: str) -> RecordedDesign:
    return RecordedDesign(_SPECS[name], _EVALUATE)


@pytest.fixture(params=_NAMES)
def recorded(request: pytest.FixtureRequest) -> RecordedDesign:
    return _recorded(request.param)


@pytest.mark.parametrize("name", _NAMES)
def test_the_design_makes_every_kind_of_step(name: str) -> None:
    recorded = _recorded(name)
    assert set(recorded.purposes) == _STEPS[name]
    assert recorded.steps == len(recorded.checkpoints) - 1 > 20


def test_a_design_resumed_before_every_step_has_the_same_result(recorded: RecordedDesign) -> None:
    designer = Designer(recorded.spec)
    events = []
    while (request := designer.next_request()) is not None:
        designer = Designer.resume(recorded.spec, designer.checkpoint())
        assert designer.next_request() == request
        events += designer.receive(_EVALUATE(request))

    assert table_bytes(designer) == recorded.table
    assert designer.checkpoint() == recorded.checkpoints[-1]
    assert events == recorded.events


def test_a_design_resumed_after_any_step_has_the_same_result(recorded: RecordedDesign) -> None:
    for number, data in enumerate(recorded.checkpoints):
        designer = Designer.resume(recorded.spec, data)
        assert designer.checkpoint() == data, f"after {number} steps"
        finish(designer, _EVALUATE)
        assert table_bytes(designer) == recorded.table, f"from step {number}"
        assert designer.checkpoint() == recorded.checkpoints[-1]


@pytest.mark.parametrize("name", _NAMES)
@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_a_stop_by_a_budget_does_not_change_the_result(name: str, data: st.DataObject) -> None:
    """A budget stops the design at random steps; each time it continues with a larger one."""
    recorded = _recorded(name)
    stops = data.draw(
        st.lists(st.integers(1, recorded.steps - 1), max_size=4, unique=True).map(sorted),
        label="stops",
    )
    designer = Designer(_with_steps(recorded.spec, recorded.steps))
    for steps in stops:
        designer = _continued(designer, _with_steps(recorded.spec, steps))
        finish(designer, _EVALUATE)
        assert designer.finished == progress_pb2.STOP_REASON_STEPS
        assert designer.steps == steps
    designer = _continued(designer, _with_steps(recorded.spec, recorded.steps + 1))
    finish(designer, _EVALUATE)

    assert designer.finished != progress_pb2.STOP_REASON_STEPS
    assert designer.finished == recorded.designer.finished
    assert table_bytes(designer) == recorded.table
    assert designer.epochs == recorded.designer.epochs


def _with_steps(spec: spec_pb2.DesignSpec, steps: int) -> spec_pb2.DesignSpec:
    limited = spec_pb2.DesignSpec()
    limited.CopyFrom(spec)
    limited.stop.steps = steps
    return limited


def _continued(designer: Designer, spec: spec_pb2.DesignSpec) -> Designer:
    resumed = Designer.resume(spec, designer.checkpoint())
    resumed.reconsider()
    return resumed


def test_events_have_consecutive_numbers(recorded: RecordedDesign) -> None:
    assert [event.sequence for event in recorded.events] == list(range(1, len(recorded.events) + 1))


def test_a_stop_survives_a_checkpoint(recorded: RecordedDesign) -> None:
    designer = Designer(recorded.spec)
    make_steps(designer, _EVALUATE, 5)
    assert designer.stop(progress_pb2.STOP_REASON_CANCELLED) == []
    closing = designer.next_request()

    resumed = Designer.resume(recorded.spec, designer.checkpoint())

    assert resumed.finished is None
    assert resumed.next_request() == closing
    (event,) = finish(resumed, _EVALUATE)
    assert event.design_finished.reason == progress_pb2.STOP_REASON_CANCELLED
    assert resumed.finished == progress_pb2.STOP_REASON_CANCELLED
    assert table_bytes(Designer.resume(recorded.spec, resumed.checkpoint())) == table_bytes(resumed)
