"""Requests with protocols, transports and queues."""

from __future__ import annotations

import itertools
import math
import random
from array import array
from typing import Any

import pytest

import remy_simulator
from remy_proto.v1 import evaluation_pb2, rule_table_pb2, spec_pb2
from remy_simulator import columns, messages, registry
from remy_simulator.objective import specimen_score

_BY_BYTES = evaluation_pb2.Traffic(exponential_bytes={"mean_bytes": 150e3}, mean_off_ms=200.0)
_BY_TIME = evaluation_pb2.Traffic(exponential_time={"mean_ms": 900.0}, mean_off_ms=300.0)
_POISSON = evaluation_pb2.Traffic(
    empirical_bytes={"name": "icsi", "extra_bytes": 16384}, poisson={"mean_interval_ms": 300.0}
)
_INCAST = evaluation_pb2.Traffic(constant_bytes={"bytes": 30e3}, barrier={"pause_ms": 20.0})
_OBJECTIVE = spec_pb2.Objective(alpha=1.0, beta=1.0, delta=0.5)


def _table() -> rule_table_pb2.RuleTable:
    table = remy_simulator.RuleTable([0, 1, 2], [([], (0.9, 4.0, 1.5))])
    return rule_table_pb2.RuleTable.FromString(table.split(0, [(1, 2.0), (2, 1.3)]).to_message())


def _specimen(*senders: evaluation_pb2.SenderGroup, **changes: Any) -> evaluation_pb2.Specimen:
    usual = {"key": 11, "link_rate_packets_per_ms": 0.8, "rtt_ms": 70.0, "buffer_packets": 30}
    return evaluation_pb2.Specimen(senders=senders, **(usual | changes))


def _protocol(
    name: str, count: int = 1, traffic: evaluation_pb2.Traffic = _BY_BYTES, **choice: Any
) -> evaluation_pb2.SenderGroup:
    return evaluation_pb2.SenderGroup(
        count=count, traffic=traffic, protocol={"name": name, **choice}
    )


def _remycc(transport: str = "", count: int = 1) -> evaluation_pb2.SenderGroup:
    group = evaluation_pb2.SenderGroup(count=count, traffic=_BY_TIME)
    if transport:
        group.transport.name = transport
    return group


def _request(
    *specimens: evaluation_pb2.Specimen, tables: int = 1, **changes: Any
) -> evaluation_pb2.EvaluationRequest:
    request = evaluation_pb2.EvaluationRequest(
        tables=[_table()] * tables,
        candidates=[evaluation_pb2.Candidate()],
        specimens=specimens,
        duration_ms=5000.0,
        seed=3,
        **changes,
    )
    return columns.packed(request)


def _mixed(**changes: Any) -> evaluation_pb2.EvaluationRequest:
    """Makes a request with plain and other specimens, in turn."""
    return _request(
        _specimen(_remycc(count=2)),
        _specimen(_remycc(), _protocol("cubic", 2), key=12),
        _specimen(_remycc(count=3), key=13),
        _specimen(
            _protocol("newreno", traffic=_BY_TIME),
            _remycc("ns2"),
            key=14,
            bottleneck={"packet_bytes": 1260.0, "ack_bytes": 50.0},
        ),
        _specimen(_remycc("tcp"), _protocol("vegas"), key=15),
        _two_links(16),
        evaluation_pb2.Specimen(
            key=17,
            link_rate_packets_per_ms=0.8,
            rtt_ms=70.0,
            senders=[evaluation_pb2.SenderGroup(count=2, traffic=_INCAST)],
        ),
        **changes,
    )


#: Number of senders in the specimens of `_mixed`.
_SENDERS = 17


def _two_links(key: int) -> evaluation_pb2.Specimen:
    """RemyCCs over one link and over both, a protocol over the other; ACKs return over a third."""
    specimen = evaluation_pb2.Specimen(
        key=key,
        link_rate_packets_per_ms=0.8,
        rtt_ms=70.0,
        bottleneck={"ack_bytes": 40.0},
        links=[
            {"rate_packets_per_ms": 0.8, "delay_ms": 15.0, "buffer_packets": 30},
            {"rate_packets_per_ms": 1.2, "delay_ms": 15.0, "queue": {"name": "codel"}},
            {"rate_packets_per_ms": 0.5, "delay_ms": 5.0, "loss_probability": 0.01},
        ],
        senders=[_remycc(), _remycc(), _protocol("newreno", traffic=_POISSON)],
    )
    for group, links in zip(specimen.senders, ([0, 1], [0], [1]), strict=True):
        group.route.links.extend(links)
        group.route.return_links.append(2)
        group.route.delay_ms = 3.0
    return specimen


def test_specimens_that_are_not_plain_round_trip_through_columns() -> None:
    specimens = columns.unpack_specimens(_mixed().specimen_columns)
    assert columns.unpack_specimens(columns.pack_specimens(specimens)) == specimens
    assert specimens[3].bottleneck.ack_bytes == 50
    assert specimens[1].senders[1].protocol.name == "cubic"
    assert specimens[5] == _two_links(16)
    assert specimens[6].senders[0].traffic == _INCAST


@pytest.mark.parametrize("scored", [False, True])
def test_parts_make_the_whole(scored: bool) -> None:
    request = _mixed(recording=evaluation_pb2.RECORDING_USES)
    request.candidates.add().perturbation.scale = 0.2
    request.bounds.window_increment_maximum = 256.0
    request.bounds.window_multiple_maximum = 1.0
    request.bounds.intersend_minimum_ms = 0.25
    request.bounds.intersend_maximum_ms = 100.0
    if scored:
        request.objective.CopyFrom(_OBJECTIVE)
    whole = remy_simulator.evaluate_columns(request, threads=2)
    columns.check(request, whole)
    prepared = columns.PreparedRequest(columns.shared_part(request))
    for height, width in itertools.product((1, 2), (1, 2, 3)):
        slices = [
            columns.Slice(range(row, min(row + height, 2)), range(first, min(first + width, 7)))
            for row in range(0, 2, height)
            for first in range(0, 7, width)
        ]
        random.Random(height * width).shuffle(slices)
        parts = []
        for part in slices:
            outcome = prepared.evaluate(columns.slice_request(request, part))
            columns.check(request, outcome, part=part)
            parts.append((part, outcome))
        assembled = columns.assemble(request, parts)
        assert assembled.SerializeToString(deterministic=True) == whole.SerializeToString(
            deterministic=True
        )


def test_results_do_not_depend_on_threads() -> None:
    request = _mixed()
    outcomes = [remy_simulator.evaluate_columns(request, threads=threads) for threads in (1, 2, 4)]
    assert outcomes[0] == outcomes[1] == outcomes[2]
    assert len({columns.digest(request, outcome) for outcome in outcomes}) == 1


def test_scores_use_the_throughput_of_the_transport() -> None:
    request = _mixed()
    outcome = remy_simulator.evaluate_columns(request)
    request.objective.CopyFrom(_OBJECTIVE)
    (scores,) = columns.score_rows(request, remy_simulator.evaluate_columns(request))
    specimens = columns.unpack_specimens(request.specimen_columns)
    results = columns.specimen_outcomes(request, outcome)
    assert scores == [
        specimen_score(_OBJECTIVE, specimen, result, request.duration_ms)
        for specimen, result in zip(specimens, results, strict=True)
    ]
    datagram, cubic = results[1], results[1]
    assert datagram.transport.throughput_packets[0] == datagram.packets_received[0]
    assert cubic.transport.throughput_packets[1] == cubic.transport.packets_in_order[1]
    assert results[0].transport.throughput_packets == results[0].packets_received


def test_throughput_depends_on_packet_size() -> None:
    """In a network that is equal in packets, half the packet size gives half the throughput."""
    usual = _specimen(_protocol("newreno", traffic=_BY_TIME))
    small = _specimen(_protocol("newreno", traffic=_BY_TIME), bottleneck={"packet_bytes": 750.0})
    request = _request(usual, small, tables=0, objective=spec_pb2.Objective(alpha=0.0))
    ((usual_mbps, small_mbps),) = columns.score_rows(
        request, remy_simulator.evaluate_columns(request)
    )
    assert usual_mbps is not None
    assert small_mbps == pytest.approx(usual_mbps / 2)


def test_the_general_network_equals_the_dumbbell_for_datagrams() -> None:
    general = _request(_specimen(_remycc("datagram", 3)))
    plain = _request(_specimen(_remycc(count=3)))
    slow, fast = map(remy_simulator.evaluate_columns, (general, plain))
    assert slow.senders.HasField("transport")
    assert not fast.senders.HasField("transport")
    slow.senders.ClearField("transport")
    assert slow == fast


def test_uses_of_rules_are_counted_beside_protocols() -> None:
    request = _request(
        _specimen(_remycc("tcp", 2), _protocol("cubic")), recording=evaluation_pb2.RECORDING_MEMORY
    )
    outcome = remy_simulator.evaluate_columns(request)
    assert sum(outcome.rule_uses) > 100
    assert sum(outcome.memory.counts) == 4 * sum(outcome.rule_uses)


def test_rules_are_recorded_on_several_links_and_behind_barriers() -> None:
    """Every recording that designs use on the dumbbell."""
    barrier = evaluation_pb2.SenderGroup(count=2, traffic=_INCAST)
    for specimen in (_two_links(1), _specimen(barrier)):
        request = _request(specimen, recording=evaluation_pb2.RECORDING_SHARES)
        outcome = remy_simulator.evaluate_columns(request)
        columns.check(request, outcome)
        assert sum(uses > 0 for uses in outcome.rule_uses) > 1
        assert sum(outcome.memory.counts) == 4 * sum(outcome.rule_uses)
        request.recording = evaluation_pb2.RECORDING_USED
        request.objective.CopyFrom(_OBJECTIVE)
        scored = remy_simulator.evaluate_columns(request)
        columns.check(request, scored)
        rules = sum(uses > 0 for uses in outcome.rule_uses)
        assert int.from_bytes(scored.used_rules, "little").bit_count() == rules
        ((score,),) = columns.score_rows(request, scored)
        assert score is not None


def test_an_idle_link_only_adds_delay() -> None:
    """RemyCCs that never queue at the first link behave as with the second link at a longer RTT."""

    def with_links(*links: dict[str, float]) -> evaluation_pb2.EvaluationRequest:
        return _request(
            evaluation_pb2.Specimen(
                key=5,
                link_rate_packets_per_ms=0.5,
                rtt_ms=64.0,
                links=links,
                senders=[_remycc(count=3)],
            )
        )

    bottleneck = {"rate_packets_per_ms": 0.5, "buffer_packets": 30}
    idle = {"rate_packets_per_ms": 0.5, "delay_ms": 8.0}
    one = with_links(bottleneck | {"delay_ms": 10.0})
    two = with_links(bottleneck, idle)
    # Nothing queues after the first link, which adds 2 ms: 8 + 2 is 10.
    alone, behind = (remy_simulator.evaluate_columns(each).senders for each in (one, two))
    assert alone == behind
    plain = _request(_specimen(_remycc(count=3), key=5, link_rate_packets_per_ms=0.5, rtt_ms=74.0))
    dumbbell = remy_simulator.evaluate_columns(plain).senders
    alone.ClearField("transport")
    assert dumbbell == alone


def test_protocols_alone_need_no_table() -> None:
    request = _request(_specimen(_protocol("cubic", 2)), tables=0)
    outcome = remy_simulator.evaluate_columns(request)
    columns.check(request, outcome)
    (result,) = columns.specimen_outcomes(request, outcome)
    transport = result.transport
    assert sum(transport.flows) > 2
    assert len(transport.completion_ms) == 8 * sum(transport.flows)
    assert min(memoryview(transport.completion_ms).cast("d")) > 70


def test_rtts_are_means_of_the_senders_samples() -> None:
    """Cubic on TCP samples RTTs, a RemyCC on datagrams does not."""
    request = _mixed()
    outcome = remy_simulator.evaluate_columns(request)
    transport = columns.specimen_outcomes(request, outcome)[1].transport
    none, *sampled = messages.sampled_rtts(transport)
    assert none == (None, None)
    # The path's RTT, and a queue of at most 30 packets and one in transmission.
    longest_ms = 70 + 31 / 0.8
    assert len(sampled) == 2
    assert all(each and 70 < each < longest_ms for rtts in sampled for each in rtts)
    assert all(rtts.by_packets_ms != rtts.over_time_ms for rtts in sampled)


def test_messages_without_sampled_rtts_can_be_read() -> None:
    request = _mixed()
    outcome = remy_simulator.evaluate_columns(request)
    old = evaluation_pb2.EvaluationOutcome.FromString(outcome.SerializeToString())
    for name in ("sampled_rtt_ms", "sampled_rtt_over_time_ms"):
        old.senders.transport.ClearField(name)
    results = columns.specimen_outcomes(request, old)
    assert messages.sampled_rtts(results[1].transport) == [(None, None)] * 3
    assert columns.digest(request, old) == columns.digest(request, outcome)


@pytest.mark.parametrize("field", ["sampled_rtt_ms", "sampled_rtt_over_time_ms"])
@pytest.mark.parametrize(
    ("rtts_ms", "words"),
    [
        ([], "one entry for each of its 17 senders"),
        ([90.0] * (_SENDERS - 1), "one entry for each of its 17 senders"),
        ([90.0] * (_SENDERS - 1) + [-1.0], "an RTT that is not between 0"),
        ([90.0] * (_SENDERS - 1) + [math.nan], "an RTT that is not between 0"),
    ],
)
def test_impossible_rtts_are_refused(field: str, rtts_ms: list[float], words: str) -> None:
    request = _mixed()
    outcome = remy_simulator.evaluate_columns(request)
    transport = outcome.senders.transport
    assert len(getattr(transport, field)) == 8 * _SENDERS
    setattr(transport, field, array("d", rtts_ms).tobytes())
    with pytest.raises(remy_simulator.ImpossibleOutcome, match=words):
        columns.check(request, outcome)


@pytest.mark.parametrize(
    ("specimen", "words"),
    [
        (_specimen(_protocol("nonesuch")), ('no protocol "nonesuch"', "cubic")),
        (_specimen(_protocol("cubic", variant="rfc1")), ('no variant "rfc1"', "rfc9438")),
        (
            _specimen(_protocol("cubic", parameters=[{"name": "beta", "value": 2.0}])),
            ("beta", "0.1 to 0.99", "not 2"),
        ),
        (
            _specimen(_protocol("cubic"), bottleneck={"queue": {"name": "fifo"}}),
            ('no queue "fifo"', "drop-tail"),
        ),
        (_specimen(_remycc("udp")), ('no transport "udp"', "datagram")),
        (_specimen(_protocol("cubic"), bottleneck={"packet_bytes": 0.5}), ("packet_bytes", "1 to")),
        (_specimen(_remycc()), ("at least one rule table",)),
        (
            _specimen(_protocol("cubic"), links=[{"rate_packets_per_ms": 1.0}]),
            ("specimen has links", "buffer"),
        ),
        (
            _specimen(
                evaluation_pb2.SenderGroup(count=1, traffic=_BY_TIME, route={"links": [1]}),
            ),
            ("senders[0].route.links has link 1", "from 0"),
        ),
        (
            _specimen(evaluation_pb2.SenderGroup(count=1, traffic={"mean_off_ms": 1.0})),
            ("traffic.on is missing",),
        ),
        (
            _specimen(
                evaluation_pb2.SenderGroup(count=1, traffic={"intervals": {"begin_ms": [1.0, 2.0]}})
            ),
            ("intervals must have an end_ms",),
        ),
    ],
)
def test_invalid_requests_give_one_sentence(
    specimen: evaluation_pb2.Specimen, words: tuple[str, ...]
) -> None:
    request = _request(specimen, tables=0 if "table" in words[0] else 1)
    with pytest.raises(remy_simulator.InvalidRequest) as refusal:
        remy_simulator.evaluate_columns(request)
    assert all(word in str(refusal.value) for word in words), refusal.value
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("packets_in_order", [10**9] * _SENDERS),
        ("packets_retransmitted", [10**9] * _SENDERS),
        ("throughput_packets", [10**9] * _SENDERS),
        ("timeouts", []),
        ("flows", [0] * _SENDERS),
        ("flow_packets", []),
    ],
)
def test_impossible_results_are_refused(field: str, values: list[int]) -> None:
    request = _mixed()
    outcome = remy_simulator.evaluate_columns(request)
    column = getattr(outcome.senders.transport, field)
    assert len(column) == _SENDERS or field == "flow_packets"
    del column[:]
    column.extend(values)
    with pytest.raises(remy_simulator.ImpossibleOutcome):
        columns.check(request, outcome)


def test_transport_columns_are_required_unless_specimens_are_plain() -> None:
    request, plain = _mixed(), _request(_specimen(_remycc()))
    outcome, plain_outcome = map(remy_simulator.evaluate_columns, (request, plain))
    outcome.senders.ClearField("transport")
    with pytest.raises(remy_simulator.ImpossibleOutcome, match="lacks the transport columns"):
        columns.check(request, outcome)
    plain_outcome.senders.transport.SetInParent()
    with pytest.raises(remy_simulator.ImpossibleOutcome, match="all specimens"):
        columns.check(plain, plain_outcome)


def test_every_entry_has_a_source_and_defaults_in_range() -> None:
    for kind in registry.Registry:
        entries = registry.entries(kind)
        assert entries
        for name, entry in entries.items():
            registry.check(kind, evaluation_pb2.Choice(name=name))
            for variant in entry.variants:
                for parameter in variant.parameters:
                    assert parameter.minimum <= parameter.default <= parameter.maximum, parameter
                    assert parameter.description


def test_a_choice_has_one_canonical_message() -> None:
    def choice(variant: str, **parameters: float) -> evaluation_pb2.Choice:
        return evaluation_pb2.Choice(
            name="cubic",
            variant=variant,
            parameters=[{"name": name, "value": value} for name, value in parameters.items()],
        )

    def canonical(message: evaluation_pb2.Choice) -> evaluation_pb2.Choice:
        return registry.canonical(registry.Registry.PROTOCOL, message)

    assert canonical(choice("rfc9438", beta=0.7)) == evaluation_pb2.Choice(name="cubic")
    assert canonical(choice("", beta=0.8, c=0.5)) == canonical(choice("rfc9438", c=0.5, beta=0.8))
    assert canonical(choice("linux")).variant == "linux"
