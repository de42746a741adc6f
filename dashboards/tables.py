"""Tables with a row for each job and a column for each query."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from grafana_foundation_sdk.builders import table
from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.cog.variants import Dataquery
from grafana_foundation_sdk.models import dashboard as models
from grafana_foundation_sdk.models import prometheus as prometheus_models

from dashboards.parts import DATA_SOURCE, HEIGHT, REF_IDS, WIDTH, Query, target

_NAME, _ID = "job", "id"
#: URL of a job's dashboard, from a row of a table.
_JOB_ADDRESS = (
    "/d/remy-farm-job?${datasource:queryparam}&${namespace:queryparam}&${farm:queryparam}"
    f"&var-job=${{__data.fields.{_ID}}}"
    "&${__url_time_range}"
)


@dataclass(frozen=True)
class Column:
    """A column of a table: its title, a query with one value for each job, and its unit."""

    title: str
    expression: str
    unit: str


def job_table(title: str, description: str, columns: Sequence[Column]) -> table.Panel:
    """A table of jobs with `columns`; name and id of each job link to its dashboard.

    At least two columns are required, since Grafana names the values of a single query differently.
    """
    queries: list[Builder[Dataquery]] = [
        target(Query(column.expression), position)
        .instant()
        .format(prometheus_models.PromQueryFormat.TABLE)
        for position, column in enumerate(columns)
    ]
    panel = (
        table.Panel()
        .title(title)
        .description(description)
        .datasource(DATA_SOURCE)
        .unit("short")
        .span(WIDTH)
        .height(HEIGHT)
        .targets(queries)
        .no_value("none")
        .show_header(True)
        .with_transformation(
            models.DataTransformerConfig(
                id_val="joinByField", options={"byField": "job_id", "mode": "outer"}
            )
        )
        .with_transformation(_named_columns(columns))
    )
    for column in columns:
        panel.override_by_name(column.title, [models.DynamicConfigValue("unit", column.unit)])
    link = {"title": "Show this job", "url": _JOB_ADDRESS, "targetBlank": False}
    for name in (_NAME, _ID):
        panel.override_by_name(name, [models.DynamicConfigValue("links", [link])])
    return panel


def _named_columns(columns: Sequence[Column]) -> models.DataTransformerConfig:
    """Renames the joined fields: values to titles of columns, and common fields shown once.

    Grafana numbers the fields that several joined queries share.
    """
    titles = {f"Value #{REF_IDS[n]}": column.title for n, column in enumerate(columns)}
    renamed = {"job_name 1": _NAME, "job_id": _ID} | titles
    numbers = range(1, len(columns) + 1)
    repeated = [f"Time {n}" for n in numbers] + [f"job_name {n}" for n in numbers[1:]]
    return models.DataTransformerConfig(
        id_val="organize",
        options={
            "excludeByName": dict.fromkeys(repeated, True),
            "renameByName": renamed,
            "indexByName": {name: position for position, name in enumerate(renamed)},
        },
    )
