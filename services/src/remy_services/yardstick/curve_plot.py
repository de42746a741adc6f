"""The score of published tables over the CPU time of the searches that published them."""

from __future__ import annotations

import math
from collections.abc import Sequence

from matplotlib.ticker import FuncFormatter, SymmetricalLogLocator

from remy_services.report import style
from remy_services.yardstick.curve import SeedCurve
from remy_services.yardstick.published import PublishedScore

# What is below says nothing but that a search has just begun.
_LOWEST = -1.6
_ROOM_ABOVE = 0.05
_LINEAR_SECONDS = 10.0
# Distinct for colour-blind readers, and again from the first for more searches than colours.
_COLORS = ("#0b63a5", "#c2560c", "#117a55", "#8a3b8f", "#b8860b", "#444c55")


def plot_curves(
    curves: Sequence[SeedCurve], published: Sequence[PublishedScore], *, delta: float
) -> bytes:
    """A PNG: a line for each search, a horizontal one for each published table."""
    figure, axes = style.new_figure(8.0, 4.8)
    lowest = highest = -0.2
    for number, curve in enumerate(curves):
        scored = [(p.cpu_seconds, p.score.mean) for p in curve.points if p.score.mean is not None]
        if not scored:
            continue
        means = [score.mean for _, score in scored]
        lowest, highest = min(lowest, *means), max(highest, *means)
        color = _COLORS[number % len(_COLORS)]
        times = [seconds for seconds, _ in scored]
        axes.plot(
            [*times, curve.cpu_seconds],
            [*means, means[-1]],
            drawstyle="steps-post",
            color=color,
            linewidth=1.5,
            label=f"seed {curve.seed}",
        )
        axes.errorbar(
            times,
            means,
            yerr=[score.standard_error or 0.0 for _, score in scored],
            fmt=".",
            color=color,
            markersize=5,
            elinewidth=1.0,
        )
    for each in published:
        if math.isfinite(each.mean):
            lowest = min(lowest, each.mean)
            axes.axhline(each.mean, color=style.MUTED, linewidth=1.1, linestyle="--")
            axes.annotate(
                f"{each.name}, {each.mean:.3f}",
                (1.0, each.mean),
                xycoords=("axes fraction", "data"),
                ha="right",
                va="bottom",
                fontsize=8.5,
                color=style.MUTED,
            )
    axes.set_ylim(max(lowest - _ROOM_ABOVE, _LOWEST), highest + _ROOM_ABOVE)
    axes.set_xscale("symlog", linthresh=_LINEAR_SECONDS)
    axes.xaxis.set_major_locator(
        SymmetricalLogLocator(base=10, linthresh=_LINEAR_SECONDS, subs=(1, 2, 5))
    )
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.set_xlim(left=0)
    weight = "" if delta == 1 else f"{delta:g} "
    style.label(
        axes,
        title="Published table's score on held-out specimens",
        x=f"CPU time of the search, s (logarithmic above {_LINEAR_SECONDS:g})",
        y=f"log2(throughput / link rate) - {weight}log2(delay / RTT)",
    )
    if curves:
        axes.legend(frameon=False, fontsize=9.5, loc="lower right", labelcolor=style.INK)
    return style.to_png(figure)
