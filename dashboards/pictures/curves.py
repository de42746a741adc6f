"""Curves in axes: lines, bands between bounds, and areas on top of each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, MaxNLocator

from dashboards.pictures.units import worded

Tree = dict[str, Any]

INK = "#20262c"
MUTED = "#8a949e"
_GRID = "#e4e8ec"
COLOURS = ("#0b63a5", "#c2560c", "#2e8540", "#7a4fa3", "#b8860b", "#b0305c", "#2a9d9d", "#6b7280")
_MOST_LEGENDS = 6


def defaults(panel: Tree) -> Tree:
    """How a panel's fields are shown unless it says otherwise."""
    found: Tree = panel["fieldConfig"]["defaults"]
    return found


def draw_curves(
    axes: Axes, panel: Tree, curves: Sequence[tuple[str, list[float], list[float]]]
) -> None:
    """Lines by name, and bands where one is filled below to another."""
    custom = defaults(panel).get("custom", {})
    bands = _bands(panel)
    by_name = {name: (x, y) for name, x, y in curves}
    hidden = set(bands) | set(bands.values())
    for high, low in bands.items():
        if high in by_name and low in by_name:
            axes.fill_between(
                by_name[high][0],
                by_name[low][1],
                by_name[high][1],
                color=COLOURS[0],
                alpha=0.18,
                linewidth=0,
            )
    shown = [curve for curve in curves if curve[0] not in hidden]
    if custom.get("stacking", {}).get("mode") == "normal" and shown:
        _stacked(axes, shown)
    else:
        for position, (name, x, y) in enumerate(shown):
            colour = COLOURS[position % len(COLOURS)]
            axes.plot(x, y, color=colour, linewidth=1.2, label=name, clip_on=False, zorder=3)
    if custom.get("axisSoftMin") == 0 and min((min(y) for _, _, y in shown), default=0) >= 0:
        axes.set_ylim(0, axes.get_ylim()[1] if max(max(y) for _, _, y in shown) > 0 else 1)
    _finish(axes, panel, len(shown))


def _bands(panel: Tree) -> dict[str, str]:
    """Names of upper bounds, and of the lower bounds that they are filled to."""
    return {
        override["matcher"]["options"]: change["value"]
        for override in panel["fieldConfig"]["overrides"]
        for change in override["properties"]
        if change["id"] == "custom.fillBelowTo"
    }


def _stacked(axes: Axes, curves: Sequence[tuple[str, list[float], list[float]]]) -> None:
    times = sorted({time for _, x, _ in curves for time in x})
    rows = [dict(zip(x, y, strict=True)) for _, x, y in curves]
    axes.stackplot(
        times,
        [[row.get(time, 0.0) for time in times] for row in rows],
        labels=[name for name, _, _ in curves],
        colors=COLOURS,
        alpha=0.6,
    )


def _finish(axes: Axes, panel: Tree, count: int) -> None:
    unit = defaults(panel)["unit"]
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(MUTED)
    axes.grid(color=_GRID, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.tick_params(colors=INK, labelsize=6, length=2)
    axes.yaxis.set_major_locator(MaxNLocator(nbins=5))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: worded(value, unit)))
    if 0 < count <= _MOST_LEGENDS:
        axes.legend(fontsize=6, frameon=False, loc="best", labelcolor=INK)
