"""Curves over time, or over another series: lines, bands between bounds, stacked areas."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes

from dashboards.pictures.fetched import Source, Tree
from dashboards.pictures.legend import draw_legend
from dashboards.pictures.style import COLOURS, GRID, INK, MUTED, colour, defaults, draw_nothing
from dashboards.pictures.ticks import time_ticks, value_ticks


@dataclass(frozen=True)
class Curve:
    """Values against something, by name."""

    name: str
    x: Sequence[float]
    y: Sequence[float]


def draw_time_series(axes: Axes, panel: Tree, source: Source) -> None:
    """Every series against the time since what was chosen begins."""
    start, end = source.choice.start, source.choice.end
    curves = [
        Curve(
            line.name,
            [time - start for time, _ in line.series.points],
            [value for _, value in line.series.points],
        )
        for line in source.over_time(panel)
    ]
    if not curves:
        draw_nothing(axes, panel)
        return
    axes.set_xlim(0, end - start)
    time_ticks(axes.xaxis, end - start)
    _draw(axes, panel, curves)


def draw_trend(axes: Axes, panel: Tree, source: Source) -> None:
    """Every series against the one that is the x axis."""
    lines = {line.name: dict(line.series.points) for line in source.over_time(panel)}
    across_name = panel["options"]["xField"]
    across = lines.pop(across_name, {})
    curves = []
    for name, points in lines.items():
        # The newest point of those with the same x.
        by_x = {across[time]: points[time] for time in sorted(points.keys() & across.keys())}
        curves.append(Curve(name, sorted(by_x), [by_x[x] for x in sorted(by_x)]))
    if not any(curve.x for curve in curves):
        draw_nothing(axes, panel)
        return
    axes.annotate(
        across_name, (1, 0.03), xycoords="axes fraction", ha="right", fontsize=6, color=MUTED
    )
    _draw(axes, panel, curves)


def _draw(axes: Axes, panel: Tree, curves: Sequence[Curve]) -> None:
    custom = defaults(panel).get("custom", {})
    bands = _bands(panel)
    shown = [each for each in curves if each.name not in bands.keys() | bands.values()]
    _draw_bands(axes, bands, curves)
    if custom.get("stacking", {}).get("mode") == "normal" and shown:
        _draw_stacked(axes, shown)
    else:
        for position, each in enumerate(shown):
            (line,) = axes.plot(each.x, each.y, color=colour(position), label=each.name)
            line.set(linewidth=1.2, clip_on=False, zorder=3)
    values = [value for each in shown for value in each.y]
    if custom.get("axisSoftMin") == 0 and min(values, default=0) >= 0:
        axes.set_ylim(0, axes.get_ylim()[1] if max(values) > 0 else 1)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(MUTED)
    axes.grid(color=GRID, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.tick_params(colors=INK, labelsize=6, length=2)
    value_ticks(
        axes.yaxis,
        defaults(panel)["unit"],
        most=axes.get_ylim()[1],
        whole=all(value.is_integer() for value in values),
    )
    draw_legend(axes)


def _bands(panel: Tree) -> dict[str, str]:
    """Names of upper bounds, and of the lower bounds that they are filled to."""
    return {
        override["matcher"]["options"]: change["value"]
        for override in panel["fieldConfig"]["overrides"]
        for change in override["properties"]
        if change["id"] == "custom.fillBelowTo"
    }


def _draw_bands(axes: Axes, bands: dict[str, str], curves: Sequence[Curve]) -> None:
    by_name = {each.name: each for each in curves}
    for high, low in bands.items():
        if high in by_name and low in by_name:
            upper, lower = by_name[high], by_name[low]
            axes.fill_between(upper.x, lower.y, upper.y, color=COLOURS[0], alpha=0.18, linewidth=0)


def _draw_stacked(axes: Axes, curves: Sequence[Curve]) -> None:
    times = sorted({time for each in curves for time in each.x})
    rows = [dict(zip(each.x, each.y, strict=True)) for each in curves]
    axes.stackplot(
        times,
        [[row.get(time, 0.0) for time in times] for row in rows],
        labels=[each.name for each in curves],
        colors=COLOURS,
        alpha=0.6,
    )
