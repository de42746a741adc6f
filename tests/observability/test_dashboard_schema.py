"""The dashboards are valid by a schema from Grafana's types, which rejects mistakes."""

from __future__ import annotations

import copy
import functools
import json
from typing import Any

import jsonschema
import pytest

from benchmarks.programs import ROOT
from tests.observability.queries import Tree, dashboards

_SCHEMA = ROOT / "dashboards" / "schema" / "dashboard.schema.json"


@functools.cache
def validator() -> jsonschema.Draft7Validator:
    schema = json.loads(_SCHEMA.read_text(encoding="utf-8"))
    jsonschema.Draft7Validator.check_schema(schema)
    return jsonschema.Draft7Validator(schema)


def panel_of(dashboard: Tree, kind: str) -> Tree:
    found: Tree = next(panel for panel in dashboard["panels"] if panel["type"] == kind)
    return found


@pytest.mark.parametrize("name", dashboards())
def test_dashboard_is_valid(name: str) -> None:
    errors = [error.message for error in validator().iter_errors(dashboards()[name])]
    assert errors == []


@pytest.mark.parametrize(
    ("kind", "path", "key", "value"),
    [
        ("timeseries", ("fieldConfig", "defaults", "custom"), "lineWith", 1),
        ("timeseries", ("fieldConfig", "defaults", "custom"), "lineWidth", "1"),
        ("timeseries", ("options", "legend"), "displayMode", "lists"),
        ("trend", ("fieldConfig", "overrides", 0, "properties", 0), "id", "custom.fillBelow"),
        ("trend", ("fieldConfig", "defaults"), "units", "s"),
        ("trend", ("transformations", 0), "ident", "organize"),
        ("stat", ("options",), "colorMode", "values"),
        ("stat", ("gridPos",), "w", "3"),
        ("stat", (), "options", None),
        ("stat", (), "type", "number"),
    ],
)
def test_mistake_is_rejected(
    kind: str, path: tuple[str | int, ...], key: str, value: object
) -> None:
    dashboard = copy.deepcopy(dashboards()["job"])
    place: Any = panel_of(dashboard, kind)
    for step in path:
        place = place[step]
    place[key] = value
    assert not validator().is_valid(dashboard)
