"""Lints the dashboards: generated files are up to date, and queries use existing metrics."""

from __future__ import annotations

import itertools
import re
from collections import Counter

import pytest

from dashboards.__main__ import DASHBOARDS, stale_files
from dashboards.board import TAG
from dashboards.parts import COLORS, THE_FARM
from remy_services.telemetry.catalogue import METRICS
from remy_services.telemetry.samples import DEPARTURES, LEASE_ENDS
from tests.observability.queries import (
    PROCESS_METRICS,
    Tree,
    dashboards,
    exported_series,
    panel_queries,
    panels,
    recorded_series,
    rules,
    series_in,
)

_DATA_SOURCE = {"type": "prometheus", "uid": "${datasource}"}
_GRAFANA_VARIABLES = {
    "__rate_interval",
    "__range",
    "__data",
    "__url_time_range",
}
_SELECTOR = re.compile(r"(remy_farm_\w+)\{([^}]*)\}")
_TARGET_LABELS = {"farm", "instance", "job", "namespace"}
#: Matches a series and its selector. The Helm chart replaces the farm's selector in alerting rules.
_SELECTED = re.compile(
    r"\b((?:[a-z_]+:)?(?:remy_farm|process)_[a-z_]+(?::[a-z0-9_]+)?)\b((?:\{[^}]*\})?)"
)

each_dashboard = pytest.mark.parametrize(
    "dashboard", [pytest.param(tree, id=name) for name, tree in dashboards().items()]
)
each_panel = pytest.mark.parametrize(
    "panel",
    [
        pytest.param(panel, id=f"{name}/{panel['title']}")
        for name, tree in dashboards().items()
        for panel in panels(tree)
    ],
)


def test_generated_files_are_up_to_date() -> None:
    assert not stale_files(), "run `make dashboards`"


def test_dashboard_ids_are_unique() -> None:
    assert set(dashboards()) == set(DASHBOARDS)
    identities = [tree["uid"] for tree in dashboards().values()]
    assert len(set(identities)) == len(identities)


@each_dashboard
def test_dashboard_has_a_description_a_data_source_and_links(dashboard: Tree) -> None:
    assert dashboard["description"].endswith(".")
    first = dashboard["templating"]["list"][0]
    assert (first["name"], first["type"], first["query"]) == (
        "datasource",
        "datasource",
        "prometheus",
    )
    (link,) = dashboard["links"]
    assert link["tags"] == dashboard["tags"] == [TAG]
    assert link["includeVars"]
    assert link["keepTime"]


@each_dashboard
def test_panel_ids_are_unique(dashboard: Tree) -> None:
    for key in ("id", "title"):
        counts = Counter(panel[key] for panel in dashboard["panels"])
        assert [value for value, count in counts.items() if count > 1] == []


@each_dashboard
def test_panels_do_not_overlap(dashboard: Tree) -> None:
    places = [panel["gridPos"] for panel in dashboard["panels"]]
    for place in places:
        assert place["x"] + place["w"] <= 24
    for one, other in itertools.combinations(places, 2):
        beside = one["x"] + one["w"] <= other["x"] or other["x"] + other["w"] <= one["x"]
        below = one["y"] + one["h"] <= other["y"] or other["y"] + other["h"] <= one["y"]
        assert beside or below


@each_panel
def test_panel_has_a_description_and_a_unit(panel: Tree) -> None:
    assert panel["description"].endswith(".")
    assert len(panel["description"]) > 20
    assert panel["fieldConfig"]["defaults"]["unit"]
    assert panel["fieldConfig"]["defaults"]["noValue"]


def test_departures_and_lease_ends_have_different_colours() -> None:
    assert len(set(COLORS.values())) == len(COLORS)
    reasons = {*DEPARTURES, *LEASE_ENDS, "preempted", "failed"}
    assert {reason.replace(" ", "_") for reason in reasons} <= COLORS.keys()
    uncoloured = [
        panel["title"]
        for tree in dashboards().values()
        for panel in panels(tree)
        if {"{{reason}}", "-{{reason}}"} & {each.get("legendFormat") for each in panel["targets"]}
        if not panel["fieldConfig"]["overrides"]
    ]
    assert uncoloured == []


def test_legends_use_names_instead_of_ids() -> None:
    legends = [
        str(target.get("legendFormat"))
        for tree in dashboards().values()
        for panel in panels(tree)
        for target in panel["targets"]
    ]
    assert not [legend for legend in legends if "job_id" in legend]


def test_published_score_is_prominent_and_step_score_faint() -> None:
    drawn = [
        panel
        for tree in dashboards().values()
        for panel in panels(tree)
        if panel["title"].startswith("Score over")
    ]
    assert len(drawn) >= 2
    for panel in drawn:
        queries = {each["legendFormat"]: each["expr"] for each in panel["targets"]}
        for name in ("published table", "95 % interval, low", "95 % interval, high"):
            assert "remy_farm_job_validated_score" in queries[name]
        assert "remy_farm_job_score{" in queries["last step"]
        changes = {
            each["matcher"]["options"]: {one["id"]: one["value"] for one in each["properties"]}
            for each in panel["fieldConfig"]["overrides"]
        }
        widths = [changes[name]["custom.lineWidth"] for name in ("published table", "last step")]
        assert widths == [2, 1]


@each_panel
def test_panel_uses_the_selected_data_source(panel: Tree) -> None:
    assert panel["datasource"] == _DATA_SOURCE
    assert panel["targets"]
    for target in panel["targets"]:
        assert target["datasource"] == _DATA_SOURCE
    names = [target["refId"] for target in panel["targets"]]
    assert len(set(names)) == len(names)


@each_panel
def test_panels_of_current_values_use_instant_queries(panel: Tree) -> None:
    is_instant = panel["type"] in {"stat", "bargauge", "table"}
    for target in panel["targets"]:
        assert (target.get("instant", False), target["range"]) == (is_instant, not is_instant)


@each_dashboard
def test_declared_variables_are_the_used_ones(dashboard: Tree) -> None:
    declared = {variable["name"] for variable in dashboard["templating"]["list"]}
    used = set(re.findall(r"\$\{?(\w+)", str(dashboard["panels"]))) - _GRAFANA_VARIABLES
    assert used == declared


@each_panel
def test_row_links_use_columns_of_the_table(panel: Tree) -> None:
    asked = set(re.findall(r"__data\.fields\.(\w+)", str(panel)))
    columns: set[str] = set()
    for change in panel.get("transformations", []):
        if change["id"] == "organize":
            columns |= set(change["options"]["renameByName"].values())
    assert asked <= columns


def test_x_values_of_a_trend_increase() -> None:
    # Grafana does not draw a trend whose x values do not increase.
    trends = [
        panel
        for tree in dashboards().values()
        for panel in panels(tree)
        if panel["type"] == "trend"
    ]
    assert trends
    for trend in trends:
        across = trend["options"]["xField"]
        assert across in {target["legendFormat"] for target in trend["targets"]}
        options = {each["id"]: each["options"] for each in trend["transformations"]}
        assert list(options) == ["joinByField", "groupBy", "sortBy", "organize"]
        assert options["groupBy"]["fields"][across]["operation"] == "groupby"
        assert options["sortBy"]["sort"] == [{"field": across}]
        names = {target["legendFormat"] for target in trend["targets"]} - {across}
        assert set(options["organize"]["renameByName"].values()) == names


@each_dashboard
def test_row_links_lead_to_dashboards(dashboard: Tree) -> None:
    identities = {tree["uid"] for tree in dashboards().values()}
    targets = set(re.findall(r"/d/([\w-]+)", str(dashboard["panels"])))
    assert targets <= identities


def test_queries_use_existing_metrics() -> None:
    known = exported_series() | PROCESS_METRICS
    unknown = {
        (str(query), name)
        for query in panel_queries()
        for name in series_in(query.expression)
        if name not in known
    }
    assert not unknown


def test_rules_use_existing_metrics() -> None:
    known = exported_series() | recorded_series()
    unknown = {name for rule in rules() for name in series_in(rule["expr"]) if name not in known}
    assert not unknown


def test_queries_use_existing_labels() -> None:
    labels = {name: set(metric.labels) for metric in METRICS for name in metric.series}
    expressions = [query.expression for query in panel_queries()]
    expressions += [rule["expr"] for rule in rules()]
    selectors = [found for each in expressions for found in _SELECTOR.findall(each)]
    assert len(selectors) > 20
    for name, matchers in selectors:
        assert (
            set(re.findall(r"(\w+)\s*[=!]", matchers)) <= labels.get(name, set()) | _TARGET_LABELS
        )


def test_every_query_selects_one_farm() -> None:
    expected_selectors = {query.expression: THE_FARM for query in panel_queries()}
    expected_selectors |= {rule["expr"]: 'farm=~".*"' for rule in rules()}
    for expression, selector in expected_selectors.items():
        found = _SELECTED.findall(expression)
        assert found
        assert [name for name, matchers in found if not matchers.startswith(f"{{{selector}")] == []


def test_rules_do_not_aggregate_over_farms() -> None:
    for rule in rules():
        kept = re.findall(r"\b(?:by|on) \(([^)]*)\)", rule["expr"])
        aggregated = re.findall(r"\b(?:sum|max|min|group|count|avg)\b", rule["expr"])
        assert len(kept) >= len(aggregated)
        # `or on ()` tests whether any farm exists.
        assert all(each.startswith("namespace, farm") for each in kept if each), rule


def test_every_metric_of_the_coordinator_is_on_a_dashboard() -> None:
    asked = set().union(*(series_in(query.expression) for query in panel_queries()))
    asked |= set().union(*(series_in(rule["expr"]) for rule in rules()))
    asked.add("remy_farm_job_info")  # The variable that chooses a job.
    unseen = {metric.name for metric in METRICS if asked.isdisjoint(metric.series)}
    assert unseen == set()
