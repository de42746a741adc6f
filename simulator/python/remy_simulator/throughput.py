"""Measures of throughput: what an objective may take for it, as the simulator declares them."""

from typing import Final

from remy_proto.v1 import spec_pb2
from remy_simulator import _native

#: By their numbers in messages, the usual one first.
MEASURES: Final = {measure.number: measure for measure in _native.throughput_measures()}


def counts_flows(objective: spec_pb2.Objective) -> bool:
    """Whether the objective's throughput is of flows, which loads by bytes alone complete."""
    measure = MEASURES.get(objective.throughput)
    return measure is not None and measure.counts_flows
