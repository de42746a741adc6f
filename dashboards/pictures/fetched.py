"""What a panel's queries return, by the names that the panel gives their series."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from dashboards.pictures.prometheus import Prometheus, Series
from dashboards.pictures.variables import Choice

Tree = dict[str, Any]


@dataclass(frozen=True)
class Line:
    """A series with its name."""

    name: str
    series: Series

    @property
    def last(self) -> float:
        """Its newest value."""
        return self.series.points[-1][1]


@dataclass(frozen=True)
class Source:
    """A Prometheus server, and what a reader has chosen to see of it."""

    prometheus: Prometheus
    choice: Choice

    def over_time(self, panel: Tree) -> list[Line]:
        """What all of a panel's queries return over the time that was chosen."""
        choice = self.choice
        return [
            Line(_name(target, series), series)
            for target in panel["targets"]
            for series in self.prometheus.range(
                choice.expression(target["expr"]), choice.start, choice.end, choice.step_seconds
            )
            if series.points
        ]

    def at_the_end(self, target: Tree) -> list[Line]:
        """What one query returns at the end of that time."""
        found = self.prometheus.instant(self.choice.expression(target["expr"]), self.choice.end)
        return [Line(_name(target, series), series) for series in found if series.points]


def _name(target: Tree, series: Series) -> str:
    legend = target.get("legendFormat") or ", ".join(series.labels.values())
    return re.sub(r"{{(\w+)}}", lambda found: series.labels.get(found[1], ""), legend)
