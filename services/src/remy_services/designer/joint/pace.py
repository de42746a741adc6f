"""The joint search's settings where a step has more specimens than they were chosen for.

A step on k times the specimens knows its slopes sqrt(k) times better, and may go that much farther.
A k-th of the steps then simulate as much and get about as far: fewer, wider steps for more workers.
How far this carries is measured in docs/algorithm.md, "How many specimens a step".
"""

from __future__ import annotations

import math

from remy_farm.v1 import spec_pb2


def widening(search: spec_pb2.Search) -> float:
    """How many times the specimens a step has that its settings were chosen for."""
    joint = search.joint
    if not joint.HasField("tuned_for_specimens"):
        return 1.0
    return search.specimens / joint.tuned_for_specimens


def paced(search: spec_pb2.Search) -> spec_pb2.JointSearch:
    """The settings as they are followed with `search.specimens` a step.

    What is counted in steps becomes shorter, but is a step at least, and steps become longer.
    """
    followed = spec_pb2.JointSearch()
    followed.CopyFrom(search.joint)
    followed.ClearField("tuned_for_specimens")
    wider = widening(search)
    for name in ("steps", "start_steps", "first_split", "steps_per_split", "steps_per_epoch"):
        setattr(followed, name, max(round(getattr(followed, name) / wider), 1))
    followed.step_size *= math.sqrt(wider)
    return followed
