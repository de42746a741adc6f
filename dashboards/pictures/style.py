"""What panels of all kinds have in common: colours, and how they say that they have no data."""

from __future__ import annotations

from typing import Any

from matplotlib.axes import Axes

Tree = dict[str, Any]

INK = "#20262c"
MUTED = "#8a949e"
GRID = "#e4e8ec"
COLOURS = ("#0b63a5", "#c2560c", "#2e8540", "#7a4fa3", "#b8860b", "#b0305c", "#2a9d9d", "#6b7280")
#: Of thresholds, by Grafana's names.
NAMED = {"red": "#c0392b", "green": "#2e8540", "orange": "#c2560c", "blue": "#0b63a5"}


def colour(position: int) -> str:
    """Of the series at a position; colours begin again after the last."""
    return COLOURS[position % len(COLOURS)]


def defaults(panel: Tree) -> Tree:
    """How a panel's fields are shown unless it says otherwise."""
    found: Tree = panel["fieldConfig"]["defaults"]
    return found


def draw_nothing(axes: Axes, panel: Tree) -> None:
    """Says that there is no data as the panel says it in Grafana."""
    axes.set_axis_off()
    text = defaults(panel)["noValue"]
    axes.text(0.5, 0.5, text, ha="center", va="center", color=MUTED, transform=axes.transAxes)
