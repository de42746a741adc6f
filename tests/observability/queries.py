"""The queries of all dashboards and rules, and the metrics that there are."""

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

#: Of every process that prometheus_client describes.
PROCESS_METRICS = {"process_cpu_seconds_total", "process_resident_memory_bytes"}

_SERIES = re.compile(r"\b(?:[a-z_]+:)?(?:remy_farm|process)_[a-z_]+(?::[a-z0-9_]+)?\b")


@dataclass(frozen=True)
class PanelQuery:
    """One query of one panel."""

    dashboard: str
    panel: str
    expression: str

    def __str__(self) -> str:
        return f"{self.dashboard} / {self.panel}"


def dashboards() -> dict[str, Tree]:
    """The generated dashboards by file name."""
    return {path.stem: json.loads(path.read_text()) for path in sorted(GENERATED.glob("*.json"))}


def panels(dashboard: Tree) -> list[Tree]:
    """All panels but headings."""
    return [panel for panel in dashboard["panels"] if panel["type"] != "row"]


def panel_queries() -> Iterator[PanelQuery]:
    """Every query of every panel."""
    for name, dashboard in dashboards().items():
        for panel in panels(dashboard):
            for target in panel["targets"]:
                yield PanelQuery(name, panel["title"], target["expr"])


def rule_groups() -> list[Tree]:
    """The groups of rules; Prometheus evaluates each from top to bottom, and them in any order."""
    return [group for path in rule_files() for group in yaml.safe_load(path.read_text())["groups"]]


def rules() -> list[Tree]:
    """Every alert and recording rule."""
    return [rule for group in rule_groups() for rule in group["rules"]]


def rule_files() -> list[Path]:
    """The files with rules."""
    return sorted(RULES.glob("*.yaml"))


def series_in(expression: str) -> set[str]:
    """The names of series that an expression asks for."""
    return set(_SERIES.findall(expression))


def exported_series() -> set[str]:
    """What coordinators and workers export."""
    worker = {
        sample.name
        for family in WorkerMetrics(1).registry.collect()
        for sample in family.samples
        if not sample.name.endswith("_created")
    }
    coordinator = {name for metric in METRICS for name in metric.series}
    return {name for name in worker | coordinator if name.startswith("remy_farm_")}


def recorded_series() -> set[str]:
    """What recording rules make."""
    return {rule["record"] for rule in rules() if "record" in rule}
