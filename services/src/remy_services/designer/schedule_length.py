"""The length of a search's schedule, which is in steps."""

from __future__ import annotations

from remy_farm.v1 import spec_pb2
from remy_services.designer.errors import DesignerError


def with_steps(spec: spec_pb2.DesignSpec, steps: int) -> spec_pb2.DesignSpec:
    """The specification with a schedule of so many steps, whatever its length was.

    Raises DesignerError in the mode `paper`, which has no schedule and goes on until a stop rule
    holds.
    """
    changed = spec_pb2.DesignSpec()
    changed.CopyFrom(spec)
    search = changed.search
    match search.mode:
        case spec_pb2.SEARCH_MODE_JOINT:
            search.joint.steps = steps
            search.joint.ClearField("cpu_seconds")
            search.joint.ClearField("simulated_packets")
        case spec_pb2.SEARCH_MODE_PATTERN:
            search.pattern.steps = steps
        case _:
            raise DesignerError(
                f"search.mode is paper, which has no schedule whose number of steps could be "
                f"{steps}; stop.steps (--max-steps) ends any search"
            )
    return changed
