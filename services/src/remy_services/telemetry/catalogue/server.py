"""Metrics of the coordinator as a process and a server."""

from __future__ import annotations

from remy_services.telemetry.catalogue.metric import Metric, counter, gauge, histogram

_CALL_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
_METHOD = ("grpc_service", "grpc_method")

BUILD_INFO = gauge(
    "build_info",
    "Always 1: versions of the coordinator, the simulator and Python.",
    "version",
    "simulator_version",
    "python_version",
)
CERTIFICATE_EXPIRY = gauge(
    "certificate_expiry_timestamp_seconds",
    "Unix time at which a certificate that is in use ends.",
    "use",
)
GRPC_HANDLED = counter(
    "grpc_server_handled_total", "Calls that ended, by status code.", *_METHOD, "grpc_code"
)
GRPC_DURATION = histogram(
    "grpc_server_handling_seconds",
    "How long calls with one response took; streams last as long as their clients like.",
    *_METHOD,
    buckets=_CALL_BUCKETS,
)
GRPC_OPEN = gauge("grpc_server_open_calls", "Calls that are being served.", *_METHOD)
STEP_PHASE_SECONDS = counter(
    "step_phase_seconds_total",
    "Where the time of steps went: waiting, transfer and simulation in seconds of tasks, store and "
    "search in seconds of the coordinator.",
    "phase",
)

METRICS: tuple[Metric, ...] = (
    BUILD_INFO,
    CERTIFICATE_EXPIRY,
    GRPC_HANDLED,
    GRPC_DURATION,
    GRPC_OPEN,
    STEP_PHASE_SECONDS,
)
