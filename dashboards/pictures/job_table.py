"""Tables as their transformations make them."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.transforms import Bbox

from dashboards.pictures.fetched import Source, Tree
from dashboards.pictures.style import MUTED, defaults, draw_nothing
from dashboards.pictures.units import worded

_MOST_ROWS = 8


def draw_table(axes: Axes, panel: Tree, source: Source) -> None:
    """One row for each value of the label by which the panel joins its queries."""
    join, organize = (each["options"] for each in panel["transformations"])
    titles = organize["renameByName"]
    rows: dict[str, dict[str, str]] = {}
    for target in panel["targets"]:
        value_title = titles[f"Value #{target['refId']}"]
        for line in source.at_the_end(target):
            row = rows.setdefault(line.series.labels[join["byField"]], {})
            for label, text in line.series.labels.items():
                # A label that several queries have is shown as the first has it.
                title = titles.get(label) or titles.get(f"{label} 1")
                if title is not None:
                    row[title] = text
            row[value_title] = worded(line.last, _unit(panel, value_title))
    if not rows:
        draw_nothing(axes, panel)
        return
    columns = sorted(titles.values(), key=_places(organize).__getitem__)
    _draw(axes, columns, [[row.get(column, "") for column in columns] for row in rows.values()])


def _places(organize: Tree) -> dict[str, int]:
    """Where each title stands, from the left."""
    titles = organize["renameByName"]
    return {titles[name]: place for name, place in organize["indexByName"].items()}


def _draw(axes: Axes, columns: list[str], rows: list[list[str]]) -> None:
    axes.set_axis_off()
    cells = rows[:_MOST_ROWS]
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
    for cell in table.get_celld().values():
        cell.set_edgecolor(MUTED)
        cell.set_linewidth(0.4)
        cell.PAD = 0.02


def _unit(panel: Tree, title: str) -> str:
    for override in panel["fieldConfig"]["overrides"]:
        for change in override["properties"]:
            if override["matcher"]["options"] == title and change["id"] == "unit":
                return str(change["value"])
    return str(defaults(panel)["unit"])
