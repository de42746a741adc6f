"""A whole dashboard as a picture."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image

from dashboards.pictures.curves import INK
from dashboards.pictures.panels import draw
from dashboards.pictures.prometheus import Prometheus
from dashboards.pictures.variables import Choice

Tree = dict[str, Any]

_WIDTH = 24
_INCHES_WIDE = 15.0
_INCHES_PER_UNIT = 0.24
_DOTS_PER_INCH = 80
# In units of the dashboard's grid: around a panel, for its axis and its title.
_LEFT, _RIGHT, _TOP, _BOTTOM = 0.85, 0.25, 1.3, 0.9
_COLOURS = 128


def picture(dashboard: Tree, prometheus: Prometheus, choice: Choice) -> bytes:
    """A PNG of the dashboard as it is at the end of the time that was chosen."""
    placed = list(_repeated(dashboard["panels"], choice))
    height = max(y + h for _, _, (_, y, _, h) in placed)
    figure = Figure(figsize=(_INCHES_WIDE, height * _INCHES_PER_UNIT + 0.5), dpi=_DOTS_PER_INCH)
    FigureCanvasAgg(figure)
    scale = _INCHES_PER_UNIT / (height * _INCHES_PER_UNIT + 0.5)
    figure.text(0.01, 1 - 0.6 * scale, dashboard["title"], fontsize=13, color=INK, va="top")
    for panel, chosen, (x, y, w, h) in placed:
        top = 1 - (y + 2) * scale
        if panel["type"] == "row":
            figure.text(0.01, top - 0.75 * scale, panel["title"], fontsize=10, color="#5b6570")
            continue
        axes = figure.add_axes(
            (
                (x + _LEFT) / _WIDTH,
                top - (h - _BOTTOM) * scale,
                (w - _LEFT - _RIGHT) / _WIDTH,
                (h - _TOP - _BOTTOM) * scale,
            )
        )
        draw(axes, panel, prometheus, chosen)
    return _small_png(figure)


def _repeated(
    panels: list[Tree], choice: Choice
) -> Iterator[tuple[Tree, Choice, tuple[float, float, float, float]]]:
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
