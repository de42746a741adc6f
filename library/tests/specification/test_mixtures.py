"""Tests groups of senders and mixtures of network models: drawing and refusals."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from library.tests.specification.specs import draw_specimens
from remy_farm.specification import SpecError, load_spec, parse_spec, to_yaml
from remy_farm.specification.models import designed_tables, outline
from remy_proto.v1 import evaluation_pb2, spec_pb2

_EXAMPLES = Path(__file__).parents[3] / "examples"
_TRAFFIC = "traffic: {exponential_time: {mean_ms: 1000}, mean_off_ms: 500}"


def _text(network: str, rest: str = "") -> str:
    """A specification with traffic added to its networks."""
    with_traffic = network.replace("network: {", f"network: {{{_TRAFFIC}, ")
    return f"name: groups\n{with_traffic}\n{rest}"


def _spec(network: str, rest: str = "") -> spec_pb2.DesignSpec:
    return parse_spec(_text(network, rest))


def _groups(*groups: str, more: str = "", rest: str = "") -> spec_pb2.DesignSpec:
    listed = ", ".join(f"{{{group}}}" for group in groups)
    return _spec(f"network: {{rate_mbps: 12, rtt_ms: 100, senders: [{listed}]{more}}}", rest=rest)


def _mixture(*weights: float, network: str = "senders: 1") -> spec_pb2.DesignSpec:
    models = "".join(
        f"  - weight: {weight}\n"
        f"    network: {{rate_mbps: {12 * (number + 1)}, "
        f"rtt_ms: {{uniform: [1, 2]}}, {network}}}\n"
        for number, weight in enumerate(weights)
    )
    return _spec(f"models:\n{models}")


def _error(text: str) -> str:
    with pytest.raises(SpecError) as caught:
        parse_spec(text, source="spec.yaml")
    return str(caught.value)


def test_a_number_of_senders_equals_one_group_of_the_designed_table() -> None:
    plain = _spec("network: {rate_mbps: {uniform: [1, 20]}, rtt_ms: 100, senders: 3}")
    grouped = _spec(
        "network: {rate_mbps: {uniform: [1, 20]}, rtt_ms: 100,"
        " senders: [{design: remycc, count: 3}]}"
    )
    drawn = [draw_specimens(spec, seed=5, count=20, stratified=True) for spec in (plain, grouped)]
    assert drawn[0] == drawn[1]


def test_a_group_determines_what_its_senders_run_and_their_weight() -> None:
    spec = _groups(
        "design: remycc, count: 2, weight: 3, objective: {delta: 0.5}",
        "protocol: 'cubic,variant=linux', traffic: {exponential_bytes: {mean_bytes: 1e5},"
        " mean_off_ms: 20}",
        "design: other, transport: tcp",
        more=", queue: codel",
    )
    [specimen] = draw_specimens(spec, seed=1, count=1)
    ours, cubic, other = specimen.senders
    assert (ours.count, ours.table, ours.weight, ours.objective.delta) == (2, 0, 3, 0.5)
    assert ours.traffic.exponential_time.mean_ms == 1000
    assert not ours.HasField("protocol")
    assert not ours.HasField("transport")
    assert cubic.protocol == evaluation_pb2.Choice(name="cubic", variant="linux")
    assert (cubic.traffic.exponential_bytes.mean_bytes, cubic.traffic.mean_off_ms) == (1e5, 20)
    assert not cubic.HasField("weight")
    assert not cubic.HasField("objective")
    assert (other.table, other.transport.name) == (1, "tcp")
    assert specimen.bottleneck.queue.name == "codel"
    assert designed_tables(spec) == ["remycc", "other"]


def test_a_group_without_senders_is_left_out() -> None:
    spec = _groups("design: remycc", "protocol: newreno, count: [0, 2]")
    drawn = draw_specimens(spec, seed=1, count=40, stratified=True)
    counts = Counter(tuple(group.count for group in specimen.senders) for specimen in drawn)
    assert counts == {(1,): 20, (1, 2): 20}


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(0, 20), min_size=2, max_size=5).filter(any), st.integers(1, 200))
def test_stratified_networks_are_divided_among_models_by_weight(
    weights: list[int], count: int
) -> None:
    drawn = draw_specimens(_mixture(*weights), seed=9, count=count, stratified=True)
    rates = Counter(round(specimen.link_rate_packets_per_ms) for specimen in drawn)
    for number, weight in enumerate(weights):
        expected = count * weight / sum(weights)
        # A stratum may span the boundary between two models.
        assert abs(rates[number + 1] - expected) < 2 + 1e-9
        if weight == 0:
            assert rates[number + 1] == 0


def test_each_model_is_stratified_over_its_own_networks() -> None:
    drawn = draw_specimens(_mixture(1, 2, 1), seed=3, count=64, stratified=True)
    for rate in (1, 2, 3):
        of_model = [each for each in drawn if each.link_rate_packets_per_ms == rate]
        strata = sorted(int((specimen.rtt_ms - 1) * len(of_model)) for specimen in of_model)
        assert strata == list(range(len(of_model)))


def test_an_unstratified_network_depends_only_on_its_index() -> None:
    spec = _mixture(1, 3)
    whole = draw_specimens(spec, seed=4, count=30)
    assert draw_specimens(spec, seed=4, first_index=10, count=20) == whole[10:]


def test_a_single_model_draws_the_same_networks_as_network() -> None:
    alone = draw_specimens(_mixture(7), seed=2, count=16, stratified=True)
    network = "network: {rate_mbps: 12, rtt_ms: {uniform: [1, 2]}, senders: 1}"
    assert alone == draw_specimens(_spec(network), seed=2, count=16, stratified=True)


def test_the_diversity_example_has_the_weights_of_the_study() -> None:
    """Learnability, Table 7: a network with one kind of senders has ten times the weight of one
    with both kinds."""
    drawn = draw_specimens(
        load_spec(_EXAMPLES / "diversity.yaml"), seed=1, count=4400, stratified=True
    )
    counts = Counter(
        tuple((group.table, group.count) for group in specimen.senders) for specimen in drawn
    )
    alone = [counts[((table, count),)] for table in (0, 1) for count in (1, 2)]
    both = [counts[((0, first), (1, second))] for first in (1, 2) for second in (1, 2)]
    assert sum(alone) + sum(both) == 4400
    assert all(abs(count - 1000) <= 2 for count in alone)
    assert all(80 <= count <= 120 for count in both)


@pytest.mark.parametrize("name", ["tcp-aware", "diversity"])
def test_mixtures_round_trip(name: str) -> None:
    spec = load_spec(_EXAMPLES / f"{name}.yaml")
    assert parse_spec(to_yaml(spec)) == spec


def test_the_outline_covers_all_models() -> None:
    model = outline(_mixture(1, 0, 4, network="senders: [{design: a, count: [1, 5]}]"))
    assert sorted({*model.network.rate_mbps.list.values}) == [12, 24, 36]
    assert sorted({*model.network.senders.list.values}) == [1, 5]


_NETWORK = "rate_mbps: 12, rtt_ms: 100"


@pytest.mark.parametrize(
    ("network", "sentence"),
    [
        (
            f"network: {{{_NETWORK}, senders: [{{protocol: cubic}}]}}",
            "network.senders have no group to design; one group with senders must have the key",
        ),
        (
            f"network: {{{_NETWORK}, senders: [{{design: a, weight: 0}}]}}",
            "network.senders have weights that are all 0, but one must be positive",
        ),
        (
            f"network: {{{_NETWORK}, senders: [{{design: a, count: [0, 2]}}]}}",
            "network.senders may leave a network without senders; the smallest counts must add up",
        ),
        (
            f"network: {{{_NETWORK}, senders: [{{design: a}}, {{count: 2}}]}}",
            "network.senders[1] must have one of the keys design, protocol",
        ),
        (
            f"network: {{{_NETWORK}, senders: [{{design: a}}, {{protocol: cubc}}]}}",
            "network.senders[1].protocol is 'cubc': there is no protocol",
        ),
        (
            (
                f"network: {{{_NETWORK}, "
                "senders: [{design: a}, {protocol: 'cubic,variant=linx'}]}"
            ),
            "network.senders[1].protocol is 'cubic,variant=linx': protocol",
        ),
        (
            f"network: {{{_NETWORK}, senders: [{{design: a}}, {{protocol: xcp}}]}}",
            "network.senders[1].protocol is 'xcp', which needs an XCP router, but the network's",
        ),
        (
            f"network: {{{_NETWORK}, senders: [{{design: a}}, {{protocol: omniscient}}]}}",
            "network.senders[1].protocol is 'omniscient', which cannot share its link with",
        ),
        (
            f"network: {{{_NETWORK}, senders: [{{design: a, transport: udp}}]}}",
            "network.senders[0].transport is 'udp': there is no transport",
        ),
        (
            f"network: {{{_NETWORK}, senders: 2, queue: fifo}}",
            "network.queue is 'fifo': there is no queue",
        ),
        (
            f"models: [{{weight: 0, network: {{{_NETWORK}, senders: 1}}}}]",
            "models have weights that are all 0, but one must be positive",
        ),
        (
            f"models: [{{network: {{{_NETWORK}, senders: [{{protocol: vegas}}]}}}}]",
            "models have no group to design; one group with senders must have the key design",
        ),
        (
            (
                f"network: {{{_NETWORK}, senders: 1}}\n"
                f"models: [{{network: {{{_NETWORK}, senders: 1}}}}]"
            ),
            "the specification has network and models, but must have one of them",
        ),
        (f"models: [{{network: {{{_NETWORK}}}}}]", "models[0].network.senders is missing"),
        ("models: []", "network is missing"),
    ],
)
def test_an_inconsistent_mixture_is_refused_with_one_sentence(network: str, sentence: str) -> None:
    assert _error(_text(network)).startswith(f"spec.yaml: {sentence}")


def test_tables_designed_together_allow_one_step_in_flight() -> None:
    groups = "senders: [{design: a}, {design: b}]"
    text = _text(
        f"network: {{rate_mbps: 12, rtt_ms: 100, {groups}}}",
        "search: {joint: {steps_in_flight: IN_FLIGHT}}\n",
    )
    assert _error(text.replace("IN_FLIGHT", "2")) == (
        "spec.yaml: search.joint.steps_in_flight is 2, but must be 1 if several tables are "
        "designed together, because they take turns"
    )
    assert len(designed_tables(parse_spec(text.replace("IN_FLIGHT", "1")))) == 2


@pytest.mark.parametrize(
    "beyond",
    [
        "queue: codel",
        "transport: tcp",
        "transport: ns2",
        "ack_bytes: 40",
        "measurement: {reordering: {probability: 0.01, delay_ms: 5}}",
    ],
)
def test_all_signals_are_allowed_on_all_networks(beyond: str) -> None:
    text = _text(
        f"network: {{{_NETWORK}, senders: 1, {beyond}}}",
        "signals: [rtt_ratio, loss_rate, queue_ratio, utilization]\npath_model: {}\n",
    )
    assert parse_spec(text).HasField("path_model")


@pytest.mark.parametrize(
    ("queue", "marks"),
    [
        ("", False),
        ("drop-tail", False),
        ("sfq-codel", False),
        ("'codel,ecn=0'", False),
        ("codel", True),
        ("'red,variant=gentle,minimum_packets=3'", True),
        ("'threshold-marking,threshold_packets=20'", True),
    ],
)
def test_the_ecn_signal_needs_a_marking_queue(queue: str, marks: bool) -> None:
    network = f"network: {{{_NETWORK}, senders: 1, queue: {queue}}}".replace(", queue: }", "}")
    text = _text(network, "signals: [rtt_ratio, ecn_fraction]\n")
    if marks:
        assert parse_spec(text).network.queue == queue.strip("'")
    else:
        assert "signals has ecn_fraction, but no queue marks packets" in _error(text)


def test_any_link_of_a_route_may_mark_packets() -> None:
    links = "[{rate_mbps: 12}, {rate_mbps: 9QUEUE}]"
    text = _text(
        f"network: {{rtt_ms: 100, senders: 1, links: {links}}}",
        "signals: [rtt_ratio, ecn_fraction]\n",
    )
    assert "no queue marks packets" in _error(text.replace("QUEUE", ""))
    assert parse_spec(text.replace("QUEUE", ", queue: threshold-marking")).signals


def test_a_bad_queue_is_reported_beside_a_signal_of_marks() -> None:
    error = _error(
        _text(
            f"network: {{{_NETWORK}, senders: 1, queue: no-such}}",
            "signals: [rtt_ratio, ecn_fraction]\n",
        )
    )
    assert "no-such" in error
    assert "no queue marks packets" not in error
