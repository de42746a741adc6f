"""Writes the recordings of data/league/traces, which stand for Pantheon's.

Deliveries of three of its paths are a Poisson process of a packet's rate (mahimahi's whole
milliseconds, 30 s that begin again), and two let ACKs through at some times only.

    .venv/bin/python scripts/league_traces.py
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from remy_farm.files import write_file
from remy_simulator import log, mix

FOLDER = Path(__file__).resolve().parent.parent / "data" / "league" / "traces"
_SECONDS = 30
_BITS = 8 * 1504
#: By file: the rate of a path in Mbit/s (Pantheon, USENIX ATC 2018, emulators 1 to 3).
_RATES_MBPS = {"nepal.trace": 0.57, "mexico.trace": 2.64, "colombia.trace": 3.04}


def traces() -> Mapping[str, str]:
    """What each file holds."""
    found = {name: _poisson(rate) for name, rate in _RATES_MBPS.items()}
    return found | {
        "acks-each-100-ms.trace": "100\n",
        "ten-times-acks-each-200-ms.trace": 10 * "200\n",
    }


def _poisson(rate_mbps: float) -> str:
    """Times of opportunities, a line each, with exponential gaps."""
    mean_ms = _BITS / (1000 * rate_mbps)
    times_ms: list[int] = []
    now_ms, count = 0.0, 0
    while True:
        # In (0, 1).
        uniform = (mix(round(1000 * rate_mbps), count) + 0.5) / 2**64
        now_ms -= mean_ms * log(uniform)
        count += 1
        if now_ms > 1000 * _SECONDS:
            # The last line is the trace's length.
            return "".join(f"{each}\n" for each in [*times_ms, 1000 * _SECONDS])
        times_ms.append(round(now_ms))


def main() -> None:
    """Writes them."""
    FOLDER.mkdir(exist_ok=True)
    for name, text in traces().items():
        write_file(FOLDER / name, text)


if __name__ == "__main__":
    main()
