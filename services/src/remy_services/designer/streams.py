"""Where a search's randomness comes from: streams named by the seed, a purpose and counters.

There is no generator with a state of its own. What a step draws depends on nothing but its name, so
that a checkpoint holds counters only and a repeated step repeats its draws.
"""

from __future__ import annotations

import remy_simulator
from remy_farm.v1 import evaluation_pb2, progress_pb2, spec_pb2
from remy_services.spec import draw_specimens

# The last element of a stream's path: the simulations must not share draws with the model.
_SIMULATION = 0
_NETWORK = 1


class Streams:
    """The random streams of one design."""

    def __init__(self, spec: spec_pb2.DesignSpec) -> None:
        self._spec = spec

    def simulation_seed(self, purpose: progress_pb2.StepPurpose, *path: int) -> int:
        """The seed of the requests that `purpose` and `path` (counters) name."""
        return remy_simulator.mix(self._spec.search.seed, purpose, *path, _SIMULATION)

    def specimens(
        self, purpose: progress_pb2.StepPurpose, *path: int, count: int, stratified: bool = False
    ) -> list[evaluation_pb2.Specimen]:
        """The `count` networks, drawn from the model, that `purpose` and `path` name."""
        seed = remy_simulator.mix(self._spec.search.seed, purpose, *path, _NETWORK)
        return draw_specimens(self._spec, seed=seed, count=count, stratified=stratified)
