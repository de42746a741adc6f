"""Reading what a registry exports, as Prometheus would."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

Series = tuple[str, tuple[tuple[str, str], ...]]


def exported(registry: CollectorRegistry) -> dict[Series, float]:
    """Every series by its name and its labels in alphabetical order."""
    text = generate_latest(registry).decode()
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def value(registry: CollectorRegistry, name: str, **labels: str) -> float:
    """One series' value; raises KeyError if there is none."""
    return exported(registry)[name, tuple(sorted(labels.items()))]
