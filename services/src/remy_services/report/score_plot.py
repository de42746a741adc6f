"""The score of a design over its steps and its CPU time."""

from __future__ import annotations

import bisect
import math
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from remy_services.report import style
from remy_services.report.history import EpochPoint, History, StepPoint

# With more epochs than this their lines would cover the plot.
_MOST_EPOCH_LINES = 40
_CPU_TICKS = 5


def plot_score(history: History) -> bytes:
    """A PNG: the working table's score at each step, and each epoch's tables on fresh specimens."""
    figure, axes = style.new_figure(8.0, 4.6)
    axes.grid(visible=False, axis="x")
    _draw_steps(axes, history.steps)
    _draw_epochs(axes, history.epochs)
    _mark_splits(axes, history)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=8))
    style.label(axes, title="Score over the steps of the design", x="step", y="score")
    _add_cpu_axis(axes, history.cpu_seconds)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(frameon=False, fontsize=9.5, loc="best", labelcolor=style.INK)
    return style.to_png(figure)


def _draw_steps(axes: Axes, points: Sequence[StepPoint]) -> None:
    """Each visit to a rule has specimens of its own: the line is broken where they change."""
    rows: list[tuple[float, float, float]] = []
    for earlier, point in zip([None, *points], points, strict=False):
        if earlier is not None and earlier.visit != point.visit:
            rows.append((math.nan, math.nan, math.nan))
        rows.append((point.step, point.score, point.standard_error))
    if not rows:
        return
    steps, scores, errors = (np.array(column) for column in zip(*rows, strict=True))
    axes.fill_between(
        steps, scores - errors, scores + errors, color=style.MUTED, alpha=0.25, linewidth=0
    )
    axes.plot(
        steps,
        scores,
        color=style.MUTED,
        linewidth=1.3,
        marker=".",
        markersize=3,
        label="while a rule is improved, \N{PLUS-MINUS SIGN} standard error",
    )


def _draw_epochs(axes: Axes, epochs: Sequence[EpochPoint]) -> None:
    if len(epochs) <= _MOST_EPOCH_LINES:
        for epoch in epochs:
            axes.axvline(epoch.step, color=style.MUTED, linewidth=0.7, alpha=0.5)
    kept = [epoch for epoch in epochs if epoch.record.comparison.accepted]
    rolled_back = [epoch for epoch in epochs if not epoch.record.comparison.accepted]
    _draw_validated(axes, kept, "epoch's table on fresh specimens: kept", style.FINAL)
    _draw_validated(axes, rolled_back, "rolled back", "white")


def _draw_validated(axes: Axes, epochs: Sequence[EpochPoint], label: str, face_color: str) -> None:
    measured = [epoch for epoch in epochs if epoch.record.comparison.HasField("after")]
    if measured:
        axes.errorbar(
            [epoch.step for epoch in measured],
            [epoch.record.comparison.after.mean for epoch in measured],
            yerr=[epoch.record.comparison.after.standard_error for epoch in measured],
            fmt="o",
            markersize=6,
            markerfacecolor=face_color,
            color=style.FINAL,
            elinewidth=1.3,
            capsize=2.5,
            label=label,
        )


def _mark_splits(axes: Axes, history: History) -> None:
    if history.splits:
        axes.plot(
            [split.step for split in history.splits],
            [0.015] * len(history.splits),
            marker="^",
            markersize=8,
            linestyle="none",
            color=style.FIRST,
            transform=axes.get_xaxis_transform(),
            clip_on=False,
            label=f"a rule is divided (in the end {history.splits[-1].rules} rules)",
        )


def _add_cpu_axis(axes: Axes, cpu_seconds: Sequence[tuple[int, float]]) -> None:
    """CPU time along the top, at the steps where round numbers of seconds were passed."""
    if len(cpu_seconds) < 2:
        return
    total = cpu_seconds[-1][1]
    times = [seconds for _, seconds in cpu_seconds]
    ticks = [
        (cpu_seconds[min(bisect.bisect_left(times, tick), len(times) - 1)][0], tick)
        for tick in MaxNLocator(nbins=_CPU_TICKS).tick_values(0, total)
        if times[0] <= tick <= total
    ]
    top = axes.secondary_xaxis("top")
    top.set_xticks([step for step, _ in ticks], [f"{tick:g} s" for _, tick in ticks])
    top.tick_params(colors=style.MUTED, labelsize=9, length=3)
    top.spines["top"].set_visible(False)
    top.set_xlabel("CPU time", fontsize=9, color=style.MUTED, loc="left")
