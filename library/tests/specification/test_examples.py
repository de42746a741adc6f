"""Tests that the specifications in examples/ match those of the papers."""

from __future__ import annotations

from pathlib import Path

import pytest

from library.tests.specification.specs import draw_specimens
from remy_farm.specification import extent, load_spec
from remy_farm.specification.models import outline
from remy_proto.v1 import rule_table_pb2, spec_pb2

_EXAMPLES = Path(__file__).parents[3] / "examples"
_DATA = _EXAMPLES.parent / "data"
_PATHS = sorted(_EXAMPLES.glob("*.yaml"))
# Examples with the rules `scale_free_remembering`.
_REMEMBERING = ("generalist-remembering", "learnability-10x", "learnability-100x")
# Earlier versions of the examples, with absolute rules.
_ABSOLUTE = sorted((_EXAMPLES.parent / "tests/data/remyccs-absolute").glob("*/spec.yaml"))


def _load(name: str) -> spec_pb2.DesignSpec:
    return load_spec(_EXAMPLES / f"{name}.yaml")


def test_the_examples_are_complete() -> None:
    assert [path.stem for path in _PATHS] == [
        "attack-space",
        "cellular",
        "datacenter",
        "demo-paper",
        "demo",
        "diversity",
        "general-purpose-delta0.1",
        "general-purpose-delta1",
        "general-purpose-delta10",
        "general-purpose-noise",
        "general-purpose-realistic",
        "generalist-remembering",
        "generalist",
        "incast",
        "learnability-1000x",
        "learnability-100x",
        "learnability-10x",
        "learnability-2x",
        "learnability-rtt-10-280",
        "learnability-rtt-110-200",
        "learnability-rtt-140-160",
        "learnability-rtt-145-155",
        "learnability-rtt-50-250",
        "learnability-senders-1-10",
        "learnability-senders-1-100",
        "learnability-senders-1-2",
        "learnability-senders-1-20",
        "learnability-senders-1-50",
        "one-x",
        "tcp-aware",
        "tcp-naive",
        "ten-x",
        "two-bottlenecks",
    ]


@pytest.mark.parametrize("path", _PATHS, ids=lambda path: path.stem)
def test_each_example_loads_and_draws_specimens(path: Path) -> None:
    spec = load_spec(path)
    assert spec.name == path.stem
    assert len(draw_specimens(spec, seed=spec.search.seed, count=16)) == 16


@pytest.mark.parametrize("path", _PATHS, ids=lambda path: path.stem)
def test_each_example_has_the_expected_edition_and_rules(path: Path) -> None:
    spec = load_spec(path)
    absolute = spec.search.mode == spec_pb2.SEARCH_MODE_PAPER or path.stem == "cellular"
    wanted = rule_table_pb2.RULES_ABSOLUTE if absolute else rule_table_pb2.RULES_SCALE_FREE
    if path.stem in _REMEMBERING:
        wanted = rule_table_pb2.RULES_SCALE_FREE_REMEMBERING
    # An example with a published table names the edition that designed it.
    edition = 2 if (_DATA / "remyccs" / path.stem).is_dir() else 3
    assert (spec.edition, spec.rules) == (edition, wanted)


@pytest.mark.parametrize("path", [*_PATHS, *_ABSOLUTE], ids=lambda path: "/".join(path.parts[-2:]))
def test_the_searched_intersend_times_can_fill_the_fastest_link(path: Path) -> None:
    """Otherwise a single sender could not fill the link.

    Absolute rules need an intersend time of at most a packet's service time; scale-free rules need
    one well below the measured interval between packets.
    """
    spec = load_spec(path)
    _, fastest_mbps = extent(outline(spec).network.rate_mbps)
    search = spec.search
    if spec.rules != rule_table_pb2.RULES_ABSOLUTE:
        assert search.joint.intersend_ratio.minimum <= 0.5
        return
    paper = search.mode == spec_pb2.SEARCH_MODE_PAPER
    intersend_ms = search.paper.intersend_ms if paper else search.joint.intersend_ms
    assert intersend_ms.minimum <= 12 / fastest_mbps


def test_only_the_example_of_the_paper_s_search_has_stop_conditions() -> None:
    """The other examples use the joint search, which has a length of its own."""
    papers = [
        path.stem for path in _PATHS if load_spec(path).search.mode == spec_pb2.SEARCH_MODE_PAPER
    ]
    assert papers == ["demo-paper"]
    assert not any(load_spec(path).stop.ListFields() for path in _PATHS if path.stem not in papers)


def test_the_demo_is_a_short_general_purpose_design() -> None:
    """It has fewer steps, the newest edition and realistic clocks."""
    demo, general = _load("demo"), _load("general-purpose-delta1")
    assert (demo.edition, general.edition) == (3, 2)
    demo.name, demo.edition = general.name, general.edition
    demo.signals[:] = general.signals
    clocks = _load("general-purpose-realistic").models[0].network.measurement
    assert demo.network.measurement == clocks
    demo.network.ClearField("measurement")
    assert demo.search.joint.steps < general.search.joint.steps
    demo.search.joint.steps = general.search.joint.steps
    assert demo == general


@pytest.mark.parametrize("delta", ["0.1", "1", "10"])
def test_general_purpose_designs_match_the_paper(delta: str) -> None:
    """The first table of section 5.1 of TCP ex Machina."""
    spec = _load(f"general-purpose-delta{delta}")
    network = spec.network
    assert network.rate_mbps.uniform == spec_pb2.Distribution.Uniform(low=10, high=20)
    assert network.rtt_ms.uniform == spec_pb2.Distribution.Uniform(low=100, high=200)
    assert network.senders.integer_uniform == spec_pb2.Distribution.IntegerUniform(low=1, high=16)
    assert network.buffer.HasField("infinite")
    assert spec.network.traffic.exponential_time.mean_ms.exact == 5000
    assert spec.network.traffic.mean_off_ms.exact == 5000
    assert (spec.objective.alpha, spec.objective.beta) == (1, 1)
    assert spec.objective.delta == float(delta)
    assert (spec.search.specimens, spec.search.simulated_seconds) == (16, 30)


def test_the_noise_design_differs_only_in_its_clocks() -> None:
    """The noise design has jitter of up to half a millisecond."""
    exact, noisy = _load("general-purpose-delta1"), _load("general-purpose-noise")
    measurement = noisy.network.measurement
    assert extent(measurement.jitter.exponential_mean_ms) == (0, 0.5)
    assert extent(measurement.timestamp_resolution_ms) == (0.001, 1)
    noisy.network.ClearField("measurement")
    noisy.name = exact.name
    noisy.search.ClearField("maximum_rules")
    assert noisy == exact


def test_the_generalist_covers_the_learnability_ranges() -> None:
    """It combines all ranges of the learnability study, with realistic clocks."""
    network = _load("generalist").network
    assert extent(network.rate_mbps) == (1, 1000)
    assert extent(network.rtt_ms) == (10, 300)
    assert extent(network.senders) == (1, 100)
    assert extent(network.measurement.bunch_packets) == (1, 4)
    assert extent(network.measurement.delayed_ack_ms) == (0, 1)


def test_link_rate_designs_match_the_paper() -> None:
    """The second table of section 5.1."""
    one, ten = _load("one-x"), _load("ten-x")
    assert one.network.rate_mbps.exact == 15
    assert ten.network.rate_mbps.uniform == spec_pb2.Distribution.Uniform(low=4.7, high=47)
    ten.network.rate_mbps.exact = 15
    ten.name = one.name
    assert one == ten
    assert (one.network.rtt_ms.exact, one.network.senders.exact) == (150, 2)


def test_the_datacenter_design_matches_the_paper() -> None:
    """Section 5.5 of TCP ex Machina: minimum potential delay, with little weight on delay."""
    spec = _load("datacenter")
    assert (spec.objective.alpha, spec.objective.delta) == (2, 0.002)
    assert spec.network.rate_mbps.exact == 10_000
    assert spec.network.rtt_ms.exact == 4
    assert extent(spec.network.senders) == (1, 64)
    assert spec.network.buffer.packets.exact == 1000
    assert spec.network.traffic.exponential_bytes.mean_bytes.exact == 20e6
    assert spec.network.traffic.mean_off_ms.exact == 100


@pytest.mark.parametrize(
    ("factor", "low", "high"),
    [("2x", 22, 44), ("10x", 10, 100), ("100x", 3.2, 320), ("1000x", 1, 1000)],
)
def test_learnability_designs_match_table_2(factor: str, low: float, high: float) -> None:
    """The networks are those of Table 2 of the learnability study."""
    spec = _load(f"learnability-{factor}")
    remembers = spec.name in _REMEMBERING
    age = rule_table_pb2.SIGNAL_AGE if remembers else rule_table_pb2.SIGNAL_SLOW_REC_RATIO
    assert spec.network.rate_mbps.log_uniform == spec_pb2.Distribution.LogUniform(
        low=low, high=high
    )
    assert (spec.network.rtt_ms.exact, spec.network.senders.exact) == (150, 2)
    assert spec.network.traffic.exponential_time.mean_ms.exact == 1000
    assert spec.network.traffic.mean_off_ms.exact == 1000
    assert set(spec.signals) == {
        rule_table_pb2.SIGNAL_RTT_RATIO,
        rule_table_pb2.SIGNAL_SEND_RATIO,
        age,
    }


@pytest.mark.parametrize("range_", ["145-155", "140-160", "110-200", "50-250", "10-280"])
def test_rtt_range_designs_match_table_4(range_: str) -> None:
    """Table 4 of the learnability study."""
    spec = _load(f"learnability-rtt-{range_}")
    assert extent(spec.network.rtt_ms) == tuple(map(float, range_.split("-")))
    assert (spec.network.rate_mbps.exact, spec.network.senders.exact) == (31.6, 2)


@pytest.mark.parametrize("range_", ["1-2", "1-10", "1-20", "1-50", "1-100"])
def test_sender_range_designs_match_table_3(range_: str) -> None:
    """Table 3 of the learnability study."""
    spec = _load(f"learnability-senders-{range_}")
    assert extent(spec.network.senders) == tuple(map(float, range_.split("-")))
    assert (spec.network.rate_mbps.exact, spec.network.rtt_ms.exact) == (15, 150)
