"""Draws the duration of designs over the number of workers, for docs/explanation/scaling.md.

Each FOLDER is an output directory of `remy-farm benchmark-search --seeds ... --out FOLDER`. Its
CPU times are measured; durations on more workers are computed from these and from the overheads of
workers and coordinator in docs/results/benchmarks.md.

    .venv/bin/python scripts/draw_fleet.py --out PICTURE.png FOLDER ...
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from matplotlib.ticker import ScalarFormatter

from remy_farm.analysis import plots
from remy_farm.specification import load_spec

# The overhead of workers per step (docs/results/benchmarks.md, "workers").
_SECONDS_PER_STEP = 0.004
# The throughput of one coordinator and its designer (docs/results/benchmarks.md, "joint-scale").
_SIMULATIONS_PER_SECOND = 14_550.0
_WORKERS = [2 ** (exponent / 4) for exponent in range(41)]
_COLORS = ("#9ab8cf", "#5d93bd", plots.FINAL, plots.FIRST, plots.INK, plots.MUTED)


@dataclass(frozen=True)
class Designs:
    """Means over designs that differ only in their seed."""

    pairs: int
    steps: float
    cpu_seconds: float
    score: float

    def wall_seconds(self, workers: float) -> float:
        """Returns the computed duration of a design on this many workers."""
        simulations = 2 * self.pairs
        step = self.cpu_seconds / self.steps
        simulating = step / min(workers, simulations)
        coordinating = simulations / _SIMULATIONS_PER_SECOND
        return self.steps * (_SECONDS_PER_STEP + simulating + coordinating)


def main() -> None:
    """Prints and draws the designs in the folders of the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, metavar="PICTURE.png")
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER")
    arguments = parser.parse_args()
    groups = sorted((_read(folder) for folder in arguments.folders), key=lambda each: each.pairs)
    for each in groups:
        walls = " | ".join(f"{each.wall_seconds(workers):.1f}" for workers in (1, 10, 100, 1000))
        print(
            f"| {each.pairs} | {each.steps:.0f} | {each.cpu_seconds:.0f} | {each.score:.3f} "
            f"| {walls} |"
        )
    arguments.out.write_bytes(_picture(groups))


def _read(folder: Path) -> Designs:
    searches = json.loads((folder / "summary.json").read_text())["searches"]

    def mean(name: str) -> float:
        return math.fsum(search[name] for search in searches) / len(searches)

    pairs = load_spec(next(folder.glob("seed-*/spec.yaml"))).search.specimens
    return Designs(pairs, mean("steps"), mean("cpu_seconds"), mean("mean"))


def _picture(groups: Sequence[Designs]) -> bytes:
    figure, axes = plots.new_figure(8.0, 4.6)
    for each, color in zip(groups, _COLORS, strict=False):
        axes.plot(
            _WORKERS,
            [each.wall_seconds(workers) for workers in _WORKERS],
            color=color,
            linewidth=1.8,
            label=f"{each.pairs} pairs per step: {each.cpu_seconds:.0f} CPU-s, {each.score:.3f}",
        )
    axes.set_xscale("log")
    axes.set_yscale("log")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(ScalarFormatter())
    axes.legend(frameon=False, fontsize=9.5)
    plots.label_axes(
        axes,
        title="Larger steps keep more workers busy and need more simulations",
        x="workers with one thread each",
        y="wall seconds of a design",
    )
    return plots.to_png(figure)


if __name__ == "__main__":
    main()
