"""Counters and histograms of what happens, by their entries in the catalogue."""

from __future__ import annotations

from collections.abc import Sequence

import prometheus_client
from prometheus_client import CollectorRegistry

from remy_services.telemetry.catalogue import Kind, Metric

# A second series for each counter, with its time of birth, which nobody asks for.
prometheus_client.disable_created_metrics()  # type: ignore[no-untyped-call]


class Instruments:
    """Counts and measures; may be used from any thread."""

    def __init__(self, registry: CollectorRegistry, metrics: Sequence[Metric]) -> None:
        self._counters: dict[str, prometheus_client.Counter] = {}
        self._gauges: dict[str, prometheus_client.Gauge] = {}
        self._histograms: dict[str, prometheus_client.Histogram] = {}
        for metric in metrics:
            self._add(metric, registry)

    def _add(self, metric: Metric, registry: CollectorRegistry) -> None:
        name, text, labels = metric.name, metric.help, metric.labels
        match metric.kind:
            case Kind.COUNTER:
                self._counters[name] = prometheus_client.Counter(
                    name, text, labels, registry=registry
                )
            case Kind.GAUGE:
                self._gauges[name] = prometheus_client.Gauge(name, text, labels, registry=registry)
            case Kind.HISTOGRAM:
                self._histograms[name] = prometheus_client.Histogram(
                    name, text, labels, buckets=metric.buckets, registry=registry
                )

    def count(self, metric: Metric, *labels: str, by: float = 1.0) -> None:
        """Adds `by` >= 0 to a counter."""
        instrument = self._counters[metric.name]
        (instrument.labels(*labels) if labels else instrument).inc(by)

    def observe(self, metric: Metric, value: float, *labels: str) -> None:
        """Adds a value, in the metric's unit, to a histogram."""
        instrument = self._histograms[metric.name]
        (instrument.labels(*labels) if labels else instrument).observe(value)

    def set(self, metric: Metric, value: float, *labels: str) -> None:
        """The present value of a gauge."""
        instrument = self._gauges[metric.name]
        (instrument.labels(*labels) if labels else instrument).set(value)

    def add(self, metric: Metric, change: float, *labels: str) -> None:
        """Changes the value of a gauge."""
        instrument = self._gauges[metric.name]
        (instrument.labels(*labels) if labels else instrument).inc(change)

    def prepare(self, metric: Metric, *labels: str) -> None:
        """Has a series begin at 0, so that its first increase is seen as one."""
        for kind in (self._counters, self._gauges, self._histograms):
            if metric.name in kind:
                kind[metric.name].labels(*labels)
