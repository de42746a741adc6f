"""Tests defaults, presets and short forms of specifications."""

from __future__ import annotations

import pytest

from library.tests.specification.specs import MINIMAL, with_line
from remy_farm.specification import SpecError, parse_spec, spec_from_tree, to_yaml, vary
from remy_farm.specification.reading import read_yaml
from remy_farm.specification.writing import content_digest
from remy_proto.v1 import rule_table_pb2, spec_pb2


def test_defaults_are_those_of_the_paper_with_the_joint_search() -> None:
    spec = parse_spec(MINIMAL)
    assert spec.network.buffer.HasField("infinite")
    assert spec.network.loss_probability.exact == 0
    assert (spec.objective.alpha, spec.objective.beta, spec.objective.delta) == (1, 1, 1)
    assert spec.objective.throughput == spec_pb2.THROUGHPUT_MEASURE_EQUAL_SHARE
    assert spec.search.specimens == 16
    assert spec.search.mode == spec_pb2.SEARCH_MODE_JOINT
    assert not spec.search.joint.HasField("cpu_seconds")
    assert spec.search.paper.epochs_per_split == 4
    assert spec.rules == rule_table_pb2.RULES_SCALE_FREE
    assert list(spec.signals) == [
        rule_table_pb2.SIGNAL_SEND_RATIO,
        rule_table_pb2.SIGNAL_RTT_RATIO,
        rule_table_pb2.SIGNAL_AGE,
    ]


def test_edition_2_uses_slow_rec_ratio_instead_of_age() -> None:
    spec = parse_spec(with_line("edition: 2"))
    assert (spec.edition, spec.rules) == (2, rule_table_pb2.RULES_SCALE_FREE)
    assert list(spec.signals) == [
        rule_table_pb2.SIGNAL_SEND_RATIO,
        rule_table_pb2.SIGNAL_RTT_RATIO,
        rule_table_pb2.SIGNAL_SLOW_REC_RATIO,
    ]


@pytest.mark.parametrize("line", ["search: {mode: paper}", "rules: absolute"])
def test_absolute_rules_default_to_the_paper_s_signals(line: str) -> None:
    spec = parse_spec(with_line(line))
    assert spec.rules == rule_table_pb2.RULES_ABSOLUTE
    assert list(spec.signals) == [
        rule_table_pb2.SIGNAL_SEND_EWMA,
        rule_table_pb2.SIGNAL_REC_EWMA,
        rule_table_pb2.SIGNAL_RTT_RATIO,
    ]


def test_signals_of_absolute_rules_imply_absolute_rules() -> None:
    spec = parse_spec(with_line("signals: [rtt_ratio, rec_ewma]"))
    assert (spec.edition, spec.rules) == (3, rule_table_pb2.RULES_ABSOLUTE)
    assert parse_spec(with_line("signals: [rtt_ratio]")).rules == rule_table_pb2.RULES_SCALE_FREE


@pytest.mark.parametrize(
    ("search", "seconds"),
    [
        ("{}", 30),
        ("{mode: joint}", 30),
        ("{mode: paper}", 100),
        ("{mode: paper, simulated_seconds: 30}", 30),
        ("{mode: joint, simulated_seconds: 100}", 100),
    ],
)
def test_the_simulated_time_depends_on_the_mode_unless_given(search: str, seconds: float) -> None:
    assert parse_spec(with_line(f"search: {search}")).search.simulated_seconds == seconds


def test_the_joint_search_needs_no_stop_condition() -> None:
    text = MINIMAL.replace("stop: {epochs: 4}", "")
    spec = parse_spec(text)
    assert spec == parse_spec(text + "stop: {}")
    assert spec.HasField("stop")


def test_a_missing_end_of_a_range_keeps_its_default() -> None:
    spec = parse_spec(with_line("search: {joint: {intersend_ms: {minimum: 0.001}}}"))
    limits = spec.search.joint.intersend_ms
    assert (limits.minimum, limits.maximum) == (0.001, 40)


def test_missing_keys_of_a_grid_keep_their_defaults() -> None:
    spec = parse_spec(with_line("search: {paper: {intersend_ms: {minimum: 0.001, steps: 0}}}"))
    grid = spec.search.paper.intersend_ms
    assert (grid.minimum, grid.steps) == (0.001, 0)
    assert (grid.maximum, grid.first_step, grid.factor, grid.initial) == (3, 0.05, 4, 3)
    assert spec.search.paper.window_increment.maximum == 256


def test_clocks_are_exact_by_default() -> None:
    assert not parse_spec(MINIMAL).network.HasField("measurement")
    jitter = "{jitter: {uniform_maximum_ms: 0.5}}"
    measurement = parse_spec(with_line(f"  measurement: {jitter}")).network.measurement
    assert measurement.jitter.uniform_maximum_ms.exact == 0.5
    assert measurement.timestamp_resolution_ms.exact == 0
    coarse = parse_spec(with_line("  measurement: {timestamp_resolution_ms: 4}")).network
    assert not coarse.measurement.HasField("jitter")


def test_the_preset_realistic_equals_its_full_mapping() -> None:
    word = parse_spec(with_line("  measurement: realistic"))
    jitter = "{log_normal: {median_ms: 0.068, percentile_99_ms: 0.2}}"
    keys = "timestamp_resolution_ms: 0.001, bunch_packets: [1, 2, 4], delayed_ack_ms: 1"
    assert word == parse_spec(with_line(f"  measurement: {{jitter: {jitter}, {keys}}}"))
    assert "realistic" not in to_yaml(word)
    assert parse_spec(to_yaml(word)) == word


def test_a_key_of_a_preset_can_be_varied() -> None:
    tree = read_yaml(with_line("  measurement: realistic"), "test")
    spec = spec_from_tree(vary(tree, "network.measurement.delayed_ack_ms", 0))
    assert spec.network.measurement.delayed_ack_ms.exact == 0
    assert spec.network.measurement.timestamp_resolution_ms.exact == 0.001


def test_other_keys_override_those_of_a_preset() -> None:
    more = "rtt_offset_maximum_ms: 1, reordering: {probability: 0.01, delay_ms: {uniform: [1, 9]}}"
    keys = f"{{preset: realistic, delayed_ack_ms: 0, {more}}}"
    measurement = parse_spec(with_line(f"  measurement: {keys}")).network.measurement
    word = parse_spec(with_line("  measurement: realistic")).network.measurement
    assert measurement.jitter == word.jitter
    assert measurement.delayed_ack_ms.exact == 0
    assert measurement.rtt_offset_maximum_ms.exact == 1
    assert measurement.reordering.delay_ms.uniform.high == 9
    with pytest.raises(SpecError, match=r"preset is .ideal., but must be realistic"):
        parse_spec(with_line("  measurement: {preset: ideal}"))


def test_rtt_offsets_and_reordering_change_the_digest_only_if_given() -> None:
    keys = ["rtt_offset_maximum_ms: 1", "reordering: {probability: 0.1, delay_ms: 1}"]
    specs = [with_line(f"  measurement: {{preset: realistic, {each}}}") for each in keys]
    digests = {content_digest(parse_spec(each)) for each in specs}
    word = parse_spec(with_line("  measurement: realistic"))
    assert len(digests - {content_digest(word)}) == 2
    assert not any(key.partition(":")[0] in to_yaml(word) for key in keys)


def test_zero_is_not_a_missing_value() -> None:
    assert parse_spec(with_line("objective: {delta: 0}")).objective.delta == 0


def test_a_price_of_lost_packets_changes_the_digest_only_if_given() -> None:
    free, cheap, dear = (
        parse_spec(with_line(line))
        for line in ("", "objective: {loss_price: 1}", "objective: {loss_price: 2}")
    )
    assert not free.objective.HasField("loss_price")
    assert "loss_price" not in to_yaml(free)
    assert "  loss_price: 2\n" in to_yaml(dear)
    assert len({content_digest(each) for each in (free, cheap, dear)}) == 3


def test_missing_stop_conditions_stay_absent() -> None:
    stop = parse_spec(MINIMAL).stop
    assert [field.name for field, _ in stop.ListFields()] == ["epochs"]


def test_flow_lengths_default_to_figure_3_plus_16_kilobytes() -> None:
    text = MINIMAL.replace("exponential_time: {mean_ms: 5000}", "flow_lengths: {}")
    flows = parse_spec(text).network.traffic.flow_lengths
    assert (flows.scale_bytes, flows.shape, flows.shift_bytes) == (147, 0.5, -40)
    assert (flows.extra_bytes, flows.maximum_bytes) == (16384, 3.3e9)


@pytest.mark.parametrize(
    ("short", "full"),
    [
        ("  rtt_ms: 150", "  rtt_ms: {exact: 150}"),
        ("  rtt_ms: 1.5e2", "  rtt_ms: 150"),
        ("  rtt_ms: [100, 150]", "  rtt_ms: {list: {values: [100, 150]}}"),
        ("  rtt_ms: {list: [100, 150]}", "  rtt_ms: {list: {values: [100, 150]}}"),
        ("  rtt_ms: {uniform: [100, 150]}", "  rtt_ms: {uniform: {low: 100, high: 150}}"),
        ("  rtt_ms: {log_uniform: [1, 9]}", "  rtt_ms: {log_uniform: {low: 1, high: 9}}"),
        ("  senders: {integer_uniform: [1, 9]}", "  senders: {integer_uniform: {low: 1, high: 9}}"),
        ("  senders: 2.0", "  senders: 2"),
        ("  buffer: infinite", "  buffer: {infinite: {}}"),
        ("  buffer: 1000", "  buffer: {packets: {exact: 1000}}"),
        ("  buffer: [1, 2]", "  buffer: {packets: {list: {values: [1, 2]}}}"),
        ("  buffer: {packets: 7}", "  buffer: {packets: {exact: 7}}"),
        ("signals: [rtt_ratio]", "signals: [SIGNAL_RTT_RATIO]"),
        ("search: {mode: paper}", "search: {mode: SEARCH_MODE_PAPER}"),
        ("objective: {throughput: on_time}", "objective: {throughput: THROUGHPUT_MEASURE_ON_TIME}"),
        ("objective: {delta: -0.0}", "objective: {delta: 0}"),
        ("objective: {delta: .5}", "objective: {delta: 0.5}"),
        ("search: {seed: +7}", "search: {seed: 7}"),
    ],
)
def test_a_short_form_equals_its_full_form(short: str, full: str) -> None:
    one, other = parse_spec(with_line(short)), parse_spec(with_line(full))
    assert one.SerializeToString(deterministic=True) == other.SerializeToString(deterministic=True)


def test_the_largest_seed_is_kept_exactly() -> None:
    assert parse_spec(with_line(f"search: {{seed: {2**64 - 1}}}")).search.seed == 2**64 - 1


def test_a_name_that_looks_like_a_number_can_be_quoted() -> None:
    assert parse_spec(with_line('name: "2013"')).name == "2013"


def test_yaml_1_1_booleans_are_texts() -> None:
    assert parse_spec(with_line("name: on")).name == "on"


def test_a_byte_order_mark_is_allowed() -> None:
    assert parse_spec(b"\xef\xbb\xbf" + MINIMAL.encode()) == parse_spec(MINIMAL)
