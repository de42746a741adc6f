"""Tests extend_budgets: new budgets for an existing job."""

import pytest

from library.tests.designer.small_joint_spec import small_joint_spec
from library.tests.designer.small_spec import small_spec
from library.tests.driver.joint_spec import joint_spec
from remy_farm.specification import SpecError
from remy_proto.v1 import progress_pb2, spec_pb2
from remy_services.jobs.requests import extend_budgets

_NO_PROGRESS = progress_pb2.JobProgress()


def test_new_stop_rules_replace_all_old_ones() -> None:
    spec = small_spec(epochs=2, steps=9)
    changed = extend_budgets(spec, _NO_PROGRESS, stop=spec_pb2.Stop(epochs=4), joint_steps=None)
    assert changed.stop == spec_pb2.Stop(epochs=4)
    assert spec.stop == spec_pb2.Stop(epochs=2, steps=9)


def test_joint_steps_can_be_changed() -> None:
    changed = extend_budgets(small_joint_spec(), _NO_PROGRESS, stop=None, joint_steps=77)
    assert changed.search.joint.steps == 77


def test_joint_steps_replace_a_cpu_time_budget() -> None:
    changed = extend_budgets(joint_spec(), _NO_PROGRESS, stop=None, joint_steps=5)
    assert changed.search.joint.steps == 5
    assert not changed.search.joint.HasField("cpu_seconds")


@pytest.mark.parametrize(
    ("stop", "joint_steps", "path"),
    [
        (None, None, "stop"),
        (None, 5, "joint_steps"),
        (spec_pb2.Stop(cpu_seconds=-1), None, "stop.cpu_seconds"),
        (spec_pb2.Stop(epochs=0), None, "stop.epochs"),
    ],
)
def test_invalid_budgets_are_refused(
    stop: spec_pb2.Stop | None, joint_steps: int | None, path: str
) -> None:
    with pytest.raises(SpecError) as caught:
        extend_budgets(small_spec(), _NO_PROGRESS, stop=stop, joint_steps=joint_steps)
    assert [violation.path for violation in caught.value.violations] == [path]


def test_joint_steps_must_be_positive() -> None:
    with pytest.raises(SpecError, match=r"search\.joint\.steps"):
        extend_budgets(small_joint_spec(), _NO_PROGRESS, stop=None, joint_steps=0)


@pytest.mark.parametrize(
    ("stop", "problem"),
    [
        (spec_pb2.Stop(steps=9), "stop.steps is 9, but the job has already completed 10 steps"),
        (spec_pb2.Stop(epochs=1), "stop.epochs is 1, but the job has already completed 2 epochs"),
        (spec_pb2.Stop(steps=10, epochs=2), None),
    ],
)
def test_limits_below_completed_work_are_refused(stop: spec_pb2.Stop, problem: str | None) -> None:
    done = progress_pb2.JobProgress(step=10, epoch=2)
    if problem is None:
        assert extend_budgets(small_spec(), done, stop=stop, joint_steps=None).stop == stop
        return
    with pytest.raises(SpecError) as caught:
        extend_budgets(small_spec(), done, stop=stop, joint_steps=None)
    assert problem in str(caught.value)
