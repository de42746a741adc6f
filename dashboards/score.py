"""Panels about a job's score, shared by several dashboards."""

from __future__ import annotations

from collections.abc import Sequence

from grafana_foundation_sdk.builders import common, timeseries, trend
from grafana_foundation_sdk.models import common as common_models
from grafana_foundation_sdk.models import dashboard as models

from dashboards.parts import DATA_SOURCE, Query, fixed_color, lines, targets

#: Half the width of a normal distribution's 95 % interval, in standard errors.
_INTERVAL = "1.96"
_SECONDS_PER_HOUR = "3600"
_FAINT = "#b9c0c7"

_SCORE, _STEP, _LOW, _HIGH, _HOURS, _GAIN = (
    "published table",
    "last step",
    "95 % interval, low",
    "95 % interval, high",
    "CPU-hours",
    "gain",
)


def _estimate(name: str, metric: str, error_metric: str, selector: str) -> list[Query]:
    """Queries for a mean and the bounds of its 95 % confidence interval."""
    mean, half = f"max({metric}{selector})", f"{_INTERVAL} * max({error_metric}{selector})"
    return [
        Query(mean, name),
        Query(f"{mean} - {half}", _LOW),
        Query(f"{mean} + {half}", _HIGH),
    ]


def _score(selector: str) -> list[Query]:
    validated = "remy_farm_job_validated_score"
    return [
        *_estimate(_SCORE, validated, f"{validated}_standard_error", selector),
        Query(f"max(remy_farm_job_score{selector})", _STEP),
    ]


def score_over_time(selector: str, *, width: int = 12) -> timeseries.Panel:
    """A panel of one job's score.

    `selector` is the label selector of its series, as in `{job_id="$job"}`.
    """
    panel = lines(
        "Score over time",
        "Score of the published table on validation specimens, with its 95 % interval. The faint"
        " line is the score of the last step on that step's few specimens; it jumps when a step"
        " draws new ones.",
        "none",
        *_score(selector),
        width=width,
        from_zero=False,
    )
    _draw_band(panel)
    return panel


def score_over_cpu_hours(
    selector: str, *, title: str = "Score over CPU-hours", width: int = 12
) -> trend.Panel:
    """A panel of one job's score against the CPU time it has used."""
    hours = Query(f"max(remy_farm_job_cpu_seconds_total{selector}) / {_SECONDS_PER_HOUR}", _HOURS)
    panel = (
        trend.Panel()
        .title(title)
        .description(
            "Score of the published table on validation specimens, with its 95 % interval, against"
            " the CPU time of the job. The faint line is the score of the last step. Where the"
            " curve is flat, more time improves little."
        )
        .datasource(DATA_SOURCE)
        .unit("none")
        .span(width)
        .height(8)
        .targets(targets([hours, *_score(selector)]))
        .no_value("no data")
        .x_field(_HOURS)
        .transformations(_against(_HOURS, [query.legend for query in _score(selector)]))
        .override_by_name(_HOURS, [models.DynamicConfigValue("unit", "none")])
        .legend(
            common.VizLegendOptions()
            .display_mode(common_models.LegendDisplayMode.LIST)
            .placement(common_models.LegendPlacement.BOTTOM)
            .show_legend(True)
        )
    )
    _draw_band(panel)
    return panel


def _against(across: str, names: Sequence[str]) -> list[models.DataTransformerConfig]:
    """Transformations that make a trend panel plot series against one of them.

    Grafana draws a trend only if the x values increase from point to point. CPU time stands still
    while a job is paused, and decreases when a job resumes from its last checkpoint.
    """
    newest = "lastNotNull"
    kept = {name: {"operation": "aggregate", "aggregations": [newest]} for name in names}
    groups = {across: {"operation": "groupby", "aggregations": []}} | kept
    names_again = {f"{name} ({newest})": name for name in names}
    return [
        models.DataTransformerConfig(
            id_val="joinByField", options={"byField": "Time", "mode": "inner"}
        ),
        models.DataTransformerConfig(id_val="groupBy", options={"fields": groups}),
        models.DataTransformerConfig(
            id_val="sortBy", options={"fields": {}, "sort": [{"field": across}]}
        ),
        models.DataTransformerConfig(
            id_val="organize",
            options={"excludeByName": {}, "indexByName": {}, "renameByName": names_again},
        ),
    ]


def gain(selector: str, *, width: int = 12) -> timeseries.Panel:
    """A panel of the score gained in each epoch."""
    panel = lines(
        "Gain of the last epoch",
        "Gain of each epoch on validation specimens, with its 95 % interval. A search has"
        " converged when the interval keeps including zero.",
        "none",
        *_estimate(
            _GAIN, "remy_farm_job_epoch_gain", "remy_farm_job_epoch_gain_standard_error", selector
        ),
        width=width,
        from_zero=False,
        no_value="no epoch yet",
    )
    _draw_band(panel)
    return panel


def _draw_band(panel: timeseries.Panel | trend.Panel) -> None:
    bound_style = [
        models.DynamicConfigValue("custom.lineWidth", 0),
        models.DynamicConfigValue("custom.showPoints", "never"),
        fixed_color("blue"),
        models.DynamicConfigValue(
            "custom.hideFrom", {"legend": True, "tooltip": False, "viz": False}
        ),
    ]
    panel.override_by_name(_LOW, [*bound_style, models.DynamicConfigValue("custom.fillOpacity", 0)])
    panel.override_by_name(
        _HIGH,
        [
            *bound_style,
            models.DynamicConfigValue("custom.fillBelowTo", _LOW),
            models.DynamicConfigValue("custom.fillOpacity", 20),
        ],
    )
    for mean in (_SCORE, _GAIN):
        panel.override_by_name(
            mean,
            [
                models.DynamicConfigValue("custom.lineWidth", 2),
                fixed_color("blue"),
            ],
        )
    panel.override_by_name(
        _STEP, [models.DynamicConfigValue("custom.lineWidth", 1), fixed_color(_FAINT)]
    )
