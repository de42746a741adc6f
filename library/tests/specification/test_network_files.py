"""Tests that networks in specifications and in network files mean the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from library.tests.specification.specs import draw_specimens
from remy_farm.specification import SpecError, parse_spec
from remy_farm.specification.network_files import topology_of
from remy_farm.specification.reading import read_yaml
from remy_proto.v1 import evaluation_pb2
from remy_simulator import RuleTable, evaluate_columns
from remy_simulator.messages import from_native

_SPEC = """
name: network-files
network:
{network}
objective: {{alpha: 1, beta: 1, delta: 1}}
search: {{mode: joint, joint: {{steps: 1}}}}
"""


def _drawn(network: str, count: int = 1) -> list[evaluation_pb2.Specimen]:
    lines = "\n".join(f"  {line}" for line in network.strip().splitlines())
    return draw_specimens(parse_spec(_SPEC.format(network=lines)), seed=1, count=count)


_ALWAYS = "senders: 1\ntraffic: {always: {}}\n"


@pytest.mark.parametrize(
    ("buffer", "packets"),
    [("30", 30), ("{kilobytes: 30}", 20), ("{ms: 10}", 10), ("{bdp: 2}", 80), ("infinite", None)],
)
def test_a_buffer_in_each_unit_is_converted_to_packets(buffer: str, packets: int | None) -> None:
    (specimen,) = _drawn(f"rate_mbps: 12\nrtt_ms: 40\nbuffer: {buffer}\n{_ALWAYS}")
    assert (specimen.buffer_packets if specimen.HasField("buffer_packets") else None) == packets


def test_a_bdp_buffer_depends_on_each_network_s_rate_and_rtt() -> None:
    network = f"rate_mbps: [12, 24, 120]\nrtt_ms: {{uniform: [10, 90]}}\n{_ALWAYS}"
    for specimen in _drawn(network + "buffer: {bdp: 1.5}\n", 50):
        bdp = specimen.link_rate_packets_per_ms * specimen.rtt_ms
        assert specimen.buffer_packets == int(bdp * 1.5)


def test_a_link_s_bdp_buffer_uses_the_longest_path() -> None:
    links = "[{rate_mbps: 12, delay_ms: 10, buffer: {bdp: 1}}, {rate_mbps: 24, buffer: {ms: 9}}]"
    senders = "[{design: remycc}, {design: remycc, rtt_ms: 70}]"
    network = f"links: {links}\nrtt_ms: 20\nsenders: {senders}\ntraffic: {{always: {{}}}}\n"
    (specimen,) = _drawn(network)
    assert [link.buffer_packets for link in specimen.links] == [80, 18]


def test_load_determines_the_mean_off_time() -> None:
    traffic = "traffic: {exponential_bytes: {mean_bytes: 1.0e+5}, load: 0.5}\n"
    (specimen,) = _drawn(f"rate_mbps: 8\nrtt_ms: 10\nsenders: 10\n{traffic}")
    # Ten senders with flows of 100 ms each keep the link half busy if they pause for 2 s.
    assert specimen.senders[0].traffic.mean_off_ms == pytest.approx(2000)


@pytest.mark.parametrize(
    ("traffic", "problem"),
    [
        ("{exponential_time: {mean_ms: 5}, load: 0.5}", "load needs exponential_bytes"),
        ("{exponential_bytes: {mean_bytes: 5}, load: 0.5, mean_off_ms: 3}", "must have one of"),
        ("{exponential_bytes: {mean_bytes: 5}, load: 1}", "load is 1, but must be"),
    ],
)
def test_an_impossible_load_is_refused(traffic: str, problem: str) -> None:
    with pytest.raises(SpecError, match=problem):
        _drawn(f"rate_mbps: 8\nrtt_ms: 10\nsenders: 1\ntraffic: {traffic}\n")


def test_the_network_s_transport_applies_only_to_senders_it_can_carry() -> None:
    senders = 'senders: [{design: remycc}, "cubic=2"]\ntraffic: {always: {}}\n'
    for transport, expected in (("ns2", ["ns2", ""]), ("tcp,variant=linux", ["tcp", "tcp"])):
        network = f'rate_mbps: 8\nrtt_ms: 10\ntransport: "{transport}"\n{senders}'
        (specimen,) = _drawn(network)
        assert [group.transport.name for group in specimen.senders] == expected


_WHOLE = """
rate_mbps: 12
rtt_ms: 40
buffer: {bdp: 1}
transport: "tcp,variant=linux"
ack_bytes: 40
traffic: {exponential_bytes: {mean_bytes: 1.0e+5}, load: 0.25}
senders:
  - "cubic=2"
  - {protocol: "newreno,minimum_rto_ms=200", first_on_ms: 500, count: 3}
  - {protocol: vegas, rtt_ms: 90, traffic: {flow_lengths: {}, mean_off_ms: 20}}
"""


def test_a_network_file_and_a_specification_give_the_same_senders() -> None:
    tree: Any = read_yaml(_WHOLE, "a test")
    from_file = topology_of(tree, Path(), "a test", plain=True).specimen
    with_design = _WHOLE.rstrip() + "\n  - {design: remycc, traffic: {always: {}}}\n"
    (drawn,) = _drawn(with_design)
    assert drawn.buffer_packets == from_file.buffer_packets
    for ours, theirs in zip(drawn.senders, from_file.senders, strict=False):
        assert ours.traffic == theirs.traffic
        assert (ours.protocol, ours.transport) == (theirs.protocol, theirs.transport)
        assert (ours.count, ours.first_on_ms) == (theirs.count, theirs.first_on_ms)


@pytest.mark.parametrize(
    ("senders", "problem"),
    [
        ('["cubik=2"]', "senders[0] is 'cubik=2': there is no protocol"),
        ("[{protocol: cubic=3}]", "the key for the number of senders is count"),
        ("[{protocol: 'cubic,rtt_ms=3', rtt_ms: 4}]", "and rtt_ms, but must give it only once"),
        ("[{sender: cubic}]", "it is protocol or table now"),
        ("[{design: remycc}]", "nothing is designed here"),
        ("3", "must be a list of senders with what they run"),
        ("[{protocol: cubic, count: [1, 2]}]", "senders[0].count has a distribution"),
    ],
)
def test_senders_that_a_network_file_cannot_have_are_refused(senders: str, problem: str) -> None:
    tree = read_yaml(f"rate_mbps: 12\nrtt_ms: 40\nsenders: {senders}", "a test")
    with pytest.raises(SpecError) as refused:
        topology_of(tree, Path(), "a test")
    assert problem in str(refused.value)


@given(st.floats(0.1, 1e4), st.floats(0.1, 1e3), st.floats(0, 100))
def test_buffers_of_files_and_specifications_differ_by_at_most_a_packet(
    rate_mbps: float, rtt_ms: float, bdp: float
) -> None:
    keys = f"rate_mbps: {rate_mbps!r}\nrtt_ms: {rtt_ms!r}\nbuffer: {{bdp: {bdp!r}}}\n"
    (drawn,) = _drawn(keys + _ALWAYS)
    tree: Any = {
        "rate_mbps": rate_mbps,
        "rtt_ms": rtt_ms,
        "buffer": {"bdp": bdp},
        "senders": ["cubic"],
    }
    from_file = topology_of(tree, Path(), "a test", plain=True).specimen
    # The two compute packets per ms in a different order of operations.
    assert abs(drawn.buffer_packets - from_file.buffer_packets) <= 1


def test_every_key_of_a_sender_changes_the_outcome() -> None:
    """Each key that network files had before specifications is simulated."""
    keys = "rate_mbps: 12\nrtt_ms: 40\nbuffer: {bdp: 1}\ntransport: 'tcp,variant=linux'\n"
    load = "traffic: {exponential_bytes: {mean_bytes: 1.0e+5}, load: 0.5}\n"
    groups = (
        "[{design: remycc}, vegas]",
        "[{design: remycc, first_on_ms: 700}, vegas]",
        "[{design: remycc}, {protocol: vegas, rtt_offset_ms: 3}]",
        "[{design: remycc}, 'vegas,rtt_ms=90']",
        "[{design: remycc}, 'vegas=2']",
    )
    table = from_native(RuleTable([0], [([], (0.9, 3.0, 1.0))]))
    outcomes = set()
    for senders in groups:
        specimens = _drawn(f"{keys}{load}senders: {senders}\n")
        request = evaluation_pb2.EvaluationRequest(
            tables=[table], candidates=[{}], specimens=specimens, duration_ms=5000, seed=1
        )
        outcome = evaluate_columns(request)
        outcomes.add(outcome.SerializeToString(deterministic=True))
    assert len(outcomes) == len(groups)
