"""Assemble a dashboard: its variables, links to the other dashboards, and sections of panels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from grafana_foundation_sdk.builders import dashboard
from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.models import dashboard as models

from dashboards.parts import DATA_SOURCE, Panel, of_the_farm

#: Tag of every dashboard; each links to all dashboards that have it.
TAG = "remy-farm"

#: Jobs in the time range. A reader sees name and id; queries select by id.
_JOBS = of_the_farm(
    'query_result(label_join(last_over_time(remy_farm_job_info[$__range]), "shown", " ",'
    ' "job_name", "job_id"))'
)
_JOBS_REGEX = '/job_id="(?<value>[^"]+)".*shown="(?<text>[^"]+)"/'


@dataclass(frozen=True)
class Section:
    """Panels under one heading."""

    title: str
    panels: Sequence[Panel]


def board(
    uid: str,
    title: str,
    description: str,
    sections: Sequence[Section],
    *,
    jobs: bool = False,
    many_jobs: bool = False,
) -> models.Dashboard:
    """Returns a dashboard.

    With `jobs` it has a variable to choose one job, with `many_jobs` several.
    """
    builder = (
        dashboard.Dashboard(f"remy-farm / {title}")
        .uid(uid)
        .description(description)
        .tags([TAG])
        .editable()
        .timezone("browser")
        .tooltip(models.DashboardCursorSync.CROSSHAIR)
        .refresh("30s")
        .time("now-6h", "now")
        .with_variable(_data_source())
        .with_variable(
            _label("namespace", "Namespace", "label_values(remy_farm_build_info, namespace)")
        )
        .with_variable(
            _label(
                "farm",
                "Farm",
                'label_values(remy_farm_build_info{namespace="$namespace"}, farm)',
            )
        )
        .link(_links())
    )
    if jobs or many_jobs:
        builder.with_variable(_job(many=many_jobs))
    identifiers = iter(range(1, 1000))
    for section in sections:
        builder.with_row(dashboard.Row(section.title).id(next(identifiers)))
        for panel in section.panels:
            builder.with_panel(_Numbered(panel, next(identifiers)))
    return builder.build()


class _Numbered(Builder[models.Panel]):
    """A panel with the identifier that the dashboard assigned to it."""

    def __init__(self, panel: Panel, identifier: int) -> None:
        self._panel = panel
        self._identifier = identifier

    def build(self) -> models.Panel:
        built = self._panel.build()
        built.id_val = self._identifier
        return built


def _data_source() -> dashboard.DatasourceVariable:
    return dashboard.DatasourceVariable("datasource").label("Data source").type("prometheus")


def _label(name: str, title: str, query: str) -> dashboard.QueryVariable:
    """A variable over the values of a label; empty if no series has the label."""
    return (
        dashboard.QueryVariable(name)
        .label(title)
        .description(
            "A dashboard shows one farm at a time; figures of several farms are never summed."
        )
        .datasource(DATA_SOURCE)
        .query(query)
        .refresh(models.VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(models.VariableSort.ALPHABETICAL_CASE_INSENSITIVE_ASC)
    )


def _job(*, many: bool) -> dashboard.QueryVariable:
    return (
        dashboard.QueryVariable("job")
        .label("Jobs" if many else "Job")
        .description("Jobs with metrics in the time range.")
        .datasource(DATA_SOURCE)
        .query(_JOBS)
        .regex(_JOBS_REGEX)
        .refresh(models.VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(models.VariableSort.ALPHABETICAL_CASE_INSENSITIVE_ASC)
        .multi(many)
        .include_all(many)
    )


def _links() -> dashboard.DashboardLink:
    return (
        dashboard.DashboardLink("remy-farm")
        .type(models.DashboardLinkType.DASHBOARDS)
        .tags([TAG])
        .as_dropdown(False)
        .include_vars(True)
        .keep_time(True)
    )
