"""Prometheus' HTTP API, as far as panels need it."""

from __future__ import annotations

import json
import math
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

_TIMEOUT_SECONDS = 60.0


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
    """A server, by its address as in `http://127.0.0.1:9090`."""

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
