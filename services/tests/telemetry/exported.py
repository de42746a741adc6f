"""Reads a registry's exported series through the Prometheus text format."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

Series = tuple[str, tuple[tuple[str, str], ...]]


def exported(registry: CollectorRegistry) -> dict[Series, float]:
    """Returns the value of every series, by name and sorted labels."""
    text = generate_latest(registry).decode()
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def value(registry: CollectorRegistry, name: str, **labels: str) -> float:
    """Returns the value of one series; raises KeyError if it is not exported."""
    return exported(registry)[name, tuple(sorted(labels.items()))]
