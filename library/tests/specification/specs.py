"""Specifications for tests: a minimal one in YAML, and hypothesis strategies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from remy_farm.specification import Networks
from remy_proto.v1 import evaluation_pb2, rule_table_pb2, spec_pb2
from remy_simulator.columns import unpack_specimens

MINIMAL = """
name: small
network:
  rate_mbps: 15
  rtt_ms: 150
  senders: 2
  traffic:
    exponential_time: {mean_ms: 5000}
    mean_off_ms: 5000
stop: {epochs: 4}
"""


def draw_specimens(spec: spec_pb2.DesignSpec, **options: Any) -> list[evaluation_pb2.Specimen]:
    """Draws specimens as messages instead of columns; `options` are those of `Networks.draw`."""
    return unpack_specimens(Networks(spec).draw(**options))


def with_line(line: str) -> str:
    """MINIMAL with one line replaced or added.

    The line replaces the one with the same key. A new key is added to the network if the line is
    indented, and to the document otherwise.
    """
    key = line.split(":")[0]
    lines = MINIMAL.strip("\n").split("\n")
    keys = [old.split(":")[0] for old in lines]
    if key in keys:
        lines[keys.index(key)] = line
    elif line.startswith("  "):
        lines.insert(keys.index("  traffic"), line)
    else:
        lines.append(line)
    return "\n".join(lines) + "\n"


def distributions(
    low: float, high: float, *, integral: bool = False
) -> st.SearchStrategy[spec_pb2.Distribution]:
    """Distributions of values from `low` to `high`, which are whole numbers if `integral`."""
    numbers: st.SearchStrategy[Any] = (
        st.integers(int(low), int(high)) if integral else st.floats(low, high)
    )
    pairs = st.tuples(numbers, numbers).map(sorted)
    integers = st.integers(max(0, int(-(-low // 1))), int(high))

    def in_range(kind: Callable[..., Any]) -> Callable[[Any], Any]:
        return lambda ends: kind(low=ends[0], high=ends[1])

    of = spec_pb2.Distribution
    kinds = [
        numbers.map(lambda value: of(exact=value)),
        st.tuples(integers, integers)
        .map(sorted)
        .map(in_range(of.IntegerUniform))
        .map(lambda kind: of(integer_uniform=kind)),
        st.lists(numbers, min_size=1, max_size=5).map(
            lambda values: of(list=of.ValueList(values=values))
        ),
    ]
    if not integral:
        kinds.append(pairs.map(in_range(of.Uniform)).map(lambda kind: of(uniform=kind)))
        if low > 0:
            kinds.append(pairs.map(in_range(of.LogUniform)).map(lambda kind: of(log_uniform=kind)))
    return st.one_of(kinds)


_SIGNALS = {
    rule_table_pb2.RULES_ABSOLUTE: [
        rule_table_pb2.SIGNAL_SEND_EWMA,
        rule_table_pb2.SIGNAL_REC_EWMA,
        rule_table_pb2.SIGNAL_RTT_RATIO,
        rule_table_pb2.SIGNAL_SLOW_REC_EWMA,
    ],
    rule_table_pb2.RULES_SCALE_FREE: [
        rule_table_pb2.SIGNAL_SEND_RATIO,
        rule_table_pb2.SIGNAL_AGE,
        rule_table_pb2.SIGNAL_RTT_RATIO,
        rule_table_pb2.SIGNAL_SLOW_REC_RATIO,
    ],
    rule_table_pb2.RULES_SCALE_FREE_REMEMBERING: [
        rule_table_pb2.SIGNAL_AGE,
        rule_table_pb2.SIGNAL_SLOW_REC_RATIO,
    ],
}


@st.composite
def specs(draw: st.DrawFn) -> spec_pb2.DesignSpec:
    """Complete and valid specifications over the whole allowed ranges."""
    minimum_on_ms = draw(st.floats(0, 1e5))
    mode = draw(
        st.sampled_from(
            [
                spec_pb2.SEARCH_MODE_PAPER,
                spec_pb2.SEARCH_MODE_JOINT,
                spec_pb2.SEARCH_MODE_PATTERN,
            ]
        )
    )
    rules = draw(
        st.sampled_from(
            list(_SIGNALS)
            if mode != spec_pb2.SEARCH_MODE_PAPER
            else [rule_table_pb2.RULES_ABSOLUTE]
        )
    )
    return spec_pb2.DesignSpec(
        name=draw(st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", fullmatch=True)),
        edition=draw(st.integers(2, 3)),
        network=draw(_networks()),
        objective=spec_pb2.Objective(
            alpha=draw(st.floats(0, 10)),
            beta=draw(st.floats(0, 10)),
            delta=draw(st.floats(0, 1000)),
            throughput=draw(st.sampled_from(spec_pb2.ThroughputMeasure.keys()[1:3])),
            minimum_on_ms=minimum_on_ms,
            loss_price=draw(st.none() | st.floats(0, 1000)),
        ),
        signals=draw(st.lists(st.sampled_from(_SIGNALS[rules]), min_size=1, unique=True)),
        rules=rules,
        search=spec_pb2.Search(
            mode=mode,
            specimens=draw(st.integers(16, 100000)),
            simulated_seconds=draw(st.floats(101, 1e6)),
            seed=draw(st.integers(0, 2**64 - 1)),
            paper=spec_pb2.PaperSearch(
                window_increment=draw(_grids()),
                window_multiple=draw(_grids()),
                intersend_ms=draw(_grids()),
                epochs_per_split=draw(st.integers(1, 1000)),
                validation_specimens=draw(st.integers(2, 100000)),
            ),
            joint=draw(_joint_searches()),
            pattern=draw(_pattern_searches()),
        ),
        stop=draw(_stops(mode)),
        workers=draw(_workers()),
    )


@st.composite
def _networks(draw: st.DrawFn) -> spec_pb2.NetworkModel:
    buffers = st.one_of(
        st.just(spec_pb2.Buffer(infinite=spec_pb2.Buffer.Infinite())),
        distributions(0, 1e6, integral=True).map(lambda packets: spec_pb2.Buffer(packets=packets)),
    )
    network = spec_pb2.NetworkModel(
        rate_mbps=draw(distributions(1e-3, 1e6)),
        rtt_ms=draw(distributions(1e-3, 1e6)),
        senders=draw(distributions(1, 10000, integral=True)),
        buffer=draw(buffers),
        loss_probability=draw(distributions(0, 0.999)),
        traffic=draw(_traffic()),
        packet_bytes=draw(st.integers(1, 1_000_000)),
    )
    if draw(st.booleans()):
        network.measurement.CopyFrom(draw(_measurements()))
    return network


@st.composite
def _measurements(draw: st.DrawFn) -> spec_pb2.MeasurementModel:
    sizes = distributions(0, 1e6)
    model = spec_pb2.MeasurementModel(
        timestamp_resolution_ms=draw(sizes),
        bunch_packets=draw(distributions(1, 1000, integral=True)),
        delayed_ack_ms=draw(sizes),
        rtt_offset_maximum_ms=draw(sizes),
    )
    if draw(st.booleans()):
        model.reordering.probability.CopyFrom(draw(distributions(0, 1)))
        model.reordering.delay_ms.CopyFrom(draw(sizes))
    match draw(st.integers(0, 4)):
        case 0:
            model.jitter.exponential_mean_ms.CopyFrom(draw(sizes))
        case 1:
            model.jitter.uniform_maximum_ms.CopyFrom(draw(sizes))
        case 2:
            model.jitter.exponential_mean_packets.CopyFrom(draw(sizes))
        case 3:
            model.jitter.log_normal.median_ms.CopyFrom(draw(distributions(1e-6, 1)))
            model.jitter.log_normal.percentile_99_ms.CopyFrom(draw(distributions(1, 1e6)))
    return model


@st.composite
def _traffic(draw: st.DrawFn) -> spec_pb2.TrafficModel:
    model = spec_pb2.TrafficModel(mean_off_ms=draw(distributions(1e-3, 1e9)))
    if draw(st.booleans()):
        model.first_off_factor = draw(st.floats(0, 1000))
    match draw(st.integers(0, 3)):
        case 0:
            model.exponential_time.mean_ms.CopyFrom(draw(distributions(1e-3, 1e9)))
        case 3:
            lengths = sorted(draw(st.lists(st.floats(0, 1e15), max_size=5)))
            model.empirical_bytes.bytes.extend(lengths)
            model.empirical_bytes.probabilities.extend(0.2 * n for n in range(len(lengths)))
            model.empirical_bytes.name = "icsi"
            model.empirical_bytes.extra_bytes = draw(st.floats(0, 1e12))
        case 1:
            model.exponential_bytes.mean_bytes.CopyFrom(draw(distributions(1, 1e15)))
        case _:
            model.flow_lengths.scale_bytes = draw(st.floats(1e-3, 1e12))
            model.flow_lengths.shape = draw(st.floats(0.01, 100))
            # A specification keeps no sign of a zero.
            model.flow_lengths.shift_bytes = draw(st.floats(-1e12, 1e12)) + 0.0
            model.flow_lengths.extra_bytes = draw(st.floats(0, 1e12))
            model.flow_lengths.maximum_bytes = draw(st.floats(1, 1e15))
    return model


@st.composite
def _grids(draw: st.DrawFn) -> spec_pb2.ActionGrid:
    minimum, initial, maximum = sorted(draw(st.tuples(*[st.floats(0, 1e6)] * 3)))
    return spec_pb2.ActionGrid(
        minimum=minimum,
        maximum=maximum,
        first_step=draw(st.floats(1e-6, 1e6)),
        factor=draw(st.floats(1.001, 1000)),
        steps=draw(st.integers(0, 10)),
        initial=initial,
    )


@st.composite
def _joint_searches(draw: st.DrawFn) -> spec_pb2.JointSearch:
    numbers = st.integers(1, 10000)
    search = spec_pb2.JointSearch(
        steps=draw(numbers),
        starts=draw(st.integers(1, 8)),
        start_steps=draw(numbers),
        maximum_rules=draw(numbers),
        first_split=draw(numbers),
        steps_per_split=draw(numbers),
        perturbation=draw(st.floats(1e-6, 10)),
        step_size=draw(st.floats(1e-6, 10)),
        fine_share=draw(st.floats(0, 1)),
        steps_per_epoch=draw(numbers),
        validation_specimens=draw(st.integers(2, 100000)),
        window_multiple=draw(_ranges(st.floats(0, 1e6))),
        window_increment=draw(_ranges(st.integers(0, 10**6))),
        intersend_ms=draw(_ranges(st.floats(1e-6, 1e6))),
        window_increment_percent=draw(_ranges(st.floats(0, 1e6))),
        intersend_ratio=draw(_ranges(st.floats(1e-6, 1e6))),
        overgrowth=draw(st.floats(0, 100)),
        splits=draw(
            st.sampled_from(
                [spec_pb2.JOINT_SPLITS_ORTHANTS, spec_pb2.JOINT_SPLITS_DISAGREEMENT],
            )
        ),
    )
    match draw(st.sampled_from(["steps", "CPU time", "packets"])):
        case "CPU time":
            search.cpu_seconds = draw(st.floats(1e-9, 1e9))
        case "packets":
            search.simulated_packets = draw(st.integers(1, 10**18))
    if draw(st.booleans()):
        search.tuned_for_specimens = draw(st.integers(16, 100000))
    if draw(st.booleans()):
        search.rates_at_start = draw(st.integers(1, 8))
    if draw(st.booleans()):
        search.average_share = draw(st.floats(1e-6, 1))
    if draw(st.booleans()):
        search.steps_in_flight = draw(st.integers(1, 8))
    return search


@st.composite
def _pattern_searches(draw: st.DrawFn) -> spec_pb2.PatternSearch:
    numbers = st.integers(4, 1000)
    steps = st.floats(1e-6, 10)
    return spec_pb2.PatternSearch(
        steps=draw(numbers),
        maximum_rules=draw(numbers),
        race_specimens=draw(numbers),
        first_step=draw(steps),
        minimum_step=draw(steps),
        growth_threshold=draw(st.floats(0, 1e6)),
        epochs_per_split=draw(numbers),
        validation_specimens=draw(numbers),
        window_multiple=draw(_ranges(st.floats(0, 1e6))),
        window_increment=draw(_ranges(st.integers(0, 10**6))),
        intersend_ms=draw(_ranges(st.floats(1e-6, 1e6))),
        window_increment_percent=draw(_ranges(st.floats(0, 1e6))),
        intersend_ratio=draw(_ranges(st.floats(1e-6, 1e6))),
    )


def _ranges(values: st.SearchStrategy[float]) -> st.SearchStrategy[spec_pb2.ComponentRange]:
    ends = st.tuples(values, values).map(sorted)
    return ends.map(lambda pair: spec_pb2.ComponentRange(minimum=pair[0], maximum=pair[1]))


@st.composite
def _stops(draw: st.DrawFn, mode: spec_pb2.SearchMode) -> spec_pb2.Stop:
    stop = spec_pb2.Stop()
    if mode == spec_pb2.SEARCH_MODE_PAPER:
        stop.rules = draw(st.integers(1, 100000))
    if draw(st.booleans()):
        stop.cpu_seconds = draw(st.floats(1e-9, 1e300))
    if draw(st.booleans()):
        stop.epochs = draw(st.integers(1, 2**32 - 1))
    return stop


@st.composite
def _workers(draw: st.DrawFn) -> spec_pb2.Workers:
    workers = spec_pb2.Workers()
    if draw(st.booleans()):
        workers.minimum, workers.maximum = sorted(draw(st.tuples(*[st.integers(1, 10000)] * 2)))
    if draw(st.booleans()):
        workers.image = draw(st.text("abc/:.-1", max_size=300))
        workers.cpus = draw(st.floats(0.1, 1000))
        workers.memory_mib = draw(st.integers(64, 10_000_000))
    return workers
