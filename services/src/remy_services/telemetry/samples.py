"""Values of metrics at one moment."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate

from prometheus_client.metrics_core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
)
from prometheus_client.registry import Collector

from remy_services.telemetry.catalogue import Kind, Metric

_Family = CounterMetricFamily | GaugeMetricFamily | HistogramMetricFamily


@dataclass(frozen=True, slots=True)
class Sample:
    """One series' value."""

    metric: Metric
    value: float
    #: Values of the metric's labels, in their order.
    labels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Distribution:
    """A histogram without labels."""

    metric: Metric
    #: Values by the metric's buckets, and last those above all of them.
    counts: Sequence[int]
    #: Sum of the values.
    total: float


Reading = Iterable[Sample | Distribution]
Reader = Callable[[], Reading]


class SampledCollector(Collector):
    """Exports what a function tells when it is asked: a series that it leaves out is gone."""

    def __init__(self, metrics: Sequence[Metric], read: Reader) -> None:
        self._metrics = tuple(metrics)
        self._read = read

    def describe(self) -> Iterable[_Family]:
        return [_family(metric) for metric in self._metrics]

    def collect(self) -> Iterable[_Family]:
        families = {metric.name: _family(metric) for metric in self._metrics}
        for entry in self._read():
            family = families[entry.metric.name]
            if isinstance(entry, Distribution):
                family.add_metric((), _cumulative(entry), entry.total)  # type: ignore[arg-type]
            else:
                family.add_metric(entry.labels, entry.value)  # type: ignore[arg-type, call-arg]
        return families.values()


def _cumulative(distribution: Distribution) -> list[tuple[str, float]]:
    """Counts up to every bucket's upper bound."""
    names = (*map(str, distribution.metric.buckets), "+Inf")
    return list(zip(names, accumulate(distribution.counts), strict=True))


def _family(metric: Metric) -> _Family:
    match metric.kind:
        case Kind.COUNTER:
            return CounterMetricFamily(metric.name, metric.help, labels=metric.labels)
        case Kind.GAUGE:
            return GaugeMetricFamily(metric.name, metric.help, labels=metric.labels)
        case Kind.HISTOGRAM:
            return HistogramMetricFamily(metric.name, metric.help, labels=metric.labels)
