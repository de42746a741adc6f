"""Larger (or smaller) budgets for a job that exists."""

from __future__ import annotations

from remy_farm.v1 import spec_pb2
from remy_services.designer import DesignerError
from remy_services.designer.schedule_length import with_steps
from remy_services.spec import SpecError, Violation, check_spec


def extended(
    spec: spec_pb2.DesignSpec, *, stop: spec_pb2.Stop | None, joint_steps: int | None
) -> spec_pb2.DesignSpec:
    """The specification with other stop rules, or with another length of its schedule;
    None leaves either as it is. Raises SpecError, whose paths are those of the request."""
    if stop is None and joint_steps is None:
        problem = "or joint_steps must be given; there is nothing to change"
        raise SpecError("the request", [Violation("stop", problem)])
    changed = spec_pb2.DesignSpec()
    changed.CopyFrom(spec)
    if stop is not None:
        changed.stop.CopyFrom(stop)
    if joint_steps is not None:
        try:
            changed = with_steps(changed, joint_steps)
        except DesignerError as error:
            problem = f"cannot be {joint_steps}: {error}"
            raise SpecError("the request", [Violation("joint_steps", problem)]) from error
    check_spec(changed, source="the job's specification with these budgets")
    return changed
