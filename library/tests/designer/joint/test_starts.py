"""Tests the first tables of climbs."""

from pathlib import Path

import pytest

from remy_farm.designer.actions import (
    STARTS,
    ActionSpace,
    first_action,
    first_table,
    has_start_rule,
)
from remy_farm.designer.joint.schedule import start_count
from remy_farm.remycc import start_rule
from remy_farm.specification import load_spec, load_tree, parse_spec, spec_from_tree, vary
from remy_proto.v1 import rule_table_pb2

_ROOT = Path(__file__).parents[4]
_PATHS = sorted((_ROOT / "examples").glob("*.yaml"))
# Specifications of edition 1, which have absolute rules.
_FIRST = sorted((_ROOT / "tests/data/remyccs-absolute").glob("*/spec.yaml"))


def test_first_action_is_the_fair_share_of_the_papers_network() -> None:
    """Computed by hand. The median network has 15 Mbit/s, 150 ms and 9 senders, half of them on.

    15 Mbit/s are 1.25 packets/ms, and the path holds 187.5 packets. With 4.5 senders on, a fair
    share is a window of 41.667 packets and one packet every 3.6 ms. With a window multiple of 0.9
    the increment is a tenth of the window, 4.1667 packets.
    """
    tree = vary(load_tree(_ROOT / "examples/demo.yaml"), "rules", "absolute")
    spec = spec_from_tree(tree)

    assert first_action(spec, 0.9) == pytest.approx((0.9, 4.1667, 3.6), rel=1e-4)
    assert first_action(spec, 0.5) == pytest.approx((0.5, 20.8333, 3.6), rel=1e-4)

    table = first_table(spec, ActionSpace(spec.search.joint), 0)
    assert table.rule_count == 2
    assert table.signals == [0, 1, 2]
    assert table.action(1) == pytest.approx((0.9, 4, 3.6), rel=1e-12)


_ONE_LINK = """
name: one
network: {rate_mbps: 12, rtt_ms: 100, senders: SENDERS, traffic: {TRAFFIC}}
"""


@pytest.mark.parametrize(
    ("senders", "traffic", "senders_on"),
    [
        (8, "exponential_time: {mean_ms: 1000}, mean_off_ms: 3000", 2),
        # The duration of such flows depends on congestion control; assumed on half of the time.
        (8, "exponential_bytes: {mean_bytes: 1e6}, mean_off_ms: 10", 4),
        (8, "flow_lengths: {}, mean_off_ms: 1000", 4),
        # At least one sender is on.
        (1, "exponential_time: {mean_ms: 1000}, mean_off_ms: 9000", 1),
    ],
)
def test_fair_shares_count_only_senders_that_are_on(
    senders: int, traffic: str, senders_on: float
) -> None:
    spec = parse_spec(_ONE_LINK.replace("SENDERS", str(senders)).replace("TRAFFIC", traffic))
    expected = (0.75, 0.25 * 100 / senders_on, senders_on)
    assert first_action(spec, 0.75) == pytest.approx(expected)


_SECOND = """
name: second
edition: 2
rules: RULES
network:
  rate_mbps: {log_uniform: [3.2, 320]}
  rtt_ms: 150
  senders: 2
  traffic: {exponential_time: {mean_ms: 1000}, mean_off_ms: 1000}
"""


_SCALE_FREE = _SECOND.replace("RULES", "scale_free")


@pytest.mark.parametrize("rules", ["absolute", "scale_free"])
def test_first_tables_have_a_start_rule_since_edition_2(rules: str) -> None:
    """Computed by hand: 3.2 Mbit/s are 0.267 packets/ms, so that a path of 150 ms holds 40 packets.
    One of two senders is on at a time. The burst of 32 packets is four fifths of that."""
    spec = parse_spec(_SECOND.replace("RULES", rules))
    table = first_table(spec, ActionSpace(spec.search.joint, spec.rules), 0)
    assert has_start_rule(table)
    multiple, packets, intersend_ms = table.action(0)
    assert (multiple, packets) == (0, 32)
    # Half of the 0.0375 ms that a packet takes at 320 Mbit/s, within the bounds.
    assert intersend_ms == pytest.approx(0.02 if rules == "scale_free" else 0.25)
    assert table.rule_count == (7 if rules == "scale_free" else 2)


_THIRD = _SCALE_FREE.replace("edition: 2", "edition: 3")


@pytest.mark.parametrize("last", ["age", "slow_rec_ratio"])
@pytest.mark.parametrize("rules", ["scale_free", "scale_free_remembering"])
def test_first_tables_of_edition_3_have_regions_by_age_and_queue(rules: str, last: str) -> None:
    """Compares window (in percent of the measured path) and pace by region.

    Without the signal age, slow_rec_ratio tells the age: after 14 ACKs, moving averages have
    reached a known share of their final values.
    """
    signals = f"signals: [send_ratio, rtt_ratio, {last}]\n"
    spec = parse_spec(_THIRD.replace("rules: scale_free", f"rules: {rules}") + signals)
    table = first_table(spec, ActionSpace(spec.search.joint, spec.rules), 0)
    assert has_start_rule(table)
    # Twice the 32 packets of edition 2.
    assert table.action(0) == (0, 64, 0.02)
    assert table.rule_count == (8 if rules == "scale_free_remembering" else 7)
    maturity = 1 if last == "age" else 1 - (7 / 8) ** 14

    def window_and_pace(send_ratio: float, rtt_ratio: float, *, young: bool) -> tuple[float, float]:
        slow = (1 - (255 / 256) ** 14) / (1 - (7 / 8) ** 14) if young else 1.0
        memory = (send_ratio, 14.0 if young else 1000.0, rtt_ratio, slow)
        multiple, percent, pace = table.action(table.find(memory))
        share = maturity if young else 1
        return percent / (1 - multiple) / share, pace * share

    assert window_and_pace(0.96, 1.0, young=True) == pytest.approx((60, 1.2), rel=0.05)
    assert window_and_pace(0.98, 1.2, young=True) == pytest.approx((150, 0.8), rel=0.05)
    for rtt_ratio, expected in ((1.0005, (600, 0.8)), (1.04, (600, 1)), (1.2, (600, 1.2))):
        assert window_and_pace(0.96, rtt_ratio, young=False) == pytest.approx(expected)
    for young in (False, True):
        assert window_and_pace(0.98, 1.3, young=young) == pytest.approx((80, 1.5), rel=0.5)


def test_first_tables_of_absolute_rules_are_the_same_in_editions_2_and_3() -> None:
    second = parse_spec(_SECOND.replace("RULES", "absolute"))
    third = parse_spec(_SECOND.replace("RULES", "absolute").replace("edition: 2", "edition: 3"))
    space = ActionSpace(second.search.joint, second.rules)
    assert first_table(third, space, 0).nodes() == first_table(second, space, 0).nodes()


def test_first_actions_of_scale_free_rules_compensate_for_young_averages() -> None:
    """After k ACKs rec_ewma has reached the share 1 - (7/8)^k of the time between two packets. The
    actions correct for it, so that window and pace are the same at every age."""
    spec = parse_spec(_SECOND.replace("RULES", "scale_free"))
    table = first_table(spec, ActionSpace(spec.search.joint, spec.rules), 0)
    for rule, age in zip(range(1, 6), (3, 7, 14, 28, 1000), strict=True):
        multiple, percent, ratio = table.action(rule)
        maturity = 1 - (7 / 8) ** age
        assert multiple == 0.7
        assert percent / maturity / (1 - multiple) == pytest.approx(110, rel=0.05)
        assert ratio * maturity == pytest.approx(0.9)
        slow_rec_ratio = (1 - (255 / 256) ** age) / maturity
        lower, upper = table.region(rule)
        assert lower[3] <= slow_rec_ratio < upper[3]


def test_with_the_signal_age_first_actions_are_the_same_at_every_age() -> None:
    """With this signal, averages are means from the first ACK on and need no correction."""
    signals = "signals: [send_ratio, rtt_ratio, age]\n"
    spec = parse_spec(_SECOND.replace("RULES", "scale_free") + signals)
    table = first_table(spec, ActionSpace(spec.search.joint, spec.rules), 0)
    assert has_start_rule(table)
    assert table.rule_count == 7
    assert {table.action(rule) for rule in range(1, 6)} == {(0.7, 33.0, 0.9)}
    assert [table.region(rule)[0][1] for rule in range(1, 6)] == [0, 5, 10, 20, 40]


@pytest.mark.parametrize("last", ["age", "slow_rec_ratio"])
def test_senders_that_remember_the_path_start_with_most_of_its_window(last: str) -> None:
    """Their rtt_ratio is 0, like that of senders that have measured nothing; their rule is not."""
    signals = f"signals: [send_ratio, rtt_ratio, {last}]\n"
    spec = parse_spec(_SECOND.replace("RULES", "scale_free_remembering") + signals)
    table = first_table(spec, ActionSpace(spec.search.joint, spec.rules), 0)
    assert has_start_rule(table)
    assert start_rule(table) == table.find((0.0,) * 4) == 0
    remembered = (1.0, 256.0, 0.0, 1.0)
    assert table.find(remembered) == 1
    assert table.action(1) == (0, 90, 1)
    assert table.find((1.0, 256.0, 1.0, 1.0)) > 1


def test_rates_at_start_splits_young_regions_by_link_rate() -> None:
    """Computed by hand: 10.12, 32 and 101.2 Mbit/s divide 3.2 to 320 Mbit/s into four equally
    probable parts. A packet takes 1.186, 0.375 and 0.1186 ms at these rates, and the packets of the
    burst leave every 0.02 ms."""
    parts = "search: {joint: {rates_at_start: 4}}\n"
    spec = parse_spec(_SECOND.replace("RULES", "scale_free") + parts)
    space = ActionSpace(spec.search.joint, spec.rules)
    table, unsplit = first_table(spec, space, 0), first_table(parse_spec(_SCALE_FREE), space, 0)
    # Four regions of age, which start within twice the burst of 32 packets, have four rules each.
    assert table.rule_count == unsplit.rule_count + 12
    young = (1 - (255 / 256) ** 3) / (1 - (7 / 8) ** 3)
    rules = {table.find((ratio, 1, 1.0, young)) for ratio in (0.016, 0.05, 0.16, 0.2)}
    assert rules == {1, 2, 3, 4}
    assert [table.find((ratio, 1, 1.0, young)) for ratio in (0.0168, 0.053, 0.168)] == [1, 2, 3]
    assert {table.action(rule) for rule in rules} == {unsplit.action(1)}
    # Older senders are paced, so that send_ratio no longer tells the link rate.
    old = (1 - (255 / 256) ** 50) / (1 - (7 / 8) ** 50)
    assert table.find((0.016, 1, 1.0, old)) == table.find((0.2, 1, 1.0, old))


def test_young_regions_are_not_split_at_rates_above_that_of_the_burst() -> None:
    """The burst of 16 senders, half of them on, leaves at one packet every 0.48 ms, 25 Mbit/s. At
    higher link rates its ACKs arrive at the same intervals, so that rates cannot be told apart."""
    network = (
        "{rate_mbps: {log_uniform: [10, 100]}, rtt_ms: 150, senders: 16, "
        "traffic: {exponential_time: {mean_ms: 1000}, mean_off_ms: 1000}}"
    )
    text = f"""
name: slow
edition: 2
rules: scale_free
network: {network}
search: {{joint: {{rates_at_start: 3}}}}
"""
    spec = parse_spec(text)
    space = ActionSpace(spec.search.joint, spec.rules)
    # Of 21.5 and 46.4 Mbit/s only the first is below, in the four age regions of 12 packets.
    assert first_table(spec, space, 0).rule_count == 7 + 4
    # Edition 3 has one region of young senders.
    spec.edition = 3
    assert first_table(spec, space, 0).rule_count == 7 + 1


@pytest.mark.parametrize("path", [*_PATHS, *_FIRST], ids=lambda path: "/".join(path.parts[-2:]))
def test_first_tables_of_every_example_are_within_its_bounds(path: Path) -> None:
    spec = load_spec(path)
    search = spec.search.joint
    space = ActionSpace(search, spec.rules)
    search.starts = STARTS
    assert start_count(search) == STARTS
    scale_free = spec.rules != rule_table_pb2.RULES_ABSOLUTE
    increments = search.window_increment_percent if scale_free else search.window_increment
    intersends = search.intersend_ratio if scale_free else search.intersend_ms
    tables = [first_table(spec, space, n) for n in range(STARTS)]
    for table in tables:
        for multiple, increment, intersend in map(table.action, range(table.rule_count)):
            assert search.window_multiple.minimum <= multiple <= search.window_multiple.maximum
            assert increments.minimum <= increment <= increments.maximum
            assert increment == int(increment)
            assert intersends.minimum <= intersend <= intersends.maximum
    assert len({table.action(table.rule_count - 1)[0] for table in tables}) == STARTS


@pytest.mark.parametrize("path", _FIRST, ids=lambda path: path.parent.name)
def test_the_fair_pace_of_every_example_is_within_its_bounds(path: Path) -> None:
    """Otherwise the first action would be clamped, and not be the fair share."""
    spec = load_spec(path)
    _, _, intersend_ms = first_action(spec, 0.9)
    bounds = spec.search.joint.intersend_ms
    assert bounds.minimum <= intersend_ms <= bounds.maximum
