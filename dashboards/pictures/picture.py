"""A whole dashboard as a picture."""

from __future__ import annotations

import io
from collections.abc import Iterator

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.transforms import Bbox
from PIL import Image

from dashboards.pictures.fetched import Source, Tree
from dashboards.pictures.panels import draw
from dashboards.pictures.prometheus import Prometheus
from dashboards.pictures.style import GRID, INK, MUTED
from dashboards.pictures.variables import Choice

_WIDTH = 24
_INCHES_WIDE = 15.0
_INCHES_PER_COLUMN = _INCHES_WIDE / _WIDTH
_INCHES_PER_ROW = 0.26
_HEAD_INCHES = 0.5
_DOTS_PER_INCH = 80
_GAP_INCHES = 0.06
# Inches within a panel's frame, at its left, right, top and bottom.
_CURVE_MARGINS = (0.5, 0.15, 0.32, 0.52)
_OTHER_MARGINS = (0.12, 0.12, 0.32, 0.08)
_CURVES = {"timeseries", "trend"}
_COLOURS = 128

#: Left, top, width and height, in columns and rows of the dashboard's grid.
_Place = tuple[float, float, float, float]


def picture(dashboard: Tree, prometheus: Prometheus, choice: Choice) -> bytes:
    """A PNG of the dashboard as it is at the end of the time that was chosen."""
    placed = list(_repeated(dashboard["panels"], choice))
    rows = max(y + h for _, _, (_, y, _, h) in placed)
    inches_high = rows * _INCHES_PER_ROW + _HEAD_INCHES
    figure = Figure(figsize=(_INCHES_WIDE, inches_high), dpi=_DOTS_PER_INCH)
    FigureCanvasAgg(figure)
    figure.text(0.005, 1 - 0.12 / inches_high, dashboard["title"], fontsize=13, color=INK, va="top")
    for panel, chosen, (x, y, w, h) in placed:
        left, top = x * _INCHES_PER_COLUMN, inches_high - _HEAD_INCHES - y * _INCHES_PER_ROW
        width, height = w * _INCHES_PER_COLUMN, h * _INCHES_PER_ROW
        if panel["type"] == "row":
            baseline = (top - 0.8 * height) / inches_high
            figure.text(0.005, baseline, panel["title"], fontsize=10, color=MUTED)
            continue
        frame = Bbox.from_extents(left, top - height, left + width, top).padded(-_GAP_INCHES)
        _add_frame(figure, frame)
        draw(_add_axes(figure, frame, panel), panel, Source(prometheus, chosen))
    return _small_png(figure)


def _add_frame(figure: Figure, inches: Bbox) -> None:
    box = inches.transformed(figure.dpi_scale_trans - figure.transFigure)
    figure.add_artist(
        Rectangle((box.x0, box.y0), box.width, box.height, facecolor="none", edgecolor=GRID)
    )


def _add_axes(figure: Figure, frame: Bbox, panel: Tree) -> Axes:
    margins = _CURVE_MARGINS if panel["type"] in _CURVES else _OTHER_MARGINS
    left, right, top, bottom = margins
    within = Bbox.from_extents(frame.x0 + left, frame.y0 + bottom, frame.x1 - right, frame.y1 - top)
    return figure.add_axes(within.transformed(figure.dpi_scale_trans - figure.transFigure).bounds)


def _repeated(panels: list[Tree], choice: Choice) -> Iterator[tuple[Tree, Choice, _Place]]:
    """Panels with what is chosen for them and their places; repeated ones once for each job."""
    for panel in panels:
        place = panel["gridPos"]
        x, y, w, h = (float(place[key]) for key in ("x", "y", "w", "h"))
        if "repeat" in panel and choice.jobs:
            width = _WIDTH / len(choice.jobs)
            for number, job_id in enumerate(choice.jobs):
                yield panel, choice.only(job_id), (number * width, y, width, h)
        else:
            yield panel, choice, (x, y, w, h)


def _small_png(figure: Figure) -> bytes:
    """The figure with few colours, which lines and text do not need more of."""
    drawn = io.BytesIO()
    figure.savefig(drawn, format="png", facecolor="white", metadata={"Software": None})
    with Image.open(drawn) as image:
        small = image.convert("RGB").quantize(_COLOURS, dither=Image.Dither.NONE)
    buffer = io.BytesIO()
    small.save(buffer, format="png", optimize=True)
    return buffer.getvalue()
