"""Generate the reference page of metrics from their declarations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from remy_services.telemetry import catalogue
from remy_services.telemetry.catalogue import Metric
from remy_workers.telemetry import WorkerMetrics

_HEAD = """\
# Metrics

`make dashboards` generates this page from the declarations in the code.
[Observability](../how-to/observability.md) says how to scrape the metrics and shows the
dashboards. Each process also exports the standard `process_` metrics.

Histograms have the series `_bucket`, `_sum` and `_count`. They are classic histograms, because
prometheus-client 0.26 cannot record native ones
([prometheus/client_python#918](https://github.com/prometheus/client_python/issues/918)).
"""

_SECTIONS = (
    ("Jobs", catalogue.JOB_METRICS),
    ("Evaluations and workers, as the coordinator sees them", catalogue.EVALUATION_METRICS),
    ("Store and checkpoints", catalogue.STORE_METRICS),
    ("Coordinator", catalogue.SERVER_METRICS),
)


def metrics_page() -> str:
    """Returns the text of the page, in Markdown."""
    parts = [_HEAD]
    for title, metrics in _SECTIONS:
        parts += [f"\n## {title}\n\n", *_table(_row(metric) for metric in metrics)]
    parts += ["\n## Workers\n\n", *_table(_worker_rows())]
    return "".join(parts)


def _table(rows: Iterable[tuple[str, str, Iterable[str], str]]) -> Iterator[str]:
    yield "| Metric | Type | Labels | Meaning |\n|---|---|---|---|\n"
    for name, kind, labels, meaning in rows:
        shown = ", ".join(f"`{label}`" for label in labels)
        yield f"| `{name}` | {kind} | {shown} | {meaning} |\n"


def _row(metric: Metric) -> tuple[str, str, Iterable[str], str]:
    return metric.name, metric.kind.value, metric.labels, metric.help


def _worker_rows() -> Iterator[tuple[str, str, Iterable[str], str]]:
    for family in WorkerMetrics(1).registry.collect():
        if not family.name.startswith("remy_farm_"):
            continue
        name = f"{family.name}_total" if family.type == "counter" else family.name
        labels = {label for sample in family.samples for label in sample.labels} - {"le"}
        yield name, family.type, sorted(labels), family.documentation
