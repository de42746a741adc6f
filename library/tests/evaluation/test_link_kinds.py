"""Tests links in evaluation requests: traces, impairments, slices and refusals."""

import hashlib

import pytest

import remy_simulator
from remy_proto.v1 import evaluation_pb2, spec_pb2
from remy_simulator import columns

SEMANTICS = spec_pb2.TRACE_SEMANTICS_MAHIMAHI


def recording(*times_us: int) -> evaluation_pb2.Trace:
    held = b"".join(time.to_bytes(8, "little") for time in times_us)
    return evaluation_pb2.Trace(sha256=hashlib.sha256(held).digest(), opportunities_us=held)


def request(
    link: evaluation_pb2.Link, *traces: evaluation_pb2.Trace, specimens: int = 1
) -> evaluation_pb2.EvaluationRequest:
    traffic = evaluation_pb2.Traffic(always={})
    return evaluation_pb2.EvaluationRequest(
        candidates=[evaluation_pb2.Candidate()],
        specimens=[
            evaluation_pb2.Specimen(
                key=key,
                link_rate_packets_per_ms=1.0,
                rtt_ms=50.0,
                links=[link],
                senders=[{"count": 2, "traffic": traffic, "protocol": {"name": "cubic"}}],
            )
            for key in range(1, specimens + 1)
        ],
        duration_ms=3000.0,
        traces=traces,
    )


def following(trace: evaluation_pb2.Trace) -> evaluation_pb2.Link:
    driver = {"sha256": trace.sha256, "semantics": SEMANTICS}
    return evaluation_pb2.Link(trace=driver, buffer_packets=50)


def test_a_trace_limits_a_link_s_deliveries() -> None:
    trace = recording(*range(2000, 100_001, 2000))
    outcome = remy_simulator.evaluate_columns(request(following(trace), trace))
    # One packet per 2 ms, after the first have arrived.
    assert 1400 < sum(outcome.senders.packets_received) <= 1500


def test_traces_work_with_slices_and_threads() -> None:
    trace = recording(*range(1000, 90_001, 1500))
    whole = columns.packed(request(following(trace), trace, specimens=4))
    expected = remy_simulator.evaluate_columns(whole)
    assert remy_simulator.evaluate_columns(whole, threads=3) == expected
    received: list[int] = []
    for number in range(4):
        part = columns.slice_request(whole, columns.Slice(range(1), range(number, number + 1)))
        part.MergeFrom(columns.shared_part(whole))
        received += remy_simulator.evaluate_columns(part).senders.packets_received
    assert received == expected.senders.packets_received[:]


KINDS = {
    "schedule": {"schedule": {"steps": [{"at_ms": 500.0, "rate_packets_per_ms": 0.2}]}},
    "walk": {"walk": {"every_ms": 100.0, "rate_packets_per_ms": {"least": 0.1, "most": 0.5}}},
    "bursts": {"gilbert_elliott": {"good_to_bad": 0.1, "bad_to_good": 0.3, "loss_in_bad": 0.9}},
    "policer": {"policer": {"rate_packets_per_ms": 0.3, "burst_packets": 5.0}},
    "jitter": {"jitter_box": {"periodic": {"period_ms": 40.0}}},
}


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_each_kind_of_impairment_reduces_throughput(kind: dict[str, object]) -> None:
    plain = evaluation_pb2.Link(rate_packets_per_ms=1.0, buffer_packets=30)
    link = evaluation_pb2.Link(**kind)  # type: ignore[arg-type]
    link.MergeFrom(plain)
    results = [remy_simulator.evaluate_columns(request(each)) for each in (plain, link)]
    before, after = (sum(each.senders.packets_received) for each in results)
    assert 0 < after < before


GOOD = recording(1000, 2000)
REFUSED = {
    "unknown hash": (request(following(GOOD)), "is not one of the request's 0"),
    "other bytes": (
        request(
            following(GOOD),
            evaluation_pb2.Trace(sha256=GOOD.sha256, opportunities_us=bytes(16)),
        ),
        "has another SHA-256",
    ),
    "unsorted": (
        request(following(recording(3000, 2000)), recording(3000, 2000)),
        "times must not decrease",
    ),
    "empty": (request(following(recording()), recording()), "opportunit"),
    "semantics": (
        request(evaluation_pb2.Link(trace={"sha256": GOOD.sha256}), GOOD),
        "must be 1 .ns2., 2 .mahimahi. or 3 .cellsim.",
    ),
}


@pytest.mark.parametrize(("broken", "problem"), REFUSED.values(), ids=REFUSED)
def test_an_unusable_trace_is_refused(
    broken: evaluation_pb2.EvaluationRequest, problem: str
) -> None:
    with pytest.raises(remy_simulator.InvalidRequest, match=problem):
        remy_simulator.evaluate_columns(broken)


@pytest.mark.parametrize("protocol", ["cubic", "newreno"])
def test_a_flow_survives_loss_bursts_with_repeated_timeouts(protocol: str) -> None:
    """The loss chain makes one step per packet, so that each step in a burst costs a timeout.

    Timeouts double up to a minute (RFC 6298), so that 124 kB may take an hour at a loss of 60 %.
    """
    link = evaluation_pb2.Link(rate_packets_per_ms=0.54, delay_ms=50, buffer_packets=77)
    link.gilbert_elliott.good_to_bad, link.gilbert_elliott.bad_to_good = 0.185, 0.126
    link.gilbert_elliott.loss_in_good, link.gilbert_elliott.loss_in_bad = 0.1, 0.976
    transport = {"name": "tcp", "variant": "ns-2"}
    whole = request(link, specimens=3)
    for specimen in whole.specimens:
        del specimen.senders[:]
        group = specimen.senders.add(count=1, protocol={"name": protocol}, transport=transport)
        group.traffic.constant_bytes.bytes, group.traffic.mean_off_ms = 124_000, 1e12
        group.first_on_ms = 0
    whole.duration_ms = 1e8
    results = remy_simulator.evaluate_columns(whole).senders.transport
    assert list(results.flows) == [1, 1, 1]
    completion_ms = memoryview(results.completion_ms).cast("d")
    for time_ms, timeouts in zip(completion_ms, results.timeouts, strict=True):
        assert timeouts > 40
        # A timeout takes at least some seconds and at most a minute.
        assert 5_000 * timeouts < time_ms < 60_000 * timeouts + 30_000


@pytest.mark.parametrize("queue", ["drop-tail", "codel", "fq-codel", "sfq-codel"])
@pytest.mark.parametrize("semantics", ["NS2", "CELLSIM", "MAHIMAHI"])
def test_a_queue_drops_alike_before_a_regular_trace_and_a_constant_rate(
    queue: str, semantics: str
) -> None:
    """CoDel decides about a packet when the link dequeues it. With the semantics of ns-2 that is as
    soon as the packet before has left; with those that count bytes it is at the opportunity, one
    packet time later. (The C++ tests check these times exactly.)"""
    opportunities = recording(*range(1000, 20_000_001, 1000))
    rate = evaluation_pb2.Link(rate_packets_per_ms=1, buffer_packets=400, queue={"name": queue})
    traced = evaluation_pb2.Link(buffer_packets=400, queue={"name": queue})
    traced.trace.sha256 = opportunities.sha256
    traced.trace.semantics = getattr(spec_pb2, f"TRACE_SEMANTICS_{semantics}")
    drops = []
    for link in (rate, traced):
        whole = request(link, opportunities)
        whole.specimens[0].senders[0].protocol.name = "newreno"
        whole.duration_ms = 20_000
        drops.append(columns.record(whole, 100.0).links[0].dropped)
    assert drops[0] > 0
    assert drops[1] == pytest.approx(drops[0], rel=0.25)
