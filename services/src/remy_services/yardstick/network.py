"""The yardstick's network model, and the specimens that are used for nothing but measuring."""

from __future__ import annotations

from collections.abc import Iterable

import remy_simulator
from remy_farm.v1 import evaluation_pb2, spec_pb2
from remy_services.spec import draw_specimens, spec_of_tree, vary
from remy_services.spec.text import Tree
from remy_simulator import RuleTable
from remy_simulator.messages import from_native

SPECIMENS = 512
SIMULATED_SECONDS = 100.0
#: A sender on for less is left out: no candidate can influence its score by much.
MINIMUM_ON_MS = 500.0

_MODEL: Tree = {
    "name": "general-purpose",
    "network": {
        "link_rate_mbps": {"uniform": [10, 20]},
        "rtt_ms": {"uniform": [100, 200]},
        "senders": {"integer_uniform": [1, 16]},
        "buffer": "infinite",
    },
    "traffic": {"exponential_time": {"mean_ms": 5000}, "mean_off_ms": 5000},
    "objective": {"alpha": 1, "beta": 1, "minimum_on_ms": MINIMUM_ON_MS},
    "search": {"mode": "joint"},
}

# Names the held-out specimens. The streams of a search are named by its seed and small numbers, in
# paths of another length.
_HELD_OUT = 0x7961726473746963
_SIMULATION = 0
_NETWORK = 1
_MS_PER_SECOND = 1000.0


def benchmark_spec(
    delta: float = 1.0, settings: Iterable[tuple[str, Tree]] = (), *, source: str = "the benchmark"
) -> spec_pb2.DesignSpec:
    """A design for the yardstick's networks.

    `settings` are (path, value) pairs as `vary` takes them. Raises SpecError; `source` is what it
    names.
    """
    tree = vary(_MODEL, "objective.delta", delta)
    for path, value in settings:
        tree = vary(tree, path, value, source=source)
    return spec_of_tree(tree, source)


def held_out_request(table: RuleTable, specimens: int) -> evaluation_pb2.EvaluationRequest:
    """The table on the first `specimens` of the held-out specimens: random, not stratified, and the
    same for every table."""
    drawn = draw_specimens(
        benchmark_spec(), seed=remy_simulator.mix(_HELD_OUT, _NETWORK), count=specimens
    )
    return evaluation_pb2.EvaluationRequest(
        tables=[from_native(table)],
        candidates=[evaluation_pb2.Candidate()],
        specimens=drawn,
        duration_ms=SIMULATED_SECONDS * _MS_PER_SECOND,
        seed=remy_simulator.mix(_HELD_OUT, _SIMULATION),
    )
