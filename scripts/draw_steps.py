"""Draws the scores of designs over their number of steps, for docs/results/ablations.md.

Each FOLDER is an output directory of `remy-farm benchmark-search --seeds ... --out FOLDER`. Its
tables are evaluated on all held-out specimens, and printed as a row of a Markdown table.

    .venv/bin/python scripts/draw_steps.py --out PICTURE.png FOLDER ...
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from matplotlib.ticker import FixedFormatter, FixedLocator, NullLocator

from remy_farm.analysis import plots
from remy_farm.evaluation.local import LocalEvaluator
from remy_farm.evaluation.measures import Evaluate
from remy_farm.remycc import read_remycc
from remy_farm.specification import load_spec
from remy_laboratory.search_benchmark import measure_table


@dataclass(frozen=True)
class Group:
    """Designs that differ only in their seed."""

    specimens: int
    steps: float
    cpu_seconds: float
    scores: tuple[float, ...]

    @property
    def mean(self) -> float:
        return math.fsum(self.scores) / len(self.scores)


def main() -> None:
    """Measures, prints and draws the designs in the folders of the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, metavar="PICTURE.png")
    parser.add_argument("--threads", type=int, default=1, metavar="N")
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER")
    arguments = parser.parse_args()
    with closing(LocalEvaluator(arguments.threads)) as evaluator:
        groups = [_measure(folder, evaluator.evaluate) for folder in arguments.folders]
    for group in groups:
        scores = " | ".join(f"{score:.3f}" for score in group.scores)
        print(
            f"| {group.specimens} | {group.steps:.0f} | {group.cpu_seconds:.0f} "
            f"| {scores} | {group.mean:.3f} |"
        )
    arguments.out.write_bytes(_picture(groups))


def _measure(folder: Path, evaluate: Evaluate) -> Group:
    designs = sorted(path.parent for path in folder.glob("seed-*/checkpoint.bin"))
    ends = [json.loads((each / "progress.jsonl").read_text().splitlines()[-1]) for each in designs]
    scores = [
        measure_table(read_remycc(each / "remycc.json").table, evaluate).mean for each in designs
    ]
    return Group(
        specimens=load_spec(designs[0] / "spec.yaml").search.specimens,
        steps=math.fsum(end["step"] for end in ends) / len(ends),
        cpu_seconds=math.fsum(end["cpu_seconds"] for end in ends) / len(ends),
        scores=tuple(score.mean for score in scores if score is not None),
    )


def _picture(groups: Sequence[Group]) -> bytes:
    figure, axes = plots.new_figure(8.0, 4.4)
    for group in groups:
        axes.plot([group.steps] * len(group.scores), group.scores, ".", color=plots.MUTED)
    steps, means = [each.steps for each in groups], [each.mean for each in groups]
    axes.plot(steps, means, "o-", color=plots.FINAL, linewidth=1.5)
    axes.set_xscale("log")
    labels = [f"{each.steps:.0f}\nP = {each.specimens}" for each in groups]
    axes.xaxis.set_major_locator(FixedLocator(steps))
    axes.xaxis.set_major_formatter(FixedFormatter(labels))
    axes.xaxis.set_minor_locator(NullLocator())
    plots.label_axes(
        axes,
        title="The same number of simulations in fewer, larger steps",
        x="steps of the design, and specimens P per step",
        y="log2(throughput / link rate) - log2(delay / RTT)",
    )
    return plots.to_png(figure)


if __name__ == "__main__":
    main()
