"""Tests links, routes, traces and fixed tables in specifications: drawing and refusals."""

from __future__ import annotations

import json
import math
import struct
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import remy_simulator
from library.tests.specification.specs import distributions, draw_specimens
from remy_farm.designer import Designer
from remy_farm.designer.actions import cycle_ms
from remy_farm.evaluation.local import LocalEvaluator
from remy_farm.evaluation.measures import evaluation_request
from remy_farm.evaluation.tasks import nominal_packets
from remy_farm.specification import (
    Networks,
    SpecError,
    content_digest,
    extent,
    load_spec,
    parse_spec,
    to_yaml,
)
from remy_farm.specification.models import outline
from remy_proto.completion import complete
from remy_proto.v1 import evaluation_pb2, spec_pb2
from remy_simulator import RuleTable
from remy_simulator.messages import from_native

_EXAMPLES = Path(__file__).parents[3] / "examples"
_TRAFFIC = "traffic: {exponential_time: {mean_ms: 1000}, mean_off_ms: 500}\n"
_TABLE = json.dumps(
    {
        "signals": ["SIGNAL_RTT_RATIO"],
        "nodes": [{"action": {"windowMultiple": 1, "windowIncrement": 1, "intersendMs": 3}}],
        "domainUpper": 163840,
    }
)


def _text(network: str, traffic: str = _TRAFFIC, rest: str = "") -> str:
    return f"name: links\nnetwork: {{{network}, {traffic.strip()}}}\n{rest}"


def _spec(network: str, traffic: str = _TRAFFIC, rest: str = "") -> spec_pb2.DesignSpec:
    return parse_spec(_text(network, traffic, rest))


def _error(network: str, traffic: str = _TRAFFIC) -> str:
    with pytest.raises(SpecError) as caught:
        parse_spec(_text(network, traffic), source="spec.yaml")
    return str(caught.value)


_QUANTITIES = st.sampled_from(["15", "[3, 4, 5]", "{uniform: [1, 20]}", "{log_uniform: [1, 100]}"])
_BUFFERS = st.sampled_from([None, "3", "{integer_uniform: [1, 500]}"])
_LOSSES = st.sampled_from(["0", "0.01", "{uniform: [0, 0.1]}"])


@given(_QUANTITIES, _QUANTITIES, _BUFFERS, _LOSSES, st.integers(0, 2**64 - 1), st.booleans())
@settings(max_examples=15)
def test_one_plain_link_draws_the_same_networks_as_a_dumbbell(
    rate: str, rtt: str, buffer: str | None, loss: str, seed: int, stratified: bool
) -> None:
    senders = "senders: {integer_uniform: [1, 9]}"
    plain = _spec(
        f"rate_mbps: {rate}, rtt_ms: {rtt}, loss_probability: {loss}, {senders}, "
        f"buffer: {'infinite' if buffer is None else f'{{packets: {buffer}}}'}, queue: codel"
    )
    waiting = "" if buffer is None else f", buffer: {{packets: {buffer}}}"
    link = f"{{name: only, rate_mbps: {rate}, loss_probability: {loss}, queue: codel{waiting}}}"
    with_link = _spec(f"rtt_ms: {rtt}, {senders}, links: [{link}]")
    drawn = [
        Networks(each).draw(seed=seed, count=12, stratified=stratified)
        for each in (plain, with_link)
    ]
    assert drawn[0] == drawn[1]
    assert outline(plain).network.rate_mbps == outline(with_link).network.rate_mbps


def test_routes_name_links_by_name_or_number() -> None:
    links = "links: [{rate_mbps: 10}, {name: second, rate_mbps: 20}, {rate_mbps: 30}]"
    one, other = (
        _spec(f"rtt_ms: 50, {links}, senders: [{{design: remycc, route: {{links: {names}}}}}]")
        for names in ("[0, second, 2]", '["0", second, "2"]')
    )
    assert one == other
    assert parse_spec(to_yaml(one)) == one


def test_an_idle_second_link_changes_no_score() -> None:
    groups = "senders: [{design: remycc, count: 3, route: {links: [busy]}}]"
    link = (
        "{name: busy, rate_mbps: {uniform: [5, 15]}, buffer: {packets: 50}, loss_probability: 0.01}"
    )
    idle = "{name: idle, rate_mbps: 1000}"
    table = RuleTable([2], [([], (1.0, 1.0, 3.0))])
    received = []
    for links in (link, f"{link}, {idle}"):
        spec = _spec(f"rtt_ms: {{uniform: [50, 90]}}, {groups}, links: [{links}]")
        request = evaluation_request(spec, table, seed=7, specimens=4, seconds=5.0)
        request.objective.CopyFrom(spec.objective)
        received.append(remy_simulator.evaluate_columns(request).scores)
    assert received[0] == received[1]


_KINDS = {
    "generator": "{generated: {maximum_packets_per_s: {uniform: [200, 900]}, semantics: cellsim}}",
    "schedule": "{rate_mbps: 10, schedule: {steps: [{at_ms: 500, rate_mbps: 2}, {at_ms: 900,"
    " rate_mbps: 10, delay_ms: 3}], repeat_after_ms: 1200}}",
    "walk": "{rate_mbps: 10, walk: {every_ms: 100, rate_mbps: [1, 20], delay_ms: [0, 5]}}",
    "bursts": "{rate_mbps: 10, gilbert_elliott: {good_to_bad: {uniform: [0, 0.1]},"
    " bad_to_good: 0.3}}",
    "policer": "{rate_mbps: 10, policer: {rate_mbps: 5, burst_packets: {uniform: [1, 50]}}}",
    "periodic": "{rate_mbps: 10, jitter_box: {periodic: {period_ms: {uniform: [1, 9]}}}}",
    "batches": "{rate_mbps: 10, jitter_box: {batches: {packets: [2, 8], longest_wait_ms: 5}}}",
    "held": "{rate_mbps: 10, jitter_box: {random: {longest_hold_ms: 5, reorders: true}}}",
    "fair": "{rate_mbps: {uniform: [1, 20]}, queue: sfq-codel, delay_ms: {uniform: [1, 9]}}",
}


@pytest.mark.parametrize("kind", _KINDS.values(), ids=_KINDS)
def test_every_kind_of_link_round_trips_and_is_drawn_and_simulated(kind: str) -> None:
    spec = _spec(f"rtt_ms: 50, senders: 2, links: [{{rate_mbps: 30}}, {kind}]")
    assert parse_spec(to_yaml(spec)) == spec
    specimens = draw_specimens(spec, seed=3, count=6)
    # A specimen depends only on its seed and index.
    assert specimens[4:] == draw_specimens(spec, seed=3, count=2, first_index=4)
    varied = any(word in kind for word in ("uniform", "[2, 8]"))
    assert (len({each.links[1].SerializeToString() for each in specimens}) > 1) == varied
    request = evaluation_request(
        spec, RuleTable([2], [([], (1.0, 1.0, 3.0))]), seed=3, specimens=2, seconds=1
    )
    assert sum(remy_simulator.evaluate_columns(request).senders.packets_received) > 0


_SEMANTICS = (
    spec_pb2.TRACE_SEMANTICS_NS2,
    spec_pb2.TRACE_SEMANTICS_MAHIMAHI,
    spec_pb2.TRACE_SEMANTICS_CELLSIM,
)


@st.composite
def _links(draw: st.DrawFn) -> spec_pb2.LinkModel:
    link = spec_pb2.LinkModel(delay_ms=draw(distributions(0.5, 1000)))
    if draw(st.booleans()):
        link.rate_mbps.CopyFrom(draw(distributions(0.01, 10_000)))
        link.policer.rate_mbps.CopyFrom(draw(distributions(0.01, 10_000)))
        link.policer.burst_packets.CopyFrom(draw(distributions(1, 1e9)))
    else:
        link.generated.maximum_packets_per_s.CopyFrom(draw(distributions(100, 100_000)))
        link.generated.semantics = draw(st.sampled_from(_SEMANTICS))
    if draw(st.booleans()):
        link.buffer.packets.CopyFrom(draw(distributions(1, 1e6, integral=True)))
        link.queue = draw(st.sampled_from(["codel", "sfq-codel", "drop-tail"]))
    if draw(st.booleans()):
        link.loss_probability.CopyFrom(draw(distributions(0, 0.999)))
        link.jitter_box.periodic.period_ms.CopyFrom(draw(distributions(0.001, 1e6)))
    else:
        link.gilbert_elliott.good_to_bad.CopyFrom(draw(distributions(0, 1)))
        link.gilbert_elliott.bad_to_good.CopyFrom(draw(distributions(0.01, 1)))
    return link


@given(st.lists(_links(), min_size=2, max_size=3), st.integers(0, 2**64 - 1))
@settings(max_examples=10)
def test_any_links_round_trip_and_are_drawn_within_their_extents(
    links: list[spec_pb2.LinkModel], seed: int
) -> None:
    spec = _spec("rtt_ms: 5, senders: 2, links: [{rate_mbps: 1}]")
    del spec.network.links[:]
    spec.network.links.extend(links)
    complete(spec)
    assert parse_spec(to_yaml(spec)) == spec
    for specimen in draw_specimens(spec, seed=seed, count=4, stratified=True):
        for link, drawn in zip(links, specimen.links, strict=True):
            low, high = extent(link.delay_ms)
            assert low <= drawn.delay_ms <= high
            if link.HasField("rate_mbps"):
                low, high = extent(link.rate_mbps)
                assert low / 12 <= drawn.rate_packets_per_ms <= high / 12
            else:
                low, high = extent(link.generated.maximum_packets_per_s)
                assert low <= drawn.generated.generator.maximum_packets_per_s <= high


def test_a_parking_lot_draws_routes_and_rtts() -> None:
    spec = _spec(
        "rtt_ms: 10, ack_bytes: 40, links: [{name: first, rate_mbps: 10, delay_ms: 75}, "
        "{name: second, rate_mbps: {uniform: [2, 4]}, delay_ms: 75}, {name: back, rate_mbps: 1}],"
        " senders: [{design: remycc, route: {links: [first, second], return_links: [back]}}, "
        "{design: remycc, route: {links: [second]}, rtt_ms: {uniform: [90, 99]}}]"
    )
    for specimen in draw_specimens(spec, seed=1, count=5):
        crossing, other = specimen.senders
        assert (crossing.route.links[:], crossing.route.return_links[:]) == ([0, 1], [2])
        assert (crossing.route.delay_ms, crossing.route.return_delay_ms) == (5, 5)
        assert other.route.links[:] == [1]
        assert 90 <= other.route.delay_ms + other.route.return_delay_ms <= 99
        # Results are relative to the slowest link and to the longest path.
        assert specimen.link_rate_packets_per_ms == 1 / 12
        assert specimen.rtt_ms == pytest.approx(
            max(160, 75 + other.route.delay_ms + other.route.return_delay_ms)
        )
        assert specimen.bottleneck.ack_bytes == 40


def test_groups_at_one_link_may_have_different_rtts() -> None:
    spec = _spec(
        "rate_mbps: 10, rtt_ms: 100, senders: [{design: remycc, rtt_ms: 50}, {design: remycc}]"
    )
    (specimen,) = draw_specimens(spec, seed=1, count=1)
    near, far = specimen.senders
    assert (near.route.delay_ms, near.route.return_delay_ms) == (25, 25)
    assert not far.HasField("route")
    assert list(outline(spec).network.rtt_ms.list.values) == [50, 100, 100]


def test_incast_draws_constant_flows_with_a_barrier() -> None:
    spec = _spec(
        "rtt_ms: 1, links: [{rate_mbps: 1000, buffer: {packets: 64}}], senders: [{design: remycc,"
        " count: {integer_uniform: [2, 64]}}]",
        "traffic: {constant_bytes: {bytes: 65536}, barrier: {pause_ms: {uniform: [1, 2]}}}\n",
        "objective: {throughput: completion, delta: 0}\n",
    )
    specimens = draw_specimens(spec, seed=1, count=4)
    assert len({each.senders[0].traffic.barrier.pause_ms for each in specimens}) == 4
    assert all(each.senders[0].traffic.constant_bytes.bytes == 65536 for each in specimens)


def test_senders_join_and_leave_at_given_times() -> None:
    spec = _spec(
        "rate_mbps: 10, rtt_ms: 100, senders: [{design: remycc}, {protocol: cubic, traffic:"
        " {intervals: {begin_ms: [1000, 3000], end_ms: [2000]}}}]",
        "traffic: {always: {}}\n",
    )
    table = RuleTable([2], [([], (0.0, 40.0, 1.0))])
    request = evaluation_request(spec, table, seed=1, specimens=1, seconds=4.0)
    on_ms = remy_simulator.evaluate_columns(request).senders.on_ms
    assert struct.unpack("<2d", on_ms) == (4000, 2000)
    assert parse_spec(to_yaml(spec)) == spec
    assert cycle_ms(spec) == spec.search.simulated_seconds * 1000


def test_custom_quantiles_and_the_first_off_factor_reach_the_simulator() -> None:
    load = "empirical_bytes: {probabilities: [0, 1], bytes: [3000, 6000], extra_bytes: 1500}"
    spec = _spec(
        "rate_mbps: 10, rtt_ms: 100, senders: 1",
        f"traffic: {{{load}, mean_off_ms: 200, first_off_factor: 0.5}}\n",
    )
    (specimen,) = draw_specimens(spec, seed=1, count=1)
    (sender,) = specimen.senders
    lengths = sender.traffic.empirical_bytes
    assert (lengths.name, lengths.extra_bytes) == ("", 1500)
    assert (lengths.probabilities[:], lengths.bytes[:]) == ([0, 1], [3000, 6000])
    assert sender.traffic.first_off_factor == 0.5
    # A factor of 1 is the default, and is left out.
    plain = _spec(
        "rate_mbps: 10, rtt_ms: 100, senders: 1",
        f"traffic: {{{load}, mean_off_ms: 200, first_off_factor: 1}}\n",
    )
    (specimen,) = draw_specimens(plain, seed=1, count=1)
    (sender,) = specimen.senders
    assert not sender.traffic.HasField("first_off_factor")


_OUTAGE = "{rate_mbps: 1, schedule: {steps: [{at_ms: 5, rate_mbps: 0}]}}"


@pytest.mark.parametrize(
    ("network", "sentence"),
    [
        (
            "rtt_ms: 1, senders: 1, rate_mbps: 3, links: [{rate_mbps: 1}]",
            "network has links and rate_mbps, but must give rate_mbps per link",
        ),
        (
            "rtt_ms: 1, links: [{rate_mbps: 1}], senders: [{design: a, route: {links: [b]}}]",
            "network.senders[0].route.links has 'b', but the network's links are 0",
        ),
        (
            "links: [{rate_mbps: 1}], senders: [{design: a, route: {return_links: ['0']}}]",
            "network.senders[0].route.links is missing, and must be given beside return_links",
        ),
        (
            "rtt_ms: 1, rate_mbps: 1, senders: [{design: a, route: {links: [b]}}]",
            "network.senders have a route, but the network has no links to go over",
        ),
        (
            "senders: 1, links: [{rate_mbps: 1}]",
            "network may have an RTT of 0 ms, but must have an rtt_ms or links with a delay_ms",
        ),
        (
            "rtt_ms: 1, senders: 1, links: [{name: b, rate_mbps: 1}, {name: b, rate_mbps: 1}]",
            "network.links[1].name is 'b', but another link has that name",
        ),
        (
            "rtt_ms: 1, senders: 1, links: [{delay_ms: 1}]",
            "network.links[0] must have one of the keys rate_mbps, trace, generated",
        ),
        (
            f"rtt_ms: 1, senders: 1, links: [{_OUTAGE}]",
            "network.links cannot be simulated: ",
        ),
        (
            "rtt_ms: 1, senders: 1, links: [{trace: {path: a.down, semantics: ns2}}]",
            "network.links[0].trace.path is 'a.down', but only a specification in a file can name",
        ),
        (
            "rtt_ms: 1, senders: 1, links: [{trace: {semantics: ns2}}]",
            "network.links[0].trace must have path, the file of a trace, or sha256",
        ),
        (
            "rtt_ms: 1, rate_mbps: 1, senders: [{design: a}, {table: {json: '{}'}}]",
            "network.senders[1].table.json that is no RemyCC as 'remy-farm convert' writes them",
        ),
        (
            f"rtt_ms: 1, rate_mbps: 1, senders: [{{table: {{json: '{_TABLE}'}}}}]",
            "network.senders have no group to design; one group with senders must have the key",
        ),
    ],
)
def test_an_inconsistent_network_is_refused_with_one_sentence(network: str, sentence: str) -> None:
    assert _error(network).startswith(f"spec.yaml: {sentence}")


@pytest.mark.parametrize(
    ("traffic", "sentence"),
    [
        ("exponential_bytes: {mean_bytes: 9}", "traffic.mean_off_ms is missing"),
        (
            "always: {}, mean_off_ms: 3",
            "traffic has mean_off_ms and always, but must have one of them",
        ),
        (
            "constant_bytes: {bytes: 9}, barrier: {pause_ms: 1}, poisson: {mean_interval_ms: 1}",
            "traffic has poisson and barrier, but must have one of them",
        ),
        (
            "exponential_time: {mean_ms: 9}, poisson: {mean_interval_ms: 1}",
            "traffic has poisson and exponential_time, but must have flows by bytes",
        ),
        (
            "empirical_bytes: {name: none}, mean_off_ms: 1",
            "traffic.empirical_bytes.name is 'none': ",
        ),
        (
            "empirical_bytes: {probabilities: [0, 1], bytes: [9, 5]}, mean_off_ms: 1",
            "traffic cannot be simulated: empirical_bytes.bytes[1] is 5",
        ),
        (
            "empirical_bytes: {probabilities: [0, 1], bytes: [9]}, mean_off_ms: 1",
            "traffic cannot be simulated: empirical_bytes must have a name, or as many",
        ),
        (
            "intervals: {begin_ms: [5, 3], end_ms: [6, 7]}",
            "traffic cannot be simulated: intervals.begin_ms[1] is 3",
        ),
        (
            "intervals: {begin_ms: [5]}, mean_off_ms: 1",
            "traffic has mean_off_ms and intervals, but must have one of them",
        ),
        (
            "constant_bytes: {bytes: 9}, poisson: {mean_interval_ms: 1}, first_off_factor: 0.5",
            "traffic has first_off_factor and poisson, but must have one of them",
        ),
    ],
)
def test_inconsistent_traffic_is_refused_with_one_sentence(traffic: str, sentence: str) -> None:
    plain = "rate_mbps: 1, rtt_ms: 1, senders: 1"
    assert _error(plain, f"traffic: {{{traffic}}}").startswith(f"spec.yaml: network.{sentence}")


def _in_folder(folder: Path, trace: bytes = b"1\n3\n4\n8\n") -> Path:
    (folder / "link.down").write_bytes(trace)
    (folder / "other.json").write_text(_TABLE)
    path = folder / "spec.yaml"
    path.write_text(
        _text(
            "rtt_ms: 30, links: [{trace: {path: link.down, semantics: ns2}, buffer: 50}],"
            " senders: [{design: remycc}, {table: other.json, rtt_ms: 60}, {protocol: newreno}]",
            rest="search: {simulated_seconds: 2, joint: {validation_specimens: 4}}\n",
        )
    )
    return path


def test_referenced_files_become_part_of_the_specification(tmp_path: Path) -> None:
    path = _in_folder(tmp_path)
    spec = load_spec(path)
    trace, table = spec.network.links[0].trace, spec.network.sender_groups[1].table
    assert not trace.HasField("path")
    assert not table.HasField("path")
    # 4 opportunities in 8 ms.
    assert trace.mean_rate_mbps == pytest.approx(6)
    assert json.loads(table.json) == json.loads(_TABLE)
    # The specification does not depend on its files any more.
    assert parse_spec(to_yaml(spec)) == spec
    digest = content_digest(spec)
    _in_folder(tmp_path, b"1\n3\n4\n9\n")
    assert content_digest(load_spec(path)) != digest


def test_a_broken_trace_is_refused_when_it_is_read(tmp_path: Path) -> None:
    with pytest.raises(SpecError) as caught:
        load_spec(_in_folder(tmp_path, b"5\n3\n"))
    assert str(caught.value).endswith("line 2: 3 comes after 5, but times must not fall")
    with pytest.raises(SpecError) as caught:
        load_spec(_in_folder(tmp_path, b"1\n\0"))
    assert "is binary" in str(caught.value)


def test_a_fixed_table_that_cannot_be_read_is_refused_with_one_sentence(tmp_path: Path) -> None:
    path = _in_folder(tmp_path)
    (tmp_path / "other.json").unlink()
    with pytest.raises(SpecError) as caught:
        load_spec(path)
    (sentence,) = str(caught.value).splitlines()
    assert sentence.endswith("other.json: cannot be read (no such file or directory)")


def test_nominal_packets_and_outline_use_the_mean_rate_of_a_trace(tmp_path: Path) -> None:
    spec = load_spec(_in_folder(tmp_path))
    request = evaluation_request(spec, None, seed=1, specimens=2, seconds=8.0)
    assert nominal_packets(request).tolist() == pytest.approx([4000, 4000])
    low, median, high = outline(spec).network.rate_mbps.list.values
    assert low == median == high == pytest.approx(6)


def test_a_design_with_a_trace_and_other_senders_is_equal_for_any_number_of_threads(
    tmp_path: Path,
) -> None:
    spec = load_spec(_in_folder(tmp_path))
    checkpoints = []
    for threads in (1, 3):
        designer, evaluator = Designer(spec), LocalEvaluator(threads)
        try:
            for _ in range(3):
                request = designer.next_request()
                assert request is not None
                # The fixed table follows the designed one.
                assert request.tables[1] == from_native(_fixed_table())
                assert [group.table for group in request.specimen_columns.kinds[0].senders] == [
                    0,
                    1,
                    0,
                ]
                designer.receive(evaluator.evaluate(request))
        finally:
            evaluator.close()
        checkpoints.append(designer.checkpoint())
    assert checkpoints[0] == checkpoints[1]


@pytest.mark.parametrize(
    "name", ["cellular", "incast", "two-bottlenecks", "tcp-aware", "diversity"]
)
def test_the_examples_with_links_can_be_designed(name: str) -> None:
    spec = load_spec(_EXAMPLES / f"{name}.yaml")
    spec.search.simulated_seconds = 1.0
    spec.search.joint.steps = 1
    spec.search.joint.validation_specimens = 2
    designer, evaluator = Designer(spec), LocalEvaluator()
    try:
        while (request := designer.next_request()) is not None:
            outcome = evaluator.evaluate(request)
            assert sum(outcome.packets_sent) > 0
            designer.receive(outcome)
    finally:
        evaluator.close()
    assert designer.steps > 0


def _fixed_table() -> RuleTable:
    return RuleTable([2], [([], (1.0, 1.0, 3.0))])


def test_each_specimen_draws_its_own_cellular_link() -> None:
    spec = _spec("rtt_ms: 50, senders: 1, links: [{generated: {}}]")
    request = evaluation_request(spec, _fixed_table(), seed=1, specimens=4, seconds=5.0)
    outcome = remy_simulator.evaluate_columns(request)
    assert len(set(outcome.packets_sent)) > 1
    generator = request.specimen_columns.kinds[0].links[0].generated.generator
    assert not generator.HasField("seed")
    assert math.isclose(generator.maximum_packets_per_s, 1000)
    assert isinstance(request, evaluation_pb2.EvaluationRequest)
