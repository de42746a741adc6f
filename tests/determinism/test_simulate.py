"""`remy-simulate` and `remy-farm simulate` run the same simulation, on any CPU."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.cpu_features import environment_with_features_off
from benchmarks.programs import REMY_FARM, REMY_SIMULATE, network_flags, run_json
from benchmarks.tables import write_eight_rules, write_flood
from remy_simulator import registry
from remy_simulator.registry import Registry

_DEFAULTS = {"senders": 4, "rate_mbps": 15, "rtt_ms": 150, "on_ms": 1000, "off_ms": 800}
_NETWORKS: dict[str, dict[str, float]] = {
    "plain": {},
    "seed of 64 bits": {"seed": 2**64 - 1},
    "buffer": {"buffer_packets": 30},
    "no buffer": {"buffer_packets": 0},
    "loss": {"loss_probability": 0.05},
    "buffer and loss": {"buffer_packets": 30, "loss_probability": 0.05},
    "awkward numbers": {"rate_mbps": 1 / 3, "rtt_ms": 0.1, "on_ms": 1e3 / 7, "off_ms": 1e-3},
    "fast": {"rate_mbps": 10_000, "rtt_ms": 4, "senders": 64},
}


@pytest.mark.parametrize("network", _NETWORKS.values(), ids=_NETWORKS)
def test_equal_flags_give_equal_digests(network: dict[str, float], tmp_path: Path) -> None:
    seconds = 2 if network.get("rate_mbps", 0) > 1000 else 20
    options: dict[str, float] = {**_DEFAULTS, "seconds": seconds, **network}
    flags = network_flags(remycc=write_eight_rules(tmp_path), **options)  # type: ignore[arg-type]
    flags += ["--remycc", str(write_flood(tmp_path))] if "buffer_packets" in network else []
    native, python = run_json(REMY_SIMULATE, *flags), run_json(REMY_FARM, "simulate", *flags)
    assert native["digest"] == python["digest"]
    assert native["packets_received"] == python["packets_received"] > 0


@pytest.mark.parametrize("queue", ["xcp", "red", "sfq-codel"])
def test_protocols_do_not_depend_on_cpu_features(queue: str) -> None:
    """One network has a sender of every variant of every protocol that the queue supports."""
    flags = ["simulate", "--queue", queue, "--rate-mbps", "40", "--rtt-ms", "60", "--seconds", "20"]
    # With this seed remy-aimd's first packet arrives. It has no timeout, and would wait for ever.
    flags += ["--buffer-packets", "200", "--on-bytes", "300e3", "--off-ms", "300", "--seed", "2"]
    for entry in registry.entries(Registry.PROTOCOL).values():
        if registry.IS_ALONE in entry.traits:  # cannot share the link with other protocols
            continue
        if queue == "xcp" or registry.NEEDS_XCP_ROUTER not in entry.traits:
            for variant in entry.variants:
                flags += ["--sender", f"{entry.name},variant={variant.name}"]
    expected = run_json(REMY_FARM, *flags)
    features_off = run_json(REMY_FARM, *flags, environment=environment_with_features_off())
    assert len(expected["senders"]) > 20
    assert all(sender["packets_received"] > 0 for sender in expected["senders"])
    assert features_off["digest"] == expected["digest"]
