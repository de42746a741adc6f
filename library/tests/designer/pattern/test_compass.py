"""Tests compass steps: their directions, bounds and rounding."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from library.tests.designer.small_pattern_spec import small_pattern_spec
from remy_farm.designer.actions import ActionSpace
from remy_farm.designer.pattern.race import (
    AGGRESSIVENESS,
    AGILITY,
    INTERSEND,
    WINDOW_INCREMENT,
    WINDOW_MULTIPLE,
    moved,
    neighbours,
)
from remy_simulator.messages import Action

_SPACE = ActionSpace(small_pattern_spec().search.pattern)
_DIRECTIONS = (WINDOW_MULTIPLE, WINDOW_INCREMENT, INTERSEND, AGILITY, AGGRESSIVENESS)

_ACTIONS = st.builds(
    Action, st.floats(0, 1), st.integers(0, 256).map(float), st.floats(0.25, 40, exclude_min=True)
)
_STEPS = st.floats(0.01, 3)


@given(_ACTIONS, _STEPS)
def test_every_neighbour_is_another_action_within_the_bounds(action: Action, step: float) -> None:
    found = neighbours(_SPACE, action, step)
    assert 3 <= len(found) <= 10
    assert action not in found
    assert len(set(found)) == len(found)
    for multiple, increment, intersend_ms in found:
        assert 0 <= multiple <= 1
        assert 0 <= increment <= 256
        assert increment == round(increment)
        assert 0.25 <= intersend_ms <= 40


@given(_ACTIONS, st.sampled_from(_DIRECTIONS), _STEPS, st.booleans())
def test_components_that_a_step_does_not_move_keep_every_bit(
    action: Action, direction: tuple[int, int, int], step: float, back: bool
) -> None:
    after = moved(_SPACE, action, direction, -step if back else step)
    for sign, old, new in zip(direction, action, after, strict=True):
        assert sign != 0 or new == old


def test_an_increment_moves_by_at_least_one_packet() -> None:
    assert moved(_SPACE, Action(0.9, 3.0, 1.0), WINDOW_INCREMENT, 0.01) == (0.9, 4.0, 1.0)
    assert moved(_SPACE, Action(0.9, 3.0, 1.0), WINDOW_INCREMENT, -0.01) == (0.9, 2.0, 1.0)
    assert moved(_SPACE, Action(0.9, 0.0, 1.0), WINDOW_INCREMENT, -0.01) == (0.9, 0.0, 1.0)
    assert moved(_SPACE, Action(0.9, 256.0, 1.0), WINDOW_INCREMENT, 1.0) == (0.9, 256.0, 1.0)


def test_agility_keeps_the_window_that_an_action_converges_to() -> None:
    for distance in (0.3, -0.3):
        multiple, increment, intersend_ms = moved(_SPACE, Action(0.7, 60.0, 1.0), AGILITY, distance)
        assert increment / (1 - multiple) == pytest.approx(60 / (1 - 0.7), rel=0.05)
        assert intersend_ms == 1.0
        assert (multiple < 0.7) == (distance > 0)


def test_aggressiveness_is_more_packets_in_less_time() -> None:
    more = moved(_SPACE, Action(0.7, 60.0, 1.0), AGGRESSIVENESS, 0.5)
    less = moved(_SPACE, Action(0.7, 60.0, 1.0), AGGRESSIVENESS, -0.5)
    assert more.window_increment > 60 > less.window_increment
    assert more.intersend_ms < 1.0 < less.intersend_ms
