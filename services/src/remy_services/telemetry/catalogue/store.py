"""Metrics of the store and of checkpoints."""

from __future__ import annotations

from remy_services.telemetry.catalogue.metric import Metric, counter, gauge, histogram

_STORE_BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0)
_SIZE_BUCKETS = tuple(float(1 << power) for power in range(10, 27, 2))

STORE_INFO = gauge("store_info", "Always 1: the database and its version.", "kind", "version")
STORE_DURABLE = gauge(
    "store_durable", "Whether acknowledged commits survive the loss of the store: 1 or 0."
)
STORE_AVAILABLE = gauge(
    "store_available", "Whether the store took the last thing that was asked of it: 1 or 0."
)
STORE_OPERATION = histogram(
    "store_operation_duration_seconds",
    "Round trips to the store, by operation.",
    "operation",
    buckets=_STORE_BUCKETS,
)
STORE_ERRORS = counter(
    "store_errors_total", "Operations of the store that failed, by operation.", "operation"
)
CHECKPOINT_DURATION = histogram(
    "checkpoint_duration_seconds",
    "Commits that held a snapshot: from the call to the durable answer.",
    buckets=_STORE_BUCKETS,
)
CHECKPOINT_SIZE = histogram("checkpoint_size_bytes", "Snapshots in commits.", buckets=_SIZE_BUCKETS)
CHECKPOINT_FAILURES = counter(
    "checkpoint_failures_total", "Commits with a snapshot that failed, by reason.", "reason"
)
FENCING_CONFLICTS = counter(
    "fencing_conflicts_total", "Operations refused because another coordinator has the job."
)

METRICS: tuple[Metric, ...] = (
    STORE_INFO,
    STORE_DURABLE,
    STORE_AVAILABLE,
    STORE_OPERATION,
    STORE_ERRORS,
    CHECKPOINT_DURATION,
    CHECKPOINT_SIZE,
    CHECKPOINT_FAILURES,
    FENCING_CONFLICTS,
)
