"""Writes the traces of data/league/traces, which imitate links of Pantheon's emulators.

Three traces have Poisson deliveries at the rate of a Pantheon path. They last 30 s, are repeated,
and have mahimahi's resolution of whole milliseconds. Two traces deliver ACKs at fixed intervals.

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
#: The rate of a path in Mbit/s by file name (Pantheon, USENIX ATC 2018, emulators 1 to 3).
_RATES_MBPS = {"nepal.trace": 0.57, "mexico.trace": 2.64, "colombia.trace": 3.04}


def traces() -> Mapping[str, str]:
    """Returns the content of each file by its name."""
    poisson = {name: _poisson(rate) for name, rate in _RATES_MBPS.items()}
    return poisson | {
        "acks-each-100-ms.trace": "100\n",
        "ten-times-acks-each-200-ms.trace": 10 * "200\n",
    }


def _poisson(rate_mbps: float) -> str:
    """Returns delivery times in ms, one per line, with exponentially distributed gaps."""
    mean_ms = _BITS / (1000 * rate_mbps)
    times_ms: list[int] = []
    now_ms, count = 0.0, 0
    while True:
        # Strictly between 0 and 1, so that its logarithm is finite.
        uniform = (mix(round(1000 * rate_mbps), count) + 0.5) / 2**64
        now_ms -= mean_ms * log(uniform)
        count += 1
        if now_ms > 1000 * _SECONDS:
            # The last line is the trace's length.
            return "".join(f"{each}\n" for each in [*times_ms, 1000 * _SECONDS])
        times_ms.append(round(now_ms))


def main() -> None:
    """Writes all traces."""
    FOLDER.mkdir(exist_ok=True)
    for name, text in traces().items():
        write_file(FOLDER / name, text)


if __name__ == "__main__":
    main()
