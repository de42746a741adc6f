"""The programs that are measured, as `make build` leaves them."""

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

#: Of bulk flows.
BUFFER_PACKETS = 1000
STARTS_APART_MS = 200
PACKET_BYTES = 1500
#: As long as any run.
_ALWAYS_ON_MS = 1e12


def run_json(*command: str | Path, environment: Mapping[str, str] | None = None) -> dict[str, Any]:
    """The one JSON object that the command (which is to succeed) prints when given --json."""
    output = subprocess.run(
        [*command, "--json"], env=environment, check=True, stdout=subprocess.PIPE
    ).stdout
    tree = json.loads(output)
    assert isinstance(tree, dict)
    return tree


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
    """A network as the flags that `remy-farm simulate` and `remy-simulate` share.

    Unless told otherwise it is in the middle of the general-purpose ranges.
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
    return [word for name, value in values.items() for word in (f"--{name}", str(value))]


def bulk_flow_flags(
    protocol: str, *, senders: int, rate_mbps: float, rtt_ms: float, seconds: float
) -> list[str]:
    """Flows without end that start one after the other, as flags of `remy-farm simulate`."""
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
    return [word for name, value in values.items() for word in (f"--{name}", str(value))]
