"""What a specification may not change while a design goes on."""

from __future__ import annotations

from remy_farm.v1 import spec_pb2
from remy_services.spec import content_digest


def search_digest(spec: spec_pb2.DesignSpec) -> str:
    """The digest of a specification without its name, stop rules, schedule's length and workers.

    A design may go on with more of what these allow. Where the length of a schedule changes, what
    is annealed over it is annealed anew from where the design stands.
    """
    walk = spec_pb2.DesignSpec()
    walk.CopyFrom(spec)
    walk.ClearField("name")
    walk.ClearField("stop")
    walk.ClearField("workers")
    walk.search.joint.ClearField("steps")
    walk.search.joint.ClearField("cpu_seconds")
    walk.search.pattern.ClearField("steps")
    return content_digest(walk)
