"""Throughput measures of specifications match those that the simulator declares."""

from __future__ import annotations

import pytest

from remy_proto.v1 import evaluation_pb2, spec_pb2
from remy_simulator import InvalidRequest, PreparedRequest
from remy_simulator.throughput import MEASURES, counts_flows

_PREFIX = "THROUGHPUT_MEASURE_"


def test_the_measures_of_specifications_are_declared_by_number_and_name() -> None:
    specified = {
        number: name.removeprefix(_PREFIX).lower()
        for name, number in spec_pb2.ThroughputMeasure.items()
        if number != spec_pb2.THROUGHPUT_MEASURE_UNSPECIFIED
    }
    assert {number: measure.name for number, measure in MEASURES.items()} == specified


def test_completion_alone_counts_flows() -> None:
    assert [
        name
        for name, _ in spec_pb2.ThroughputMeasure.items()
        if counts_flows(spec_pb2.Objective(throughput=name))
    ] == ["THROUGHPUT_MEASURE_COMPLETION"]


def test_an_unknown_measure_is_rejected() -> None:
    newer = bytes([spec_pb2.Objective.THROUGHPUT_FIELD_NUMBER << 3, 99])
    request = evaluation_pb2.EvaluationRequest(objective=spec_pb2.Objective.FromString(newer))
    with pytest.raises(InvalidRequest, match="99, which is not one of equal_share, on_time, comp"):
        PreparedRequest(request)
