"""Reads the reference implementation's measurements and compares the simulator with them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from benchmarks.benchmark import Unavailable
from benchmarks.programs import REMY_SIMULATE, network_flags, run_json
from benchmarks.tables import REFERENCE

GOLDENS = REFERENCE / "goldens.json"

# A packet of 1500 bytes is 12 kbit.
_MBPS_PER_PACKET_PER_MS = 12
_MS_PER_SECOND = 1000
#: Allowed beyond the reference's own run-to-run spread: relative, and absolute for the logarithms
#: of the normalized score.
_RELATIVE = {"throughput_over_link_rate": 0.015, "delay_over_rtt": 0.015}
_ABSOLUTE = {"normalized_score_per_sender": 0.02}


@dataclass(frozen=True)
class Comparison:
    """One measure on one network: the simulator's value and the reference's."""

    measure: str
    ours: float
    reference: float
    #: The largest difference allowed.
    tolerance: float

    @property
    def difference(self) -> float:
        """The simulator's value minus the reference's."""
        return self.ours - self.reference

    @property
    def is_within(self) -> bool:
        """Whether the difference is allowed."""
        return abs(self.difference) <= self.tolerance


@dataclass(frozen=True)
class Golden:
    """One network with the reference implementation's measurements over several runs."""

    entry: dict[str, Any]

    @property
    def name(self) -> str:
        """A short description of the RemyCC and the network."""
        entry = self.entry
        parts = [
            entry["remycc"].removesuffix(".dna").removeprefix("RemyCC-"),
            f"{entry['senders']} senders",
            f"{entry['link_packets_per_ms'] * _MBPS_PER_PACKET_PER_MS:.4g} Mbit/s",
            f"{entry['rtt_ms']} ms",
        ]
        if entry["buffer_packets"] is not None:
            parts.append(f"buffer {entry['buffer_packets']}")
        if entry["loss_rate"]:
            parts.append(f"loss {entry['loss_rate']:.0%}")
        return ", ".join(parts)

    def compare(self) -> list[Comparison]:
        """Simulates the network for the duration of one reference run and compares all measures."""
        entry = self.entry
        ours = run_json(
            REMY_SIMULATE,
            *network_flags(
                remycc=REFERENCE / "remyccs" / entry["remycc"],
                senders=entry["senders"],
                rate_mbps=entry["link_packets_per_ms"] * _MBPS_PER_PACKET_PER_MS,
                rtt_ms=entry["rtt_ms"],
                on_ms=entry["mean_on_ms"],
                off_ms=entry["mean_off_ms"],
                buffer_packets=entry["buffer_packets"],
                loss_probability=entry["loss_rate"],
                seconds=entry["simulated_ms_per_run"] / _MS_PER_SECOND,
            ),
        )
        return [self._compare(measure, ours[measure]) for measure in (*_RELATIVE, *_ABSOLUTE)]

    def _compare(self, measure: str, ours: float) -> Comparison:
        mean = self.entry[f"{measure}_mean"]
        spread = self.entry[f"{measure}_max"] - self.entry[f"{measure}_min"]
        allowed = _RELATIVE.get(measure, 0) * abs(mean) + _ABSOLUTE.get(measure, 0)
        return Comparison(measure, ours, mean, spread + allowed)


def read_goldens() -> list[Golden]:
    """Returns all networks with reference measurements. Raises Unavailable."""
    if not GOLDENS.exists():
        raise Unavailable(f"REMY_REFERENCE_DIR names no directory that has {GOLDENS.name}.")
    return [Golden(entry) for entry in json.loads(GOLDENS.read_text(encoding="utf-8"))["entries"]]
