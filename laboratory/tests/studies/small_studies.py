"""Studies that are simulated in a second."""

from __future__ import annotations

from pathlib import Path

#: Two protocols at two link rates, and a RemyCC whose file does not exist.
SMALL = """\
title: Two protocols
source: nobody
network: {rtt_ms: 20, buffer: {bdp: 1}, senders: 2,
  traffic: {exponential_time: {mean_ms: 500}, mean_off_ms: 500}}
seconds: 4
runs: {quick: 2, full: 3}
sweep: {field: rate_mbps, label: "link rate, Mbit/s", values: [2, 8]}
rows:
- {name: NewReno, sender: newreno}
- {name: Vegas, sender: vegas, network: {queue: codel}}
- {name: other, sender: "remycc:published/none.dna"}
expect:
- {row: NewReno, measure: utilization, at_least: 0.1, source: nobody, claim: NewReno sends}
- {row: NewReno, at: 8, over_at: 2, at_least: 1.5, source: nobody, claim: more at a faster link}
picture: {drawing: curves, logarithmic_x: true}
"""


def write_studies(folder: Path, **texts: str) -> Path:
    """Writes a study called `small` with these figures by name; returns the studies' directory."""
    studies = folder / "studies"
    (studies / "small").mkdir(parents=True)
    for name, text in texts.items():
        (studies / "small" / f"{name}.yaml").write_text(text, encoding="utf-8")
    return studies
