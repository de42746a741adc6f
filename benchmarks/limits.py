"""Measures tables and protocols on nine networks outside every design's range.

docs/results/limits.md holds the figures.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd
import yaml

import remy_farm as rf
from benchmarks.benchmark import Benchmark, Row
from benchmarks.programs import ROOT
from remy_laboratory.kernel.measuring import jain

NETWORKS: Final = ROOT / "examples" / "networks" / "limits"
#: The sender's keys that replace `table: ENTRANT` in a network file, by column name.
ENTRANTS: Final[Mapping[str, str]] = {
    "generalist-remembering": "table: generalist-remembering",
    "general-purpose-realistic": "table: general-purpose-realistic",
    "BBR v3": "protocol: 'bbr,variant=v3'",
    "Copa": "protocol: copa",
    "Cubic": "protocol: 'cubic,variant=linux'",
}
_EVERY_MS: Final = 10.0


@dataclass(frozen=True)
class Limit:
    """A network outside the design's model, and the quantity measured on it."""

    #: The stem of the network file's name.
    name: str
    #: The measured quantities with their units, as the table prints them.
    what: str
    seconds: float
    measure: Callable[[rf.Run], str]


def _mbps(run: rf.Run, first_s: float, last_s: float, sender: int = 0) -> float:
    """Returns the mean rate, Mbit/s, at which a sender's packets arrive between two times."""
    rows = _samples(run, first_s, last_s, sender)
    return float(rows["rate_mbps"].mean())


def _samples(run: rf.Run, first_s: float, last_s: float, sender: int) -> pd.DataFrame:
    rows = run.over_time().to_pandas()
    time_s = rows["time_ms"] / 1000
    return rows[(rows["sender"] == sender) & (time_s > first_s) & (time_s <= last_s)]


def _rtt_95(run: rf.Run) -> float:
    """Returns the 95th percentile of the first sender's RTT, ms, over samples every 10 ms."""
    return float(np.nanpercentile(_samples(run, 1, 1e9, 0)["rtt_ms"].astype(float), 95))


def _loss(run: rf.Run) -> str:
    """Returns the fraction of all senders' packets that were lost, as a percentage."""
    rows = run.to_pandas()
    lost, received = rows["packets_lost"].sum(), rows["packets_received"].sum()
    return f"{lost / (lost + received):.1%}"


def _jain(run: rf.Run) -> float:
    return jain(run.to_pandas()["throughput_mbps"].tolist())


LIMITS: Final = (
    Limit(
        "rtt-step",
        "Mbit/s in the last 20 s, after the RTT has risen by 5 ms permanently (link: 24)",
        60,
        lambda run: f"{_mbps(run, 40, 60):.2f}",
    ),
    Limit(
        "leo",
        "Mbit/s; 95th percentile of RTT, ms",
        120,
        lambda run: f"{_mbps(run, 0, 120):.1f}; {_rtt_95(run):.0f}",
    ),
    Limit(
        "beside-cubic",
        "Mbit/s beside one Cubic flow (fair share: 24)",
        65,
        lambda run: f"{_mbps(run, 5, 65):.2f}",
    ),
    Limit(
        "shallow-crowd",
        "Jain's index of 32 flows; packets lost",
        30,
        lambda run: f"{_jain(run):.2f}; {_loss(run)}",
    ),
    Limit("policer", "packets lost", 30, _loss),
    Limit(
        "rate-step",
        "Mbit/s while the link's rate is 10; in the first 10 s after it returns to 100",
        50,
        lambda run: f"{_mbps(run, 20, 40):.1f}; {_mbps(run, 40, 50):.0f}",
    ),
    Limit(
        "two-rtts",
        "Mbit/s with an RTT of 20 ms; of 200 ms",
        60,
        lambda run: f"{_mbps(run, 10, 60):.2f}; {_mbps(run, 10, 60, sender=1):.2f}",
    ),
    Limit(
        "held-acks",
        "Mbit/s with ACKs every 50 ms (link: 48)",
        30,
        lambda run: f"{_mbps(run, 5, 30):.1f}",
    ),
    Limit(
        "fast-start",
        "Mbit/s in the first second; in the second",
        2,
        lambda run: f"{_mbps(run, 0, 1):.0f}; {_mbps(run, 1, 2):.0f}",
    ),
)


def measure_limit(limit: Limit, entrant: str) -> str:
    """Simulates an entrant (a value of ENTRANTS) on the limit's network and measures it there."""
    text = (NETWORKS / f"{limit.name}.yaml").read_text(encoding="utf-8")
    network = rf.Network(**yaml.safe_load(text.replace("table: ENTRANT", entrant)))
    return limit.measure(rf.simulate(network, seconds=limit.seconds, record_every_ms=_EVERY_MS))


def measure() -> list[Row]:
    """Returns one row per limit."""
    return [
        {
            "network": limit.name,
            "what": limit.what,
            **{name: measure_limit(limit, entrant) for name, entrant in ENTRANTS.items()},
        }
        for limit in LIMITS
    ]


BENCHMARK = Benchmark(
    name="limits",
    title="Outside the model",
    method=(
        "Each entrant replaces ENTRANT in the networks of examples/networks/limits, over the "
        "transport tcp,variant=linux with packets of 1500 bytes; one run per network, seed 1. "
        "Rates count packets that receivers delivered in order."
    ),
    measure=measure,
)
