"""Runs the programs that `make build` installs, and builds their arguments."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent

_BIN = Path(sys.executable).parent
REMY_FARM = _BIN / "remy-farm"
REMY_SIMULATE = _BIN / "remy-simulate"

#: The network of bulk flows.
BUFFER_PACKETS = 1000
STARTS_APART_MS = 200
PACKET_BYTES = 1500
#: Longer than any run.
_ALWAYS_ON_MS = 1e12


def run_json(*command: str | Path, environment: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Runs a command with --json and returns the JSON object that it prints.

    Raises CalledProcessError if the command fails.
    """
    output = subprocess.run(
        [*command, "--json"], env=environment, check=True, stdout=subprocess.PIPE
    ).stdout
    printed = json.loads(output)
    assert isinstance(printed, dict)
    return printed


def network_flags(
    *,
    remycc: Path,
    senders: int,
    seconds: float,
    rate_mbps: float = 15,
    rtt_ms: float = 150,
    on_ms: float = 5000,
    off_ms: float = 5000,
    seed: int = 1,
    buffer_packets: int | None = None,
    loss_probability: float = 0,
) -> list[str]:
    """Returns a network as flags that both `remy-farm simulate` and `remy-simulate` accept.

    The defaults are the middle of the ranges of the general-purpose design.
    """
    values: dict[str, object] = {
        "remycc": remycc,
        "senders": senders,
        "rate-mbps": rate_mbps,
        "rtt-ms": rtt_ms,
        "on-ms": on_ms,
        "off-ms": off_ms,
        "seconds": seconds,
        "seed": seed,
        "loss-probability": loss_probability,
    }
    if buffer_packets is not None:
        values["buffer-packets"] = buffer_packets
    return [argument for name, value in values.items() for argument in (f"--{name}", str(value))]


def bulk_flow_flags(
    protocol: str, *, senders: int, rate_mbps: float, rtt_ms: float, seconds: float
) -> list[str]:
    """Returns flags of `remy-farm simulate` for endless flows that start one after the other."""
    values: dict[str, object] = {
        "sender": f"{protocol}={senders}",
        "rate-mbps": rate_mbps,
        "rtt-ms": rtt_ms,
        "buffer-packets": BUFFER_PACKETS,
        "packet-bytes": PACKET_BYTES,
        "starts-apart-ms": STARTS_APART_MS,
        "on-ms": _ALWAYS_ON_MS,
        "off-ms": 1,
        "seconds": seconds,
    }
    return [argument for name, value in values.items() for argument in (f"--{name}", str(value))]
