"""Tests the decay rates of a step that replaces several steps."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remy_farm.designer.joint.schedule import DEFAULT_DECAY_RATES, DecayRates

_NAMES = ["beta1", "beta2", "growing", "refining"]


def test_decay_over_one_step_is_unchanged() -> None:
    assert DEFAULT_DECAY_RATES.over(1) is DEFAULT_DECAY_RATES


@pytest.mark.parametrize("name", _NAMES)
@given(steps=st.integers(2, 64))
def test_decay_over_several_steps_is_their_product(name: str, steps: int) -> None:
    product = 1.0
    for _ in range(steps):
        product *= getattr(DEFAULT_DECAY_RATES, name)
    assert getattr(DEFAULT_DECAY_RATES.over(steps), name) == pytest.approx(product)


@given(beta1=st.floats(0.1, 0.99))
def test_slope_variance_is_the_sum_of_the_squared_weights(beta1: float) -> None:
    """A sample that is `age` steps old has the weight (1 - beta1) beta1^age."""
    squares = sum(((1 - beta1) * beta1**age) ** 2 for age in range(5000))
    assert DecayRates(beta1=beta1).slope_variance == pytest.approx(squares)
