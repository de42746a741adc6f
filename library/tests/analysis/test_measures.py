"""Tests measures of senders and specimens, and statistics."""

import math
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remy_farm.evaluation.measures import (
    PERCENTS,
    link_rate_mbps,
    mean,
    measure_packets,
    measure_senders,
    measure_specimen,
    median,
    percentile,
    standard_error,
)
from remy_farm.specification.links import link_rate_packets_per_ms
from remy_proto.v1 import evaluation_pb2
from remy_simulator import _native

# 12 Mbit/s is one packet of 1500 bytes per millisecond.
SPECIMEN = evaluation_pb2.Specimen(link_rate_packets_per_ms=1, rtt_ms=100)
OUTCOME = evaluation_pb2.SpecimenOutcome(
    packets_received=[200, 0, 100],
    packets_sent=[201, 0, 130],
    packets_lost=[0, 0, 30],
    on_ms=[1000, 0, 400],
    share_ms=[500, 0, 200],
    delay_sum_ms=[200 * 125, 0, 100 * 200],
    first_on_ms=[0, 1000, 3],
)


def test_sender_measures_are_in_mbps_and_ms() -> None:
    first, idle, third = measure_senders(OUTCOME)
    assert first.throughput_mbps == pytest.approx(0.2 * 12)
    assert first.throughput_equal_share_mbps == pytest.approx(0.4 * 12)
    assert first.delay_ms == 125
    assert (third.packets_received, third.packets_lost, third.on_ms) == (100, 30, 400)
    assert (idle.throughput_mbps, idle.throughput_equal_share_mbps) == (0, 0)
    assert idle.delay_ms is None


def test_percentiles_are_of_all_packets_of_the_senders() -> None:
    outcome = evaluation_pb2.SpecimenOutcome()
    outcome.CopyFrom(OUTCOME)
    # Buckets of RTTs of about 100, 125 and 200 ms.
    short, medium, long = (
        next(bucket for bucket in range(1 << 19) if _native.histogram_middle(bucket) >= rtt_ms)
        for rtt_ms in (100, 125, 200)
    )
    transport = outcome.transport
    transport.rtt_histogram_sizes[:] = [2, 0, 1]
    transport.rtt_histogram_buckets[:] = [short, medium, long]
    transport.rtt_histogram_counts[:] = [101, 99, 10]
    transport.packets_retransmitted[:] = [1, 0, 30]
    transport.flows[:] = [2, 0, 1]
    transport.flow_packets[:] = [1, 1, 1]
    transport.completion_ms = struct.pack("<3d", 30, 10, 20)
    for name in ("packets_in_order", "packets_marked", "timeouts"):
        getattr(transport, name)[:] = [0, 0, 0]
    transport.throughput_packets[:] = transport.delay_samples[:] = [200, 0, 100]
    first, idle, third = measure_senders(outcome)
    assert (first.rtt_p50_ms, first.rtt_p95_ms) == pytest.approx((100, 125), rel=0.004)
    assert (idle.rtt_p50_ms, idle.loss, idle.packets_retransmitted) == (None, None, 0)
    assert (third.loss, third.packets_retransmitted) == (30 / 130, 30)
    assert (first.completion_p50_ms, first.completion_p99_ms) == (10, 30)
    together = measure_packets(outcome, range(3))
    assert together.rtt_p50_ms == pytest.approx(125, rel=0.004)
    assert together.rtt_p95_ms == pytest.approx(125, rel=0.004)
    assert together.rtt_p99_ms == pytest.approx(200, rel=0.004)
    assert (together.completion_p50_ms, together.packets_retransmitted) == (20, 31)
    assert together.loss == 30 / 331


@given(st.lists(st.integers(0, 1000), min_size=1), st.sampled_from(PERCENTS))
def test_a_percentile_is_the_least_value_that_so_many_do_not_exceed(
    values: list[int], percent: int
) -> None:
    ascending = sorted(values)
    found = percentile(ascending, percent)
    assert found is not None
    share = len(values) * percent / 100
    assert sum(value <= found for value in values) >= share
    assert sum(value < found for value in values) < share


def test_means_leave_out_senders_without_packets() -> None:
    measures = measure_specimen(SPECIMEN, measure_senders(OUTCOME))
    assert measures.throughput_over_link_rate == pytest.approx((0.4 + 0.5) / 2)
    assert measures.delay_over_rtt == pytest.approx((1.25 + 2) / 2)
    scores = math.log2(0.4 / 1.25), math.log2(0.5 / 2)
    assert measures.normalized_score_per_sender == pytest.approx(sum(scores) / 2)
    assert (measures.senders, measures.senders_left_out) == (3, 1)


def test_a_specimen_without_packets_has_no_means() -> None:
    nothing = evaluation_pb2.SpecimenOutcome(
        packets_received=[0],
        packets_sent=[5],
        packets_lost=[5],
        on_ms=[10],
        share_ms=[10],
        delay_sum_ms=[0],
        first_on_ms=[0],
    )
    measures = measure_specimen(SPECIMEN, measure_senders(nothing))
    assert measures.throughput_over_link_rate is None
    assert measures.delay_over_rtt is None
    assert measures.normalized_score_per_sender is None


def test_link_rate_conversion_round_trip() -> None:
    assert link_rate_packets_per_ms(15) == 1.25
    assert link_rate_mbps(evaluation_pb2.Specimen(link_rate_packets_per_ms=1.25)) == 15


def test_statistics_of_too_few_values_are_none() -> None:
    assert mean([]) is None
    assert median([]) is None
    assert standard_error([3.0]) is None


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=50), st.floats(-1e3, 1e3))
def test_standard_error_ignores_offset_and_order(values: list[float], shift: float) -> None:
    error = standard_error(values)
    assert error == standard_error(values[::-1])
    assert error == pytest.approx(standard_error([v + shift for v in values]), abs=1e-6, rel=1e-6)


def test_the_standard_error_of_a_known_sample() -> None:
    # The deviations are 1.5, 0.5, 0.5 and 1.5, so the variance is 5/3.
    assert standard_error([1, 2, 3, 4]) == pytest.approx(math.sqrt(5 / 3 / 4))
