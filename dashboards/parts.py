"""Building blocks of dashboards: queries and panels."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from grafana_foundation_sdk.builders import (
    bargauge,
    common,
    dashboard,
    prometheus,
    stat,
    timeseries,
)
from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.cog.variants import Dataquery
from grafana_foundation_sdk.models import common as common_models
from grafana_foundation_sdk.models import dashboard as models

#: The Prometheus data source that the reader selects.
DATA_SOURCE = models.DataSourceRef(type_val="prometheus", uid="${datasource}")
#: Default width and height of a panel in Grafana's grid units; a dashboard is 24 wide.
WIDTH = 24
HEIGHT = 8
_NUMBER_HEIGHT = 4

#: Reference ids of a panel's queries.
REF_IDS = "ABCDEFGHIJ"

Panel = Builder[models.Panel]

#: Label matchers added to every query. They select one farm, since sums over farms mean nothing.
THE_FARM = 'namespace="$namespace", farm="$farm"'
#: Colours of reasons and phases in all panels; warm colours mean that work is lost.
COLORS = {
    "lost": "#c4162a",
    "silent": "#ff780a",
    "failed": "#8f3bb8",
    "preempted": "#ffb357",
    "unschedulable": "#e0b400",
    "quarantined": "#3d2b56",
    "bad_result": "#ff7383",
    "spot_interruption": "#b877d9",
    "signal": "#3274d9",
    "idle": "#56a64b",
    "goodbye": "#8ab8ff",
    "came": "#19730e",
    "running": "#37872d",
    "starting": "#96d98d",
    "wanted": "#5c6670",
    "returned": "#1fa8a8",
    "withdrawn": "#9fa7b3",
    "done_elsewhere": "#c0d8ff",
    "divided": "#5fb8c9",
    "conflict": "#a0c4a0",
    "fenced": "#2b7a8c",
    "unavailable": "#d44a3a",
    "other": "#6e5b4b",
}
_SERIES = re.compile(r"\b((?:remy_farm|process)_\w+)(\{?)")


@dataclass(frozen=True)
class Query:
    """A PromQL expression and the legend of its series."""

    expression: str
    legend: str = ""


def lines(
    title: str,
    description: str,
    unit: str,
    *queries: Query,
    width: int = 12,
    stacked: bool = False,
    from_zero: bool = True,
    no_value: str = "no data",
    colored: Sequence[str] = (),
) -> timeseries.Panel:
    """A panel of values over time. Series named in `colored` have their colour in COLORS."""
    panel = (
        timeseries.Panel()
        .title(title)
        .description(description)
        .datasource(DATA_SOURCE)
        .unit(unit)
        .span(width)
        .height(HEIGHT)
        .targets(targets(queries))
        .no_value(no_value)
        .fill_opacity(30 if stacked else 8)
        .line_width(1)
        .show_points(common_models.VisibilityMode.AUTO)
        .legend(_legend())
        .tooltip(common.VizTooltipOptions().mode(common_models.TooltipDisplayMode.MULTI))
    )
    if stacked:
        panel.stacking(common.StackingConfig().mode(common_models.StackingMode.NORMAL))
    if from_zero:
        panel.axis_soft_min(0)
    for name in colored:
        panel.override_by_name(name, [fixed_color(COLORS[name])])
    return panel


def fixed_color(color: str) -> models.DynamicConfigValue:
    """The override that gives a field a fixed colour."""
    return models.DynamicConfigValue("color", {"mode": "fixed", "fixedColor": color})


def number(
    title: str,
    description: str,
    unit: str,
    query: Query,
    *,
    width: int = 3,
    thresholds: Sequence[tuple[float | None, str]] = ((None, "blue"),),
    decimals: int | None = None,
    no_value: str = "none",
    text_is_name: bool = False,
) -> stat.Panel:
    """A panel that shows the current value in large figures.

    Each threshold is the smallest value that has a colour.
    """
    panel = (
        stat.Panel()
        .title(title)
        .description(description)
        .datasource(DATA_SOURCE)
        .unit(unit)
        .span(width)
        .height(_NUMBER_HEIGHT)
        # A range query would also show values of series that no longer exist.
        .targets([target(query, 0).instant()])
        .no_value(no_value)
        .color_mode(common_models.BigValueColorMode.VALUE)
        .graph_mode(common_models.BigValueGraphMode.NONE)
        .thresholds(_thresholds(thresholds))
        .color_scheme(dashboard.FieldColor().mode(models.FieldColorModeId.THRESHOLDS))
        .reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]))
    )
    if text_is_name:
        panel.text_mode(common_models.BigValueTextMode.NAME)
    if decimals is not None:
        panel.decimals(decimals)
    return panel


def bars(
    title: str, description: str, unit: str, query: Query, *, width: int = 12
) -> bargauge.Panel:
    """A panel of current values as horizontal bars."""
    return (
        bargauge.Panel()
        .title(title)
        .description(description)
        .datasource(DATA_SOURCE)
        .unit(unit)
        .span(width)
        .height(HEIGHT)
        .targets([target(query, 0).instant()])
        .no_value("no data")
        .orientation(common_models.VizOrientation.HORIZONTAL)
        .display_mode(common_models.BarGaugeDisplayMode.BASIC)
        .color_scheme(dashboard.FieldColor().mode(models.FieldColorModeId.PALETTE_CLASSIC))
        .reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]))
    )


def targets(queries: Sequence[Query]) -> list[Builder[Dataquery]]:
    """Range queries with the reference ids A, B, C and so on."""
    return [target(query, position) for position, query in enumerate(queries)]


def target(query: Query, position: int) -> prometheus.Dataquery:
    """A range query; `position` determines its reference id."""
    built = (
        prometheus.Dataquery()
        .ref_id(REF_IDS[position])
        .expr(of_the_farm(query.expression))
        .datasource(DATA_SOURCE)
    )
    if query.legend:
        built.legend_format(query.legend)
    return built.range()


def of_the_farm(expression: str) -> str:
    """The expression, restricted to series of the selected farm."""
    return _SERIES.sub(
        lambda found: f"{found[1]}{{{THE_FARM}{', ' if found[2] else '}'}", expression
    )


def _thresholds(steps: Sequence[tuple[float | None, str]]) -> dashboard.ThresholdsConfig:
    return (
        dashboard.ThresholdsConfig()
        .mode(models.ThresholdsMode.ABSOLUTE)
        .steps([models.Threshold(value=value, color=color) for value, color in steps])
    )


def _legend() -> common.VizLegendOptions:
    return (
        common.VizLegendOptions()
        .display_mode(common_models.LegendDisplayMode.LIST)
        .placement(common_models.LegendPlacement.BOTTOM)
        .show_legend(True)
    )
