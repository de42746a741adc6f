"""Tests computations with actions: convergence of windows, pacing rates, means and distances."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from library.tests.analysis.tables import actions
from remy_farm.analysis.trees import (
    ActionScale,
    pacing_rate_mbps,
    settled_window_packets,
)
from remy_simulator.messages import Action

weighted = st.lists(st.tuples(actions, st.integers(0, 1000)), min_size=1, max_size=8)


@given(st.floats(0, 0.95), st.floats(-50, 50), st.floats(0, 500))
def test_settled_window_is_the_limit_of_repeated_application(
    multiple: float, increment: float, window: float
) -> None:
    for _ in range(1000):
        window = max(0.0, window * multiple + increment)
    assert settled_window_packets(Action(multiple, increment, 1.0)) == pytest.approx(
        window, abs=1e-9
    )


@pytest.mark.parametrize(
    ("multiple", "increment", "settled"),
    [
        (1.0, 1.0, None),
        (1.0, 0.0, None),
        (1.0, -1.0, 0.0),
        (1.2, -1.0, None),
        (1 - 1e-15, 10.0, 1e6),
    ],
)
def test_settled_window_of_multiples_close_to_1_or_above(
    multiple: float, increment: float, settled: float | None
) -> None:
    assert settled_window_packets(Action(multiple, increment, 1.0)) == settled


def test_pacing_rate_is_one_packet_per_intersend_time() -> None:
    assert pacing_rate_mbps(Action(1.0, 1.0, 3.0)) == 4.0
    assert pacing_rate_mbps(Action(1.0, 1.0, 0.0)) is None
    assert pacing_rate_mbps(Action(1.0, 1.0, 1e-320)) is None


@given(weighted)
def test_a_mean_is_within_the_range_of_its_actions(pairs: list[tuple[Action, int]]) -> None:
    mean = ActionScale(a for a, _ in pairs).mean([a for a, _ in pairs], [w for _, w in pairs])
    counted = [a for a, w in pairs if w] or [a for a, _ in pairs]
    for k, tolerance in enumerate((1e-9, 0.5, 0.001)):
        values = [action[k] for action in counted]
        assert min(values) - tolerance <= mean[k] <= max(values) + tolerance


@given(weighted, st.integers(1, 10))
def test_a_mean_depends_on_relative_weights_only(
    pairs: list[tuple[Action, int]], factor: int
) -> None:
    known, weights = [a for a, _ in pairs], [w for _, w in pairs]
    scale = ActionScale(known)
    assert scale.mean(known, [factor * w for w in weights]) == pytest.approx(
        scale.mean(known, weights)
    )


@given(actions, st.lists(actions, max_size=3), st.integers(1, 9))
def test_the_mean_of_equal_actions_is_that_action(
    action: Action, unused: list[Action], uses: int
) -> None:
    known = [action, *unused, action]
    weights = [uses, *(0 for _ in unused), 2 * uses]
    assert ActionScale(known).mean(known, weights) == action


def test_the_mean_is_taken_in_the_coordinates_of_an_action() -> None:
    # The mean intersend time is geometric, and so is that of 1.03 - m for window multiples m.
    pair = [Action(0.03, 0.0, 1.0), Action(0.78, 3.0, 4.0)]
    mean = ActionScale(pair).mean(pair, [5, 5])
    assert mean == pytest.approx((1.03 - 0.5, 1.0, 2.0))


@given(actions, actions)
def test_distance_is_symmetric_and_zero_for_equal_actions_only(a: Action, b: Action) -> None:
    scale = ActionScale([a, b])
    assert scale.distance(a, b) == scale.distance(b, a)
    assert (scale.distance(a, b) > 0) == (a != b)
