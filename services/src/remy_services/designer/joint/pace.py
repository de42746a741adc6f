"""The joint search's settings where a step has more specimens than they were chosen for.

A step on k times the specimens knows as much as k steps. It may go as far as they would, if every
running average forgets as much of its past as it does in k steps: then the directions stand out of
their noise as before. A k-th of the steps simulate as much and get as far: fewer, wider steps for
more workers. How far this carries is measured in docs/algorithm.md, "How many specimens a step".
"""

from __future__ import annotations

from remy_farm.v1 import spec_pb2


def widening(search: spec_pb2.Search) -> float:
    """How many times the specimens a step has that its settings were chosen for."""
    joint = search.joint
    if not joint.HasField("tuned_for_specimens"):
        return 1.0
    return search.specimens / joint.tuned_for_specimens


def paced(search: spec_pb2.Search) -> spec_pb2.JointSearch:
    """The settings as they are followed with `search.specimens` a step.

    What is counted in steps becomes less, but is a step at least, and steps become longer.
    """
    followed = spec_pb2.JointSearch()
    followed.CopyFrom(search.joint)
    followed.ClearField("tuned_for_specimens")
    wider = widening(search)
    for name in ("steps", "start_steps", "first_split", "steps_per_split", "steps_per_epoch"):
        setattr(followed, name, max(round(getattr(followed, name) / wider), 1))
    followed.step_size *= wider
    return followed
