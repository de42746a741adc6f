"""Makes action spaces, and climbs in them."""

from __future__ import annotations

from remy_farm.designer.actions import ActionSpace
from remy_farm.designer.joint.climb import Climb
from remy_proto.v1 import spec_pb2
from remy_simulator import RuleTable

Action = tuple[float, float, float]
Range = tuple[float, float]


def action_space(
    window_multiple: Range = (0, 1),
    window_increment: Range = (0, 256),
    intersend_ms: Range = (0.25, 40),
) -> ActionSpace:
    """Returns the action space with these bounds, by default those of specifications."""
    search = spec_pb2.JointSearch()
    for component, (minimum, maximum) in (
        (search.window_multiple, window_multiple),
        (search.window_increment, window_increment),
        (search.intersend_ms, intersend_ms),
    ):
        component.minimum = minimum
        component.maximum = maximum
    return ActionSpace(search)


def chain_of(actions: list[Action]) -> RuleTable:
    """Returns a table of rules with these actions, split on send_ewma at 1, 2, 3 and so on.

    Its tree is a chain: each inner node has one rule, and the other rules below its second child.
    """
    table = RuleTable([0], [([], actions[0])])
    for number in range(1, len(actions)):
        table = table.split(number - 1, [(0, float(number))])
    return table.with_actions(actions)


def climb_of(actions: list[Action], space: ActionSpace) -> Climb:
    """Returns a climb that starts from the chain of these actions."""
    return Climb.start(chain_of(actions), space)
