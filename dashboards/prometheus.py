"""Query a Prometheus server as Grafana does: its HTTP API, and the values of variables."""

from __future__ import annotations

import json
import math
import re
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

_TIMEOUT_SECONDS = 60.0
_VARIABLE = re.compile(r"\$\{?(\w+)(?::\w+)?\}?")
_POINTS = 150


class QueryError(Exception):
    """Prometheus rejected a query; the message is that of Prometheus."""


@dataclass(frozen=True)
class Series:
    """The labels of a time series and its values over time."""

    labels: dict[str, str]
    #: (Unix time in seconds, value), ordered by time; values that are not finite are left out.
    points: Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Prometheus:
    """A Prometheus server; `address` is a URL as in http://HOST:PORT."""

    address: str

    def range(self, expression: str, start: float, end: float, step: float) -> list[Series]:
        """Evaluates an expression every `step` seconds from `start` to `end`. Raises QueryError."""
        data = self.get(
            "query_range", query=expression, start=f"{start}", end=f"{end}", step=f"{step}"
        )
        return [Series(each["metric"], _numbers(each["values"])) for each in data["result"]]

    def instant(self, expression: str, time: float) -> list[Series]:
        """Evaluates an expression at one time. Raises QueryError."""
        data = self.get("query", query=expression, time=f"{time}")
        if data["resultType"] == "scalar":
            return [Series({}, _numbers([data["result"]]))]
        return [Series(each["metric"], _numbers([each["value"]])) for each in data["result"]]

    def get(self, endpoint: str, **parameters: str) -> Any:
        """Returns the data of a response of the HTTP API. Raises QueryError."""
        query = urllib.parse.urlencode(parameters)
        try:
            with urllib.request.urlopen(
                f"{self.address}/api/v1/{endpoint}?{query}", timeout=_TIMEOUT_SECONDS
            ) as response:
                return json.load(response)["data"]
        except urllib.error.HTTPError as error:
            raise QueryError(json.load(error)["error"]) from error


def _numbers(values: Sequence[Any]) -> list[tuple[float, float]]:
    numbers = [(float(time), float(value)) for time, value in values]
    return [(time, value) for time, value in numbers if math.isfinite(value)]


@dataclass(frozen=True)
class Choice:
    """The jobs, time range and farm that the reader of a dashboard has selected."""

    #: Names of the selected jobs, by id.
    jobs: Mapping[str, str]
    start: float
    end: float
    #: Prometheus's scrape interval.
    scrape_seconds: float
    #: Labels of the farm; empty if Prometheus scrapes only one farm.
    namespace: str = ""
    farm: str = ""

    @property
    def step_seconds(self) -> float:
        """The time between two points of a panel."""
        return max((self.end - self.start) / _POINTS, self.scrape_seconds)

    def only(self, job_id: str) -> Choice:
        """A copy with one of the selected jobs."""
        return replace(self, jobs={job_id: self.jobs[job_id]})

    def expression(self, text: str) -> str:
        """Replaces the variables of a query. Raises KeyError for an unknown variable."""
        values = {
            "__rate_interval": f"{int(max(4 * self.scrape_seconds, self.step_seconds))}s",
            "__range": f"{int(self.end - self.start)}s",
            "job": "|".join(self.jobs),
            "namespace": self.namespace,
            "farm": self.farm,
        }
        return _VARIABLE.sub(lambda found: values[found[1]], text)

    def title(self, text: str) -> str:
        """Replaces the variables of a title by the names of the selected jobs."""
        return _VARIABLE.sub(lambda _: ", ".join(self.jobs.values()), text)
