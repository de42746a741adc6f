"""Every metric that a coordinator exports: name, type, meaning, labels."""

from remy_services.telemetry.catalogue import fleet, jobs, server, store
from remy_services.telemetry.catalogue.metric import Kind, Metric

METRICS: tuple[Metric, ...] = (
    *jobs.METRICS,
    *fleet.METRICS,
    *store.METRICS,
    *server.METRICS,
)

__all__ = ["METRICS", "Kind", "Metric"]
