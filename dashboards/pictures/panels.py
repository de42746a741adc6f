"""Panels drawn into axes, each kind as Grafana shows it, or nearly so."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, MaxNLocator
from matplotlib.transforms import Bbox

from dashboards.pictures.curves import COLOURS, INK, MUTED, defaults, draw_curves
from dashboards.pictures.prometheus import Prometheus, Series
from dashboards.pictures.units import worded
from dashboards.pictures.variables import Choice

Tree = dict[str, Any]

_NAMED = {"red": "#c0392b", "green": "#2e8540", "orange": "#c2560c", "blue": "#0b63a5"}
_MOST_ROWS = 8


@dataclass(frozen=True)
class Line:
    """A series with its name."""

    name: str
    series: Series


def draw(axes: Axes, panel: Tree, prometheus: Prometheus, choice: Choice) -> None:
    """Draws a panel and its title; a panel without data says so as it does in Grafana."""
    axes.set_title(
        choice.title(panel["title"]), loc="left", fontsize=8, color=INK, pad=4, fontweight="bold"
    )
    kinds = {
        "timeseries": _time_series,
        "trend": _trend,
        "stat": _stat,
        "bargauge": _bars,
        "table": _table,
    }
    kinds[panel["type"]](axes, panel, prometheus, choice)


def _over_time(panel: Tree, prometheus: Prometheus, choice: Choice) -> list[Line]:
    return [
        Line(_name(target, series), series)
        for target in panel["targets"]
        for series in prometheus.range(
            choice.expression(target["expr"]), choice.start, choice.end, choice.step_seconds
        )
        if series.points
    ]


def _now(target: Tree, prometheus: Prometheus, choice: Choice) -> list[Line]:
    found = prometheus.instant(choice.expression(target["expr"]), choice.end)
    return [Line(_name(target, series), series) for series in found if series.points]


def _name(target: Tree, series: Series) -> str:
    legend = target.get("legendFormat") or ", ".join(series.labels.values())
    return re.sub(r"{{(\w+)}}", lambda found: series.labels.get(found[1], ""), legend)


def _nothing(axes: Axes, panel: Tree) -> None:
    axes.set_axis_off()
    text = defaults(panel)["noValue"]
    axes.text(0.5, 0.5, text, ha="center", va="center", color=MUTED, transform=axes.transAxes)


def _time_series(axes: Axes, panel: Tree, prometheus: Prometheus, choice: Choice) -> None:
    lines = _over_time(panel, prometheus, choice)
    if not lines:
        _nothing(axes, panel)
        return
    curves = [
        (
            line.name,
            [time - choice.start for time, _ in line.series.points],
            [value for _, value in line.series.points],
        )
        for line in lines
    ]
    axes.set_xlim(0, choice.end - choice.start)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=5))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: worded(value, "s")))
    draw_curves(axes, panel, curves)


def _trend(axes: Axes, panel: Tree, prometheus: Prometheus, choice: Choice) -> None:
    """Everything against the field that is the x axis."""
    lines = {line.name: dict(line.series.points) for line in _over_time(panel, prometheus, choice)}
    across = lines.pop(panel["options"]["xField"], {})
    curves = []
    for name, points in lines.items():
        times = sorted(points.keys() & across.keys())
        curves.append((name, [across[time] for time in times], [points[time] for time in times]))
    if not any(x for _, x, _ in curves):
        _nothing(axes, panel)
        return
    draw_curves(axes, panel, curves)
    axes.set_xlabel(panel["options"]["xField"], fontsize=6, color=MUTED)


def _stat(axes: Axes, panel: Tree, prometheus: Prometheus, choice: Choice) -> None:
    lines = _over_time(panel, prometheus, choice)
    last = [
        line for line in lines if line.series.points[-1][0] >= choice.end - 2 * choice.step_seconds
    ]
    if not last:
        _nothing(axes, panel)
        return
    axes.set_axis_off()
    value = last[0].series.points[-1][1]
    shown = defaults(panel)
    is_name = panel["options"].get("textMode") == "name"
    text = last[0].name if is_name else worded(value, shown["unit"])
    colour = _colour(value, shown["thresholds"]["steps"])
    size = 18 if len(text) < 12 else 11
    axes.text(
        0.5,
        0.45,
        text,
        ha="center",
        va="center",
        fontsize=size,
        color=colour,
        transform=axes.transAxes,
    )


def _colour(value: float, steps: Sequence[Tree]) -> str:
    passed = [step["color"] for step in steps if step["value"] is None or value >= step["value"]]
    return _NAMED[passed[-1]]


def _bars(axes: Axes, panel: Tree, prometheus: Prometheus, choice: Choice) -> None:
    lines = _now(panel["targets"][0], prometheus, choice)
    if not lines:
        _nothing(axes, panel)
        return
    values = [line.series.points[-1][1] for line in lines]
    unit = defaults(panel)["unit"]
    places = range(len(values))
    axes.barh(places, values, color=[COLOURS[place % len(COLOURS)] for place in places])
    axes.set_yticks(places, ["" for _ in places])
    axes.invert_yaxis()
    for place, (line, value) in enumerate(zip(lines, values, strict=True)):
        axes.text(0, place, f" {line.name}: {worded(value, unit)}", va="center", fontsize=6.5)
    axes.spines[["top", "right", "bottom"]].set_visible(False)
    axes.set_xticks([])


def _table(axes: Axes, panel: Tree, prometheus: Prometheus, choice: Choice) -> None:
    join, organize = (each["options"] for each in panel["transformations"])
    key = join["byField"]
    titles = {
        column.removeprefix("Value #"): title
        for column, title in organize["renameByName"].items()
        if column.startswith("Value")
    }
    shown = [
        title
        for column, title in organize["renameByName"].items()
        if not column.startswith("Value")
    ]
    rows: dict[str, dict[str, str]] = {}
    for target in panel["targets"]:
        title = titles[target["refId"]]
        unit = _unit(panel, title)
        for line in _now(target, prometheus, choice):
            row = rows.setdefault(line.series.labels[key], {})
            row |= {label: line.series.labels[label] for label in shown}
            row[title] = worded(line.series.points[-1][1], unit)
    if not rows:
        _nothing(axes, panel)
        return
    axes.set_axis_off()
    columns = [*shown, *titles.values()]
    cells = [[row.get(column, "") for column in columns] for row in rows.values()][:_MOST_ROWS]
    height = (len(cells) + 1) / (_MOST_ROWS + 1)
    table = axes.table(
        cells,
        colLabels=columns,
        cellLoc="left",
        colLoc="left",
        edges="B",
        bbox=Bbox.from_bounds(0, 1 - height, 1, height),
    )
    table.auto_set_font_size(False)
    table.set_fontsize(7)


def _unit(panel: Tree, title: str) -> str:
    for override in panel["fieldConfig"]["overrides"]:
        for change in override["properties"]:
            if override["matcher"]["options"] == title and change["id"] == "unit":
                return str(change["value"])
    return str(defaults(panel)["unit"])
