"""Steps from an action in the directions of a compass (Hooke and Jeeves 1961; Kolda et al. 2003).

Steps are taken in the coordinates of docs/algorithm.md, where the first falls as the window
multiple rises. Components that a step does not move keep every bit.
"""

from __future__ import annotations

from remy_services.designer.action_space import Action, ActionSpace

Direction = tuple[int, int, int]

WINDOW_MULTIPLE: Direction = (1, 0, 0)
WINDOW_INCREMENT: Direction = (0, 1, 0)
INTERSEND: Direction = (0, 0, 1)
#: The window that a constant action settles at, b / (1 - m), stays, and is reached sooner or later.
AGILITY: Direction = (1, 1, 0)
#: More packets an ACK and less time between them, or the reverse.
EAGERNESS: Direction = (0, 1, -1)

_DIRECTIONS = (WINDOW_MULTIPLE, WINDOW_INCREMENT, INTERSEND, AGILITY, EAGERNESS)


def neighbours(space: ActionSpace, action: Action, step: float) -> list[Action]:
    """The actions at distance `step` from an action, both ways in each direction.

    Those that the bounds leave where they were are missing, and each is there once.
    """
    found: list[Action] = []
    for direction in _DIRECTIONS:
        for distance in (step, -step):
            neighbour = moved(space, action, direction, distance)
            if neighbour != action and neighbour not in found:
                found.append(neighbour)
    return found


def moved(space: ActionSpace, action: Action, direction: Direction, distance: float) -> Action:
    """The action `distance` away in a direction, its increment whole.

    An increment that moves at all moves by a packet at least.
    """
    point = space.point(action)
    goal = [place + way * distance for place, way in zip(point, direction, strict=True)]
    multiple, increment, intersend_ms = space.rounded_action(goal)
    if direction[1] and increment == action[1]:
        packet = 1.0 if direction[1] * distance > 0 else -1.0
        increment = space.whole_increment(action[1] + packet)
    components = zip(direction, action, (multiple, increment, intersend_ms), strict=True)
    multiple, increment, intersend_ms = (new if way else old for way, old, new in components)
    return (multiple, increment, intersend_ms)
