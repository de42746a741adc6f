"""Panels drawn into axes, each kind as Grafana shows it, or nearly so."""

from __future__ import annotations

from matplotlib.axes import Axes

from dashboards.pictures.curves import draw_time_series, draw_trend
from dashboards.pictures.fetched import Source, Tree
from dashboards.pictures.figures import draw_bars, draw_number
from dashboards.pictures.job_table import draw_table
from dashboards.pictures.style import INK

_KINDS = {
    "timeseries": draw_time_series,
    "trend": draw_trend,
    "stat": draw_number,
    "bargauge": draw_bars,
    "table": draw_table,
}


def draw(axes: Axes, panel: Tree, source: Source) -> None:
    """Draws a panel and its title; a panel without data says so as it does in Grafana."""
    title = source.choice.title(panel["title"])
    axes.set_title(title, loc="left", fontsize=8, color=INK, pad=4, fontweight="bold")
    _KINDS[panel["type"]](axes, panel, source)
