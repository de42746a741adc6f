"""A Prometheus server as dashboards ask it: its HTTP API, and what Grafana puts for variables."""

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
    """Prometheus refused a query; the message is its own."""


@dataclass(frozen=True)
class Series:
    """Values over time."""

    labels: dict[str, str]
    #: (Unix time in seconds, value) by time; without values that are not numbers.
    points: Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Prometheus:
    """A server, at an address as in http://HOST:PORT."""

    address: str

    def range(self, expression: str, start: float, end: float, step: float) -> list[Series]:
        """Every `step` seconds from `start` to `end`. Raises QueryError."""
        data = self.get(
            "query_range", query=expression, start=f"{start}", end=f"{end}", step=f"{step}"
        )
        return [Series(each["metric"], _numbers(each["values"])) for each in data["result"]]

    def instant(self, expression: str, time: float) -> list[Series]:
        """At one time. Raises QueryError."""
        data = self.get("query", query=expression, time=f"{time}")
        if data["resultType"] == "scalar":
            return [Series({}, _numbers([data["result"]]))]
        return [Series(each["metric"], _numbers([each["value"]])) for each in data["result"]]

    def get(self, what: str, **parameters: str) -> Any:
        """The data that one part of the API answers with. Raises QueryError."""
        query = urllib.parse.urlencode(parameters)
        try:
            with urllib.request.urlopen(
                f"{self.address}/api/v1/{what}?{query}", timeout=_TIMEOUT_SECONDS
            ) as response:
                return json.load(response)["data"]
        except urllib.error.HTTPError as error:
            raise QueryError(json.load(error)["error"]) from error


def _numbers(values: Sequence[Any]) -> list[tuple[float, float]]:
    numbers = [(float(time), float(value)) for time, value in values]
    return [(time, value) for time, value in numbers if math.isfinite(value)]


@dataclass(frozen=True)
class Choice:
    """What a reader of a dashboard has chosen to see."""

    #: Names by id, of the jobs to show.
    jobs: Mapping[str, str]
    start: float
    end: float
    #: How often metrics are scraped.
    scrape_seconds: float
    #: The farm's labels; a farm that is alone needs none.
    namespace: str = ""
    farm: str = ""

    @property
    def step_seconds(self) -> float:
        """Time between two points of a panel."""
        return max((self.end - self.start) / _POINTS, self.scrape_seconds)

    def only(self, job_id: str) -> Choice:
        """The same with one job."""
        return replace(self, jobs={job_id: self.jobs[job_id]})

    def expression(self, text: str) -> str:
        """A query with its variables replaced. Raises KeyError for one that there is not."""
        values = {
            "__rate_interval": f"{int(max(4 * self.scrape_seconds, self.step_seconds))}s",
            "__range": f"{int(self.end - self.start)}s",
            "job": "|".join(self.jobs),
            "namespace": self.namespace,
            "farm": self.farm,
        }
        return _VARIABLE.sub(lambda found: values[found[1]], text)

    def title(self, text: str) -> str:
        """A title with its variables replaced."""
        return _VARIABLE.sub(lambda _: ", ".join(self.jobs.values()), text)
