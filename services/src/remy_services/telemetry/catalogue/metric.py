"""What is said of a metric once, for whoever exports, queries or documents it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

PREFIX = "remy_farm_"


class Kind(Enum):
    """The types of the Prometheus text format that are used here."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


@dataclass(frozen=True)
class Metric:
    """A metric's name, as queries have it, and its meaning."""

    #: Ends in its unit, a counter's in `_total`; a histogram's without `_bucket`.
    name: str
    kind: Kind
    help: str
    labels: tuple[str, ...] = ()
    #: Upper bounds of a histogram's buckets, in the metric's unit, without infinity.
    buckets: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if not self.name.startswith(PREFIX):
            raise ValueError(f"the metric {self.name} does not begin with {PREFIX}")
        if (self.kind is Kind.COUNTER) != self.name.endswith("_total"):
            raise ValueError(f"the metric {self.name} must end in _total exactly if it counts")
        if (self.kind is Kind.HISTOGRAM) != bool(self.buckets):
            raise ValueError(f"the metric {self.name} needs buckets exactly if it is a histogram")

    @property
    def series(self) -> tuple[str, ...]:
        """The names of its time series."""
        if self.kind is Kind.HISTOGRAM:
            return tuple(self.name + suffix for suffix in ("_bucket", "_count", "_sum"))
        return (self.name,)


def counter(name: str, text: str, *labels: str) -> Metric:
    """A number that only grows, from 0 when the process starts."""
    return Metric(PREFIX + name, Kind.COUNTER, text, labels)


def gauge(name: str, text: str, *labels: str) -> Metric:
    """A number that goes up and down."""
    return Metric(PREFIX + name, Kind.GAUGE, text, labels)


def histogram(name: str, text: str, *labels: str, buckets: tuple[float, ...]) -> Metric:
    """How often values fell into ranges."""
    return Metric(PREFIX + name, Kind.HISTOGRAM, text, labels, buckets)
