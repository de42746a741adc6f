"""Strategies for tables and memories, and a small sample of networks, to test explanations."""

from __future__ import annotations

from hypothesis import strategies as st

import remy_simulator
from remy_farm.analysis.explain import NetworkSample
from remy_farm.analysis.trees import Box, Branch, Leaf, Tree, table_of
from remy_farm.specification import parse_spec
from remy_simulator import RuleTable
from remy_simulator.messages import Action

DOMAIN_UPPER = 8.0
_THRESHOLDS = [0.0, 0.5, 1.0, 1.0 + 2**-24, 2.0, 3.0, 7.0]
# Values on the thresholds, between them, and outside of the domain.
_VALUES = [-1.0, *_THRESHOLDS, 0.25, 0.75, 1.5, 2.5, 5.0, 7.5, 8.0, 100.0]

Memory = tuple[float, float, float, float]

actions = st.builds(
    Action,
    st.sampled_from([0.0, 0.5, 0.9, 1.0, 1.5]),
    st.sampled_from([-10.0, 0.0, 3.0, 40.5]),
    st.sampled_from([0.0, 0.25, 3.0, 12.0]),
)
memories = st.tuples(*(st.sampled_from(_VALUES) for _ in range(4)))


@st.composite
def tables(draw: st.DrawFn, actions: st.SearchStrategy[Action] = actions) -> RuleTable:
    """Draws tables of one to four signals; thresholds are often equal in different nodes.

    A threshold may equal the lower bound of its region, as in published tables.
    """
    signals = sorted(draw(st.sets(st.integers(0, 3), min_size=1)))

    def node(box: Box, depth: int) -> Tree[Action]:
        axes = draw(st.sets(st.sampled_from(signals), max_size=2)) if depth else set()
        thresholds = []
        for axis in sorted(axes, reverse=draw(st.booleans())):
            inside = [v for v in _THRESHOLDS if box.lower[axis] <= v < box.upper[axis]]
            if inside:
                thresholds.append((axis, draw(st.sampled_from(inside))))
        if not thresholds:
            return Leaf(draw(actions))
        return Branch(
            tuple(thresholds),
            tuple(
                node(box.child(thresholds, number), depth - 1)
                for number in range(1 << len(thresholds))
            ),
        )

    return table_of(node(Box.whole(DOMAIN_UPPER), 3), signals, DOMAIN_UPPER)


def small_sample(specimens: int = 6) -> NetworkSample:
    """Returns a sample of short simulations of one or two senders."""
    spec = parse_spec(
        """
name: small
network: {rate_mbps: {uniform: [8, 16]}, rtt_ms: 50, senders: {integer_uniform: [1, 2]},
  traffic: {exponential_time: {mean_ms: 1000}, mean_off_ms: 200}}
search: {simulated_seconds: 4}
stop: {epochs: 1}
"""
    )
    return NetworkSample(
        spec, seed=5, specimens=specimens, evaluate=remy_simulator.evaluate_columns
    )
