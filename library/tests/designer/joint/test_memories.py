"""Running averages forget as fast as before when a step counts as several."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remy_farm.designer.joint.schedule import USUAL, Memories

_NAMES = ["slopes", "squares", "growing", "refining"]


def test_one_step_is_the_usual_one() -> None:
    assert USUAL.over(1) is USUAL


@pytest.mark.parametrize("name", _NAMES)
@given(steps=st.integers(2, 64))
def test_a_step_that_counts_as_several_forgets_as_much_as_they_do(name: str, steps: int) -> None:
    past = 1.0
    for _ in range(steps):
        past *= getattr(USUAL, name)
    assert getattr(USUAL.over(steps), name) == pytest.approx(past)


@given(slopes=st.floats(0.1, 0.99))
def test_the_variance_of_an_average_of_independent_samples(slopes: float) -> None:
    """Of weights (1 - a) a^i, the sum of the squares."""
    squares = sum(((1 - slopes) * slopes**age) ** 2 for age in range(5000))
    assert Memories(slopes=slopes).slope_variance == pytest.approx(squares)
