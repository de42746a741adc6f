"""Present values: one in large figures, or several as bars."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes

from dashboards.pictures.fetched import Source, Tree
from dashboards.pictures.style import GRID, INK, NAMED, colour, defaults, draw_nothing
from dashboards.pictures.units import worded

_LONG_TEXT = 12


def draw_number(axes: Axes, panel: Tree, source: Source) -> None:
    """The value of a panel's first series, or its name, in the colour of its threshold."""
    lines = source.at_the_end(panel["targets"][0])
    if not lines:
        draw_nothing(axes, panel)
        return
    axes.set_axis_off()
    line, shown = lines[0], defaults(panel)
    is_name = panel["options"].get("textMode") == "name"
    text = line.name if is_name else worded(line.last, shown["unit"], shown.get("decimals"))
    axes.text(
        0.5,
        0.4,
        text,
        ha="center",
        va="center",
        fontsize=18 if len(text) < _LONG_TEXT else 11,
        color=_threshold_colour(line.last, shown["thresholds"]["steps"]),
        transform=axes.transAxes,
    )


def _threshold_colour(value: float, steps: Sequence[Tree]) -> str:
    passed = [step["color"] for step in steps if step["value"] is None or value >= step["value"]]
    return NAMED[passed[-1]]


def draw_bars(axes: Axes, panel: Tree, source: Source) -> None:
    """A bar for each series, with its name above it and its value at its end."""
    lines = source.at_the_end(panel["targets"][0])
    if not lines:
        draw_nothing(axes, panel)
        return
    unit = defaults(panel)["unit"]
    most = max(line.last for line in lines) or 1.0
    for place, line in enumerate(lines):
        share = line.last / most
        axes.barh(place, 1, height=0.4, color=GRID)
        axes.barh(place, share, height=0.4, color=colour(place))
        axes.text(0, place - 0.28, line.name, va="bottom", fontsize=6.5, color=INK)
        axes.text(
            1.02, place, worded(line.last, unit), va="center", fontsize=7, color=colour(place)
        )
    axes.set_xlim(0, 1.25)
    axes.set_ylim(len(lines) - 0.5, -0.8)
    axes.set_axis_off()
