"""Lists the queries of all dashboards and rules, and the exported metrics."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from benchmarks.programs import ROOT
from remy_services.telemetry.catalogue import METRICS
from remy_workers.telemetry import WorkerMetrics

Tree = dict[str, Any]

GENERATED = ROOT / "dashboards" / "generated"
RULES = ROOT / "dashboards" / "rules"

#: Metrics that prometheus_client exports for every process.
PROCESS_METRICS = {"process_cpu_seconds_total", "process_resident_memory_bytes"}

_SERIES = re.compile(r"\b(?:[a-z_]+:)?(?:remy_farm|process)_[a-z_]+(?::[a-z0-9_]+)?\b")


@dataclass(frozen=True)
class PanelQuery:
    """A query of a panel."""

    dashboard: str
    panel: str
    expression: str

    def __str__(self) -> str:
        return f"{self.dashboard} / {self.panel}"


def dashboards() -> dict[str, Tree]:
    """Returns the generated dashboards by file name."""
    return {path.stem: json.loads(path.read_text()) for path in sorted(GENERATED.glob("*.json"))}


def panels(dashboard: Tree) -> list[Tree]:
    """Returns all panels except headings."""
    return [panel for panel in dashboard["panels"] if panel["type"] != "row"]


def panel_queries() -> Iterator[PanelQuery]:
    """Yields every query of every panel."""
    for name, dashboard in dashboards().items():
        for panel in panels(dashboard):
            for target in panel["targets"]:
                yield PanelQuery(name, panel["title"], target["expr"])


def rule_groups() -> list[Tree]:
    """Returns the groups of rules.

    Prometheus evaluates the rules of a group in order, and the groups in any order.
    """
    return [group for path in rule_files() for group in yaml.safe_load(path.read_text())["groups"]]


def rules() -> list[Tree]:
    """Returns all alerts and recording rules."""
    return [rule for group in rule_groups() for rule in group["rules"]]


def rule_files() -> list[Path]:
    """Returns the files of rules."""
    return sorted(RULES.glob("*.yaml"))


def series_in(expression: str) -> set[str]:
    """Returns the names of the series in an expression."""
    return set(_SERIES.findall(expression))


def exported_series() -> set[str]:
    """Returns the names of all series that coordinators and workers export."""
    worker = {
        sample.name
        for family in WorkerMetrics(1).registry.collect()
        for sample in family.samples
        if not sample.name.endswith("_created")
    }
    coordinator = {name for metric in METRICS for name in metric.series}
    return {name for name in worker | coordinator if name.startswith("remy_farm_")}


def recorded_series() -> set[str]:
    """Returns the names of the series that recording rules create."""
    return {rule["record"] for rule in rules() if "record" in rule}
