"""How the plots look: large enough for a phone, quiet, and safe for colour-blind readers."""

from __future__ import annotations

import io

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

FIRST = "#c2560c"
FINAL = "#0b63a5"
MUTED = "#8a949e"
INK = "#20262c"
GRID = "#e4e8ec"

_DOTS_PER_INCH = 160


def new_figure(width_inches: float, height_inches: float) -> tuple[Figure, Axes]:
    """A figure with one pair of axes, left and bottom lines only."""
    figure = Figure(figsize=(width_inches, height_inches), dpi=_DOTS_PER_INCH, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(MUTED)
    axes.tick_params(colors=INK, labelsize=10, length=3)
    axes.grid(color=GRID, linewidth=0.8)
    axes.set_axisbelow(True)
    return figure, axes


def label(axes: Axes, *, title: str, x: str, y: str) -> None:
    """Title above the left edge, axis labels with units."""
    axes.set_title(title, loc="left", fontsize=12.5, color=INK, pad=10)
    axes.set_xlabel(x, fontsize=10.5, color=INK)
    axes.set_ylabel(y, fontsize=10.5, color=INK)


def to_png(figure: Figure) -> bytes:
    """The figure as a PNG file that is the same for the same data."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", facecolor="white", metadata={"Software": None})
    return buffer.getvalue()
