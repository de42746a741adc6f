"""Tables: a row for each job, a column for each query."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from grafana_foundation_sdk.builders import table
from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.cog.variants import Dataquery
from grafana_foundation_sdk.models import dashboard as models
from grafana_foundation_sdk.models import prometheus as prometheus_models

from dashboards.parts import DATA_SOURCE, HEIGHT, REF_IDS, WIDTH, Query, target


@dataclass(frozen=True)
class Column:
    """A column of a table: a query with one value by row, and how it is shown."""

    title: str
    expression: str
    unit: str


def rows(
    title: str,
    description: str,
    columns: Sequence[Column],
    *,
    by: Sequence[str],
    shown: Sequence[str],
    link: tuple[str, str] | None = None,
    width: int = WIDTH,
) -> table.Panel:
    """A table with one row for each value of the labels `by`, of which `shown` are columns too.

    `link` is the title and the address of a link on every row.
    """
    queries = [Query(column.expression) for column in columns]
    queried: list[Builder[Dataquery]] = [
        target(query, position).instant().format(prometheus_models.PromQueryFormat.TABLE)
        for position, query in enumerate(queries)
    ]
    panel = (
        table.Panel()
        .title(title)
        .description(description)
        .datasource(DATA_SOURCE)
        .unit("short")
        .span(width)
        .height(HEIGHT)
        .targets(queried)
        .no_value("none")
        .with_transformation(
            models.DataTransformerConfig(
                id_val="joinByField", options={"byField": by[0], "mode": "outer"}
            )
        )
        .with_transformation(_named_columns(columns, by, shown))
    )
    for column in columns:
        panel.override_by_name(column.title, [models.DynamicConfigValue("unit", column.unit)])
    if link is not None:
        link_title, address = link
        panel.override_by_name(
            shown[0],
            [
                models.DynamicConfigValue(
                    "links", [{"title": link_title, "url": address, "targetBlank": False}]
                )
            ],
        )
    return panel


def _named_columns(
    columns: Sequence[Column], by: Sequence[str], shown: Sequence[str]
) -> models.DataTransformerConfig:
    """Has a table show its labels once and its values under their titles."""
    many = len(columns) > 1
    values = [f"Value #{REF_IDS[n]}" if many else "Value" for n in range(len(columns))]
    numbers = range(1, len(columns) + 1)
    excluded = [f"Time {n}" for n in numbers] if many else ["Time"]
    renamed = dict(zip(values, (column.title for column in columns), strict=True))
    for label in by[1:]:
        excluded += [f"{label} {n}" for n in numbers[1:]] if many else []
        if label not in shown:
            excluded.append(f"{label} 1" if many else label)
        elif many:
            renamed[f"{label} 1"] = label
    if by[0] not in shown:
        excluded.append(by[0])
    return models.DataTransformerConfig(
        id_val="organize",
        options={
            "excludeByName": dict.fromkeys(sorted(excluded), True),
            "renameByName": renamed,
            "indexByName": {},
        },
    )
