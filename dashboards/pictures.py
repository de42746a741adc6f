"""Draw the dashboards from the data of a real Prometheus, without Grafana, for the documents."""

from __future__ import annotations

import io
import itertools
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import Locator, MaxNLocator, MultipleLocator
from matplotlib.transforms import Bbox
from PIL import Image

from dashboards.__main__ import GENERATED
from dashboards.prometheus import Choice, Prometheus, Series

Tree = dict[str, Any]
#: Series and their legends in a panel.
Lines = list[tuple[str, Series]]

_INK, _MUTED, _GRID = "#20262c", "#8a949e", "#e4e8ec"
_COLOURS = ("#0b63a5", "#c2560c", "#2e8540", "#7a4fa3", "#b8860b", "#b0305c", "#2a9d9d", "#6b7280")
_NAMED = {"red": "#c0392b", "green": "#2e8540", "orange": "#c2560c", "blue": "#0b63a5"}
_COLUMNS, _INCHES_WIDE, _ROW_INCHES, _HEAD_INCHES, _GAP = 24, 15.0, 0.26, 0.5, 0.06
_DOTS_PER_INCH = 80
_CURVES = {"timeseries", "trend"}
_CURVE_MARGINS, _MARGINS = (0.56, 0.58, 0.21, 0.38), (0.18, 0.14, 0.18, 0.38)
_TICKS = 5
#: Possible distances between ticks of a time axis, in seconds.
_TIME_STEPS = (1, 5, 15, 60, 300, 900, 3600, 4 * 3600, 86400)
_SCALES: Final[dict[str, tuple[tuple[float, str], ...]]] = {
    "s": ((86400, " d"), (3600, " h"), (60, " min"), (1, " s"), (1e-3, " ms"), (1e-6, " µs")),
    "bytes": ((1 << 30, " GiB"), (1 << 20, " MiB"), (1 << 10, " KiB"), (1, " B")),
    "": ((1e12, " T"), (1e9, " G"), (1e6, " M"), (1e3, " k"), (1, "")),
    # Without a unit, a number is written in full if it is short enough to read.
    "none": ((1e12, " T"), (1e9, " G"), (1e6, " M"), (1, "")),
    "percentunit": ((0.01, " %"),),
}
_SUFFIXES = {"pps": "p/s", "ops": "/s"}


def worded(value: float, unit: str, decimals: int | None = None) -> str:
    """Formats a value with its unit as Grafana does, to three figures or to `decimals` places."""
    scale = _SCALES.get(unit, _SCALES[""])
    whole = next(each for each in scale if each[0] == 1 or len(scale) == 1)
    size, name = next((each for each in scale if abs(value) >= each[0]), whole)
    suffix = _SUFFIXES.get(unit, "")
    name = f"{name or ' '}{suffix}" if suffix else name
    scaled = value / size
    if decimals is None:
        return f"{Decimal(f'{scaled:.3g}' if abs(scaled) < 1000 else f'{scaled:.0f}'):f}{name}"
    return f"{scaled:.{decimals}f}{name}"


def draw_all(prometheus: Prometheus, choice: Choice, folder: Path) -> list[Path]:
    """Writes dashboard-NAME.png for each dashboard; that of one job shows the first job."""
    paths = []
    for source in sorted(GENERATED.glob("*.json")):
        dashboard = json.loads(source.read_text(encoding="utf-8"))
        variables = {each["name"]: each for each in dashboard["templating"]["list"]}
        is_of_one = "job" in variables and not variables["job"]["multi"]
        chosen = choice.only(next(iter(choice.jobs))) if is_of_one else choice
        paths.append(folder / f"dashboard-{source.stem}.png")
        paths[-1].write_bytes(_picture(dashboard, prometheus, chosen))
    return paths


def _picture(dashboard: Tree, prometheus: Prometheus, choice: Choice) -> bytes:
    placed = list(_placed(dashboard["panels"], choice))
    rows = max(y + h for _, _, (_, y, _, h) in placed)
    high = rows * _ROW_INCHES + _HEAD_INCHES
    figure = Figure(figsize=(_INCHES_WIDE, high), dpi=_DOTS_PER_INCH)
    figure.text(0.005, 1 - 0.12 / high, dashboard["title"], fontsize=13, color=_INK, va="top")
    for panel, chosen, (x, y, w, h) in placed:
        left, width = x / _COLUMNS * _INCHES_WIDE, w / _COLUMNS * _INCHES_WIDE
        bottom, height = high - _HEAD_INCHES - (y + h) * _ROW_INCHES, h * _ROW_INCHES
        if panel["type"] == "row":
            figure.text(0.005, (bottom + 0.2 * height) / high, panel["title"], color=_MUTED)
            continue
        place = Bbox.from_bounds(left, bottom, width, height)
        frame = _axes(figure, place, (_GAP, _GAP, _GAP, _GAP))
        frame.set(xticks=[], yticks=[])
        frame.spines[:].set_color(_GRID)
        inner = _axes(figure, place, _CURVE_MARGINS if panel["type"] in _CURVES else _MARGINS)
        title = chosen.title(panel["title"])
        inner.set_title(title, loc="left", fontsize=8, color=_INK, pad=4, fontweight="bold")
        _draw(inner, panel, prometheus, chosen)
    return _small_png(figure)


def _axes(figure: Figure, place: Bbox, margins: tuple[float, float, float, float]) -> Axes:
    """Adds axes inside a box in inches, with margins at the left, bottom, right and top."""
    left, bottom, right, top = margins
    within = Bbox.from_extents(place.x0 + left, place.y0 + bottom, place.x1 - right, place.y1 - top)
    return figure.add_axes(within.transformed(figure.dpi_scale_trans - figure.transFigure).bounds)


def _placed(
    panels: list[Tree], choice: Choice
) -> Iterator[tuple[Tree, Choice, tuple[float, float, float, float]]]:
    """Yields each panel with its choice and its position; a repeated panel once for each job."""
    for panel in panels:
        x, y, w, h = (float(panel["gridPos"][key]) for key in ("x", "y", "w", "h"))
        if "repeat" in panel:
            w = _COLUMNS / len(choice.jobs)
            for number, job_id in enumerate(choice.jobs):
                yield panel, choice.only(job_id), (number * w, y, w, h)
        else:
            yield panel, choice, (x, y, w, h)


def _draw(axes: Axes, panel: Tree, prometheus: Prometheus, choice: Choice) -> None:
    """Draws a panel, or its text for missing data, as Grafana does."""
    found: list[Lines] = []
    for target in panel["targets"]:
        expression = choice.expression(target["expr"])
        if panel["type"] in _CURVES:
            times = (choice.start, choice.end, choice.step_seconds)
            series = prometheus.range(expression, *times)
        else:
            series = prometheus.instant(expression, choice.end)
        found.append([(_name(target, each), each) for each in series if each.points])
    if panel["type"] != "table":
        found = [[line for lines in found for line in lines]]
    if any(found):
        _KINDS[panel["type"]](axes, panel, found, choice)
    else:
        axes.set_axis_off()
        text = panel["fieldConfig"]["defaults"]["noValue"]
        axes.text(0.5, 0.5, text, ha="center", color=_MUTED, transform=axes.transAxes)


def _name(target: Tree, series: Series) -> str:
    legend = target.get("legendFormat") or ", ".join(series.labels.values())
    return re.sub(r"{{(\w+)}}", lambda found: series.labels.get(found[1], ""), legend)


def _draw_time_series(axes: Axes, panel: Tree, found: list[Lines], choice: Choice) -> None:
    lines = {
        name: {time - choice.start: value for time, value in series.points}
        for name, series in found[0]
    }
    span = choice.end - choice.start
    axes.set_xlim(0, span)
    step = next((each for each in _TIME_STEPS if span <= _TICKS * each), _TIME_STEPS[-1])
    axes.xaxis.set_major_locator(MultipleLocator(step))
    axes.xaxis.set_major_formatter(lambda seconds, _: worded(seconds, "s"))
    _draw_curves(axes, panel, lines)


def _draw_trend(axes: Axes, panel: Tree, found: list[Lines], _: Choice) -> None:
    """Draws every series against the one selected for the x axis."""
    points = {name: dict(series.points) for name, series in found[0]}
    name = panel["options"]["xField"]
    across = points.pop(name, {})
    lines = {
        each: dict(sorted((across[time], by[time]) for time in by.keys() & across.keys()))
        for each, by in points.items()
    }
    axes.annotate(name, (1, 0.03), xycoords="axes fraction", ha="right", fontsize=6, color=_MUTED)
    _draw_curves(axes, panel, lines)


def _draw_curves(axes: Axes, panel: Tree, lines: Mapping[str, Mapping[float, float]]) -> None:
    shown = dict(lines)
    # Bands between an upper and a lower bound.
    for high, low in _overrides(panel, "custom.fillBelowTo").items():
        upper, lower = shown.pop(high, {}), shown.pop(low, {})
        x = [each for each in upper if each in lower]
        below, above = [lower[each] for each in x], [upper[each] for each in x]
        axes.fill_between(x, below, above, color=_COLOURS[0], alpha=0.18, linewidth=0)
    fixed = {name: each["fixedColor"] for name, each in _overrides(panel, "color").items()}
    others = itertools.cycle(_COLOURS)
    colours = [
        _NAMED.get(fixed[name], fixed[name]) if name in fixed else next(others) for name in shown
    ]
    custom = panel["fieldConfig"]["defaults"].get("custom", {})
    if custom.get("stacking", {}).get("mode") == "normal":
        times = sorted({time for line in shown.values() for time in line})
        heights = [[line.get(time, 0.0) for time in times] for line in shown.values()]
        axes.stackplot(times, heights, labels=list(shown), colors=colours, alpha=0.6)
    else:
        for colour, (name, line) in zip(colours, shown.items(), strict=True):
            axes.plot(list(line), list(line.values()), color=colour, label=name, linewidth=1.2)
    values = [value for line in shown.values() for value in line.values()]
    if custom.get("axisSoftMin") == 0 and min(values, default=0) >= 0:
        axes.set_ylim(0, axes.get_ylim()[1] if max(values, default=0) > 0 else 1)
    unit, most = panel["fieldConfig"]["defaults"]["unit"], axes.get_ylim()[1]
    whole = all(value.is_integer() for value in values)
    ticks: Locator = MaxNLocator(_TICKS, steps=[1, 2, 5, 10], integer=whole)
    if unit == "bytes":
        ticks = MultipleLocator(2 ** math.ceil(math.log2(most / _TICKS)))
    axes.yaxis.set_major_locator(ticks)
    axes.yaxis.set_major_formatter(lambda value, _: worded(value, unit))
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(_MUTED)
    axes.grid(color=_GRID, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.tick_params(colors=_INK, labelsize=6, length=2)
    _draw_legend(axes, list(shown))


def _overrides(panel: Tree, what: str) -> dict[str, Any]:
    """The values of one override of a panel, by the name of the field."""
    return {
        override["matcher"]["options"]: change["value"]
        for override in panel["fieldConfig"]["overrides"]
        for change in override["properties"]
        if change["id"] == what
    }


def _draw_legend(axes: Axes, names: list[str]) -> None:
    """Draws the legend below the curves, in as many columns as fit."""
    box = axes.get_window_extent()
    # Width in inches of a marker with its padding, and of one letter.
    entry = 0.42 + 0.043 * max(map(len, names), default=0)
    columns = max(1, int(box.width / _DOTS_PER_INCH / entry))
    place = (0.0, -13 / box.height)
    style: Tree = {"fontsize": 6, "frameon": False, "labelcolor": _INK, "handlelength": 1.2}
    spaces = {"borderaxespad": 0, "borderpad": 0, "labelspacing": 0.2, "columnspacing": 1.2}
    if any(names) and len(names) <= 3 * columns:
        axes.legend(loc="upper left", bbox_to_anchor=place, ncols=columns, **style, **spaces)


def _draw_number(axes: Axes, panel: Tree, found: list[Lines], _: Choice) -> None:
    """Draws the value or the name of the first series in the colour of its threshold."""
    (name, series), shown = found[0][0], panel["fieldConfig"]["defaults"]
    value = series.points[-1][1]
    is_name = panel["options"].get("textMode") == "name"
    text = name if is_name else worded(value, shown["unit"], shown.get("decimals"))
    steps = shown["thresholds"]["steps"]
    passed = [each["color"] for each in steps if each["value"] is None or value >= each["value"]]
    size, colour = 18 if len(text) < 12 else 11, _NAMED[passed[-1]]
    axes.set_axis_off()
    axes.text(0.5, 0.4, text, ha="center", va="center", fontsize=size, color=colour)


def _draw_bars(axes: Axes, panel: Tree, found: list[Lines], _: Choice) -> None:
    """Draws a bar for each series, with its name above and its value at the end."""
    values = [series.points[-1][1] for _, series in found[0]]
    for place, ((name, _series), value) in enumerate(zip(found[0], values, strict=True)):
        colour, text = _COLOURS[place % len(_COLOURS)], panel["fieldConfig"]["defaults"]["unit"]
        axes.barh(place, 1, height=0.4, color=_GRID)
        axes.barh(place, value / (max(values) or 1.0), height=0.4, color=colour)
        axes.text(0, place - 0.28, name, va="bottom", fontsize=6.5, color=_INK)
        axes.text(1.02, place, worded(value, text), va="center", fontsize=7, color=colour)
    axes.set(xlim=(0, 1.25), ylim=(len(values) - 0.5, -0.8))
    axes.set_axis_off()


def _draw_table(axes: Axes, panel: Tree, found: list[Lines], _: Choice) -> None:
    """Draws one row for each value of the label by which the panel joins its queries."""
    join, organize = (each["options"] for each in panel["transformations"])
    titles, places = organize["renameByName"], organize["indexByName"]
    units = _overrides(panel, "unit")
    rows: dict[str, dict[str, str]] = {}
    for target, lines in zip(panel["targets"], found, strict=True):
        title = titles[f"Value #{target['refId']}"]
        unit = units.get(title, panel["fieldConfig"]["defaults"]["unit"])
        for _name, series in lines:
            row = rows.setdefault(series.labels[join["byField"]], {})
            # If several queries have a label, the table shows that of the first.
            labels = {titles.get(k) or titles.get(f"{k} 1"): v for k, v in series.labels.items()}
            row |= labels | {title: worded(series.points[-1][1], unit)}
    columns = [titles[name] for name in sorted(places, key=places.__getitem__) if name in titles]
    cells = [[row.get(column, "") for column in columns] for row in rows.values()][:8]
    height = (len(cells) + 1) / 9
    place = Bbox.from_bounds(0, 1 - height, 1, height)
    table = axes.table(
        cells, colLabels=columns, cellLoc="left", colLoc="left", edges="B", bbox=place
    )
    table.auto_set_font_size(False)
    table.set_fontsize(7)
    for cell in table.get_celld().values():
        cell.set(edgecolor=_MUTED, linewidth=0.4)
        cell.PAD = 0.02
    axes.set_axis_off()


_KINDS: Final[dict[str, Callable[[Axes, Tree, list[Lines], Choice], None]]] = {
    "timeseries": _draw_time_series,
    "trend": _draw_trend,
    "stat": _draw_number,
    "bargauge": _draw_bars,
    "table": _draw_table,
}


def _small_png(figure: Figure) -> bytes:
    """Encodes the figure as a PNG with a palette; lines and text need few colours."""
    drawn, small = io.BytesIO(), io.BytesIO()
    figure.savefig(drawn, format="png", facecolor="white", metadata={"Software": None})
    with Image.open(drawn) as image:
        image.convert("RGB").quantize(128, dither=Image.Dither.NONE).save(
            small, "png", optimize=True
        )
    return small.getvalue()
