"""Tests how specimens are drawn from the network model."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

import remy_simulator
from library.tests.specification.specs import (
    MINIMAL,
    distributions,
    draw_specimens,
    specs,
    with_line,
)
from remy_farm.specification import extent, parse_spec
from remy_farm.specification.distributions import Quantity, quantile
from remy_proto.v1 import evaluation_pb2, spec_pb2

_U64 = st.integers(0, 2**64 - 1)
_UNIFORM = with_line("  rate_mbps: {uniform: [12, 24]}")


def _link_rates(specimens: list[evaluation_pb2.Specimen]) -> list[float]:
    return [specimen.link_rate_packets_per_ms for specimen in specimens]


def test_a_specimen_has_the_simulator_s_units() -> None:
    [specimen] = draw_specimens(parse_spec(MINIMAL), seed=1, count=1)
    assert specimen.link_rate_packets_per_ms == 1.25  # 15 Mbit/s, in packets of 1500 bytes
    assert specimen.rtt_ms == 150
    assert specimen.loss_probability == 0
    assert not specimen.HasField("buffer_packets")
    [group] = specimen.senders
    assert (group.count, group.table) == (2, 0)
    assert group.traffic.exponential_time.mean_ms == 5000
    assert group.traffic.mean_off_ms == 5000


def test_a_rate_is_converted_with_the_network_s_packet_size() -> None:
    [specimen] = draw_specimens(parse_spec(with_line("  packet_bytes: 750")), seed=1, count=1)
    assert specimen.link_rate_packets_per_ms == 2.5
    assert specimen.bottleneck.packet_bytes == 750


def test_a_finite_buffer_and_loss() -> None:
    text = with_line("  buffer: 0").replace("senders: 2", "senders: 2\n  loss_probability: 0.01")
    [specimen] = draw_specimens(parse_spec(text), seed=1, count=1)
    assert specimen.HasField("buffer_packets")
    assert specimen.buffer_packets == 0
    assert specimen.loss_probability == 0.01


def test_a_specimen_without_measurement_has_exact_clocks() -> None:
    [specimen] = draw_specimens(parse_spec(MINIMAL), seed=1, count=1)
    assert not specimen.HasField("measurement")


@pytest.mark.parametrize(
    ("measurement", "expected"),
    [
        ("{}", evaluation_pb2.Measurement()),
        (
            "{jitter: {exponential_mean_ms: 0.25}}",
            evaluation_pb2.Measurement(exponential_jitter_mean_ms=0.25),
        ),
        (
            "{jitter: {uniform_maximum_ms: 0.5}, timestamp_resolution_ms: 4}",
            evaluation_pb2.Measurement(uniform_jitter_maximum_ms=0.5, timestamp_resolution_ms=4),
        ),
        (
            "{jitter: {exponential_mean_packets: 0.5}}",
            # A packet takes 0.8 ms.
            evaluation_pb2.Measurement(exponential_jitter_mean_ms=0.4),
        ),
        (
            "{jitter: {log_normal: {median_ms: 1, percentile_99_ms: 3}}, bunch_packets: 2}",
            evaluation_pb2.Measurement(
                log_normal_jitter={"median_ms": 1, "percentile_99_ms": 3}, bunch_packets=2
            ),
        ),
        (
            "{bunch_packets: 1, delayed_ack_ms: 1}",
            evaluation_pb2.Measurement(delayed_ack_ms=1),
        ),
        (
            "{rtt_offset_maximum_ms: 2, reordering: {probability: 0.01, delay_ms: 5}}",
            evaluation_pb2.Measurement(
                rtt_offset_maximum_ms=2, reordering_probability=0.01, reordering_delay_ms=5
            ),
        ),
    ],
)
def test_each_kind_of_measurement_reaches_the_specimen(
    measurement: str, expected: evaluation_pb2.Measurement
) -> None:
    spec = parse_spec(with_line(f"  measurement: {measurement}"))
    [specimen] = draw_specimens(spec, seed=1, count=1)
    assert specimen.measurement == expected


def test_drawn_noise_differs_per_specimen_and_changes_no_other_draw() -> None:
    noise = "{jitter: {uniform_maximum_ms: {uniform: [0, 0.5]}}, timestamp_resolution_ms: [1, 4]}"
    spec = parse_spec(_UNIFORM)
    noisy = parse_spec(_UNIFORM.replace("  senders: 2", f"  senders: 2\n  measurement: {noise}"))
    specimens = draw_specimens(noisy, seed=3, count=200, stratified=True)
    maxima = [specimen.measurement.uniform_jitter_maximum_ms for specimen in specimens]
    assert all(0 <= maximum <= 0.5 for maximum in maxima)
    assert len(set(maxima)) == 200
    assert {s.measurement.timestamp_resolution_ms for s in specimens} == {1, 4}
    for specimen in specimens:
        specimen.ClearField("measurement")
    assert specimens == draw_specimens(spec, seed=3, count=200, stratified=True)


def test_jitter_in_packet_times_follows_the_link_rate() -> None:
    noise = "{jitter: {exponential_mean_packets: {log_uniform: [0.01, 3]}}}"
    spec = parse_spec(_UNIFORM.replace("  senders: 2", f"  senders: 2\n  measurement: {noise}"))
    specimens = draw_specimens(spec, seed=3, count=200, stratified=True)
    packets = [
        specimen.measurement.exponential_jitter_mean_ms * specimen.link_rate_packets_per_ms
        for specimen in specimens
    ]
    assert all(0.01 / (1 + 1e-12) <= mean <= 3 * (1 + 1e-12) for mean in packets)
    assert sum(mean < math.sqrt(0.01 * 3) for mean in packets) == 100


def test_realistic_specimens_have_three_bunch_sizes() -> None:
    specimens = draw_specimens(
        parse_spec(with_line("  measurement: realistic")), seed=3, count=90, stratified=True
    )
    assert Counter(s.measurement.bunch_packets for s in specimens) == {0: 30, 2: 30, 4: 30}
    for specimen in specimens:
        specimen.measurement.bunch_packets = 2
        assert specimen.measurement == evaluation_pb2.Measurement(
            log_normal_jitter={"median_ms": 0.068, "percentile_99_ms": 0.2},
            timestamp_resolution_ms=0.001,
            bunch_packets=2,
            delayed_ack_ms=1,
        )


@pytest.mark.parametrize(
    ("on", "field"),
    [
        ("exponential_bytes: {mean_bytes: 2e7}", "exponential_bytes"),
        ("flow_lengths: {shape: 0.6}", "pareto_bytes"),
    ],
)
def test_traffic_by_bytes_reaches_the_specimen(on: str, field: str) -> None:
    text = MINIMAL.replace("exponential_time: {mean_ms: 5000}", on)
    [specimen] = draw_specimens(parse_spec(text), seed=1, count=1)
    traffic = specimen.senders[0].traffic
    assert traffic.WhichOneof("on") == field
    expected = {
        "exponential_bytes": evaluation_pb2.Traffic.ExponentialBytes(mean_bytes=2e7),
        "pareto_bytes": evaluation_pb2.Traffic.ParetoBytes(
            scale_bytes=147, shape=0.6, shift_bytes=-40, extra_bytes=16384, maximum_bytes=3.3e9
        ),
    }
    assert getattr(traffic, field) == expected[field]


@given(specs(), _U64, st.integers(0, 100), st.booleans())
def test_every_value_lies_in_its_range(
    spec: spec_pb2.DesignSpec, seed: int, first: int, stratified: bool
) -> None:
    network = spec.network
    kilobits = 12 * network.packet_bytes / 1500
    for specimen in draw_specimens(
        spec, seed=seed, count=3, first_index=first, stratified=stratified
    ):
        low, high = extent(network.rate_mbps)
        assert low / kilobits <= specimen.link_rate_packets_per_ms <= high / kilobits
        low, high = extent(network.rtt_ms)
        assert low <= specimen.rtt_ms <= high
        low, high = extent(network.senders)
        assert low <= specimen.senders[0].count <= high
        low, high = extent(network.loss_probability)
        assert low <= specimen.loss_probability <= high
        low, high = extent(spec.network.traffic.mean_off_ms)
        assert low <= specimen.senders[0].traffic.mean_off_ms <= high


@given(distributions(1e-3, 1e6), st.floats(0, 1, exclude_max=True))
def test_a_quantile_lies_within_the_extent(
    distribution: spec_pb2.Distribution, probability: float
) -> None:
    low, high = extent(distribution)
    assert low <= quantile(distribution, probability) <= high
    assert quantile(distribution, 0) == (
        distribution.list.values[0] if distribution.HasField("list") else low
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{uniform: [10, 20]}", lambda u: 10 + 10 * u),
        ("{log_uniform: [10, 1000]}", lambda u: 10 * 100**u),
        ("{integer_uniform: [1, 16]}", lambda u: 1 + math.floor(16 * u)),
        ("[5, 7, 9]", lambda u: [5, 7, 9][math.floor(3 * u)]),
        ("8", lambda _: 8),
    ],
)
def test_quantiles_match_their_formulas(text: str, expected: Callable[[float], float]) -> None:
    distribution = parse_spec(with_line(f"  rtt_ms: {text}")).network.rtt_ms
    for step in range(1000):
        probability = step / 1000
        assert quantile(distribution, probability) == pytest.approx(expected(probability))


@pytest.mark.parametrize("ends", ["5e-324, 1e6", "1e-300, 1e-300", "1e6, 1e6"])
def test_extreme_ranges_have_quantiles(ends: str) -> None:
    distribution = parse_spec(with_line(f"  rtt_ms: {{log_uniform: [{ends}]}}")).network.rtt_ms
    low, high = extent(distribution)
    assert all(low <= quantile(distribution, step / 100) <= high for step in range(100))


def test_integers_are_drawn_with_equal_probability() -> None:
    spec = parse_spec(with_line("  senders: {integer_uniform: [1, 4]}"))
    counts = Counter(
        specimen.senders[0].count for specimen in draw_specimens(spec, seed=5, count=4000)
    )
    # 27 is the standard deviation of a count.
    assert all(abs(counts[senders] - 1000) < 5 * 27 for senders in (1, 2, 3, 4))
    assert sum(counts.values()) == 4000


@given(_U64, st.integers(0, 2**40))
def test_a_specimen_depends_only_on_its_seed_and_index(seed: int, first: int) -> None:
    spec = parse_spec(_UNIFORM)
    together = draw_specimens(spec, seed=seed, first_index=first, count=5)
    alone = [
        draw_specimens(spec, seed=seed, first_index=first + index, count=1)[0] for index in range(5)
    ]
    assert together == alone


def test_a_quantity_s_draws_do_not_depend_on_other_distributions() -> None:
    """Designs whose models differ in one quantity stay comparable, specimen by specimen."""
    other = _UNIFORM.replace("rtt_ms: 150", "rtt_ms: {uniform: [1, 9]}").replace(
        "senders: 2", "senders: {integer_uniform: [1, 16]}"
    )
    one, two = (draw_specimens(parse_spec(text), seed=3, count=20) for text in (_UNIFORM, other))
    assert _link_rates(one) == _link_rates(two)
    assert [specimen.key for specimen in one] == [specimen.key for specimen in two]


def test_two_quantities_have_different_draws() -> None:
    text = _UNIFORM.replace("rtt_ms: 150", "rtt_ms: {uniform: [1, 2]}")
    for specimen in draw_specimens(parse_spec(text), seed=3, count=20):
        assert specimen.link_rate_packets_per_ms != specimen.rtt_ms


def test_keys_are_unique_within_and_across_seeds() -> None:
    spec = parse_spec(MINIMAL)
    keys = [
        specimen.key
        for seed in range(50)
        for stratified in (False, True)
        for specimen in draw_specimens(
            spec, seed=seed, count=100, first_index=100 * stratified, stratified=stratified
        )
    ]
    assert len(set(keys)) == len(keys)


def test_the_numbers_of_quantities_never_change() -> None:
    [specimen] = draw_specimens(parse_spec(_UNIFORM), seed=7, first_index=3, count=1)
    assert specimen.key == remy_simulator.mix(7, 3, Quantity.KEY)
    drawn = remy_simulator.uniform(7, 3, Quantity.LINK_RATE)
    assert specimen.link_rate_packets_per_ms == (12 + 12 * drawn) / 12
    assert [(quantity.name, quantity.value) for quantity in Quantity] == [
        ("KEY", 0),
        ("LINK_RATE", 1),
        ("RTT", 2),
        ("SENDERS", 3),
        ("BUFFER", 4),
        ("LOSS", 5),
        ("ON", 6),
        ("OFF", 7),
        ("SHUFFLE", 8),
        ("JITTER", 9),
        ("TIMESTAMP_RESOLUTION", 10),
        ("JITTER_PERCENTILE_99", 11),
        ("BUNCH", 12),
        ("DELAYED_ACK", 13),
        ("MODEL", 14),
        ("ARRIVAL", 15),
        ("RTT_OFFSET", 16),
        ("REORDERING", 17),
        ("REORDERING_DELAY", 18),
        ("LOAD", 19),
    ]


class TestStratified:
    """Tests stratified draws, which are a Latin hypercube."""

    @given(_U64, st.integers(1, 40), st.integers(0, 1000))
    def test_each_stratum_has_one_value(self, seed: int, count: int, first: int) -> None:
        spec = parse_spec(with_line("  rtt_ms: {uniform: [0.5, 1.5]}"))
        specimens = draw_specimens(spec, seed=seed, count=count, first_index=first, stratified=True)
        strata = sorted(math.floor((specimen.rtt_ms - 0.5) * count) for specimen in specimens)
        # Rounding may move a value at the end of its stratum into the next one.
        assert all(abs(stratum - index) <= 1 for index, stratum in enumerate(strata))
        assert len(specimens) == count

    def test_quantities_are_shuffled_independently(self) -> None:
        text = _UNIFORM.replace("rtt_ms: 150", "rtt_ms: {uniform: [1, 2]}")
        specimens = draw_specimens(parse_spec(text), seed=3, count=64, stratified=True)
        by_rate = sorted(range(64), key=lambda i: specimens[i].link_rate_packets_per_ms)
        by_rtt = sorted(range(64), key=lambda i: specimens[i].rtt_ms)
        assert by_rate != by_rtt
        assert by_rate != list(range(64))
        # The correlation of two random orders of 64 has a standard deviation of 1/8.
        rank_product = sum((by_rate.index(i) - 31.5) * (by_rtt.index(i) - 31.5) for i in range(64))
        assert abs(rank_product / (64 * (64**2 - 1) / 12)) < 0.5

    def test_the_mean_is_less_noisy(self) -> None:
        spec = parse_spec(_UNIFORM)

        def spread(stratified: bool) -> float:
            means = [
                math.fsum(
                    _link_rates(draw_specimens(spec, seed=seed, count=16, stratified=stratified))
                )
                / 16
                for seed in range(100)
            ]
            centre = math.fsum(means) / 100
            return math.fsum((mean - centre) ** 2 for mean in means)

        # A stratum has a 16th of the range, hence 256 times less variance.
        assert spread(stratified=True) < spread(stratified=False) / 100
