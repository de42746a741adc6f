"""One step uphill: coordinates whose slope stands out of its noise move, the others rest."""

from __future__ import annotations

from dataclasses import replace

from remy_services.designer.action_space import ActionSpace
from remy_services.designer.joint.climb import Climb
from remy_services.designer.joint.gradient import GradientSamples
from remy_services.designer.joint.schedule import Settings


def ascend(climb: Climb, samples: GradientSamples, settings: Settings, space: ActionSpace) -> Climb:
    """The climb after one step: of each rule by itself, and of each region as a whole.

    Rules just divided from one another mostly want the same, but each sees too little to know.
    Their region's slope is the sum of theirs, and stands out of the noise long before.
    """
    memories = settings.memories
    rules = climb.rules.after(samples.rules, memories)
    branches = climb.branches.after(samples.regions, memories)
    directions = climb.regions.spread(branches.direction(memories), rules.direction(memories))
    coordinates = space.clamped(climb.coordinates + settings.step_size * directions)
    average = settings.averaging * climb.average + (1 - settings.averaging) * coordinates
    return replace(
        climb,
        table=space.with_actions(climb.table, coordinates),
        coordinates=coordinates,
        rules=rules,
        branches=branches,
        average=average,
        spread=samples.spread,
        steps=climb.steps + 1,
    )
