"""The definitions of throughput that an objective can use, as the simulator declares them."""

from typing import Final

from remy_proto.v1 import spec_pb2
from remy_simulator import _native

#: By number in messages; the default is first.
MEASURES: Final = {measure.number: measure for measure in _native.throughput_measures()}


def counts_flows(objective: spec_pb2.Objective) -> bool:
    """Returns True if the objective counts completed flows, which needs by-bytes traffic."""
    measure = MEASURES.get(objective.throughput)
    return measure is not None and measure.counts_flows
