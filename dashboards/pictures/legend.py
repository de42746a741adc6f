"""Legends below panels, as Grafana has them."""

from __future__ import annotations

from matplotlib.axes import Axes

from dashboards.pictures.style import INK

_FONT_POINTS = 6
_MOST_ROWS = 3
_BELOW_INCHES = 0.16
# What fits is guessed: of a letter of this size, and of a mark with the space around it.
_LETTER_INCHES = 0.043
_MARK_INCHES = 0.42


def draw_legend(axes: Axes) -> None:
    """Names all curves in as few rows as have room for them; none where there is no room."""
    marks, names = axes.get_legend_handles_labels()
    if not names:
        return
    width_inches, height_inches = _inches(axes)
    entry_inches = _MARK_INCHES + _LETTER_INCHES * max(len(name) for name in names)
    columns = max(1, min(len(names), int(width_inches / entry_inches)))
    if len(names) > columns * _MOST_ROWS:
        return
    axes.legend(
        marks,
        names,
        fontsize=_FONT_POINTS,
        frameon=False,
        labelcolor=INK,
        loc="upper left",
        bbox_to_anchor=(0, -_BELOW_INCHES / height_inches),
        borderaxespad=0,
        borderpad=0,
        handlelength=1.2,
        handleheight=0.5,
        handletextpad=0.5,
        columnspacing=1.2,
        labelspacing=0.2,
        ncols=columns,
    )


def _inches(axes: Axes) -> tuple[float, float]:
    figure = axes.get_figure(root=True)
    assert figure is not None
    extent = axes.get_window_extent()
    return extent.width / figure.dpi, extent.height / figure.dpi
