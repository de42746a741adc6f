"""Sections about the coordinator as a server: its store, its calls and its process."""

from __future__ import annotations

from dashboards.board import Section
from dashboards.parts import Query, lines
from dashboards.queries import happened, per_second, tail


def store() -> Section:
    """The section about the store and its mirror."""
    return Section(
        "Store",
        [
            lines(
                "Round trips, 99th percentile",
                "Latency by operation. A commit is one round trip.",
                "s",
                Query(
                    tail("remy_farm_store_operation_duration_seconds", "operation"),
                    "{{operation}}",
                ),
                width=8,
            ),
            lines(
                "Round trips",
                "Operations per second.",
                "ops",
                Query(
                    per_second("remy_farm_store_operation_duration_seconds_count", "operation"),
                    "{{operation}}",
                ),
                width=8,
                stacked=True,
            ),
            lines(
                "Errors of the store",
                "Failed operations. While the store is unavailable, jobs wait and retry.",
                "none",
                Query(
                    happened("remy_farm_store_errors_total", "operation"),
                    "{{operation}}",
                ),
                width=8,
                no_value="none",
            ),
            lines(
                "Memory and disk of the store",
                "Usage of memory and disk, and the memory limit at which the store refuses"
                " commits. A Redis needs twice the disk space while it rewrites its append-only"
                " file; monitor its volume for the space left.",
                "bytes",
                Query("max by (kind) (remy_farm_store_bytes)", "{{kind}}"),
                width=8,
            ),
            lines(
                "Mirror lag",
                "Age of the oldest change that is not yet in the mirror.",
                "s",
                Query("max(remy_farm_mirror_behind_seconds)", "lag"),
                width=8,
                no_value="no mirror",
            ),
            lines(
                "Failures of the mirror",
                "Failed writes; they are retried.",
                "none",
                Query(happened("remy_farm_mirror_failures_total"), "failed"),
                width=8,
                no_value="no mirror",
                colored=["failed"],
            ),
        ],
    )


def calls() -> Section:
    """The section about gRPC calls."""
    return Section(
        "Requests",
        [
            lines(
                "Calls by code",
                "Completed gRPC calls by status code.",
                "ops",
                Query(
                    per_second("remy_farm_grpc_server_handled_total", "grpc_code"),
                    "{{grpc_code}}",
                ),
                width=8,
                stacked=True,
            ),
            lines(
                "Duration of calls, 99th percentile",
                "Latency by method. Streams are left out, since their clients decide how long they"
                " last.",
                "s",
                Query(
                    tail("remy_farm_grpc_server_handling_seconds", "grpc_method"),
                    "{{grpc_method}}",
                ),
                width=8,
            ),
            lines(
                "Open calls",
                "Calls in progress. Each watcher and each worker keeps one open.",
                "none",
                Query("sum by (grpc_method) (remy_farm_grpc_server_open_calls)", "{{grpc_method}}"),
                width=8,
                stacked=True,
            ),
        ],
    )


def process() -> Section:
    """The section about the coordinator's process."""
    only = "* on (instance, job) group_left () remy_farm_build_info"
    return Section(
        "Coordinator",
        [
            lines(
                "CPU",
                "CPUs used by the coordinator itself. Near 1, the coordinator limits the farm's"
                " throughput.",
                "none",
                Query(f"rate(process_cpu_seconds_total[$__rate_interval]) {only}", "{{instance}}"),
                width=8,
            ),
            lines(
                "Memory",
                "Resident memory of the coordinator.",
                "bytes",
                Query(f"process_resident_memory_bytes {only}", "{{instance}}"),
                width=8,
            ),
            lines(
                "Evaluation requests that failed",
                "Evaluation requests that ended without an outcome. Their jobs fail.",
                "none",
                Query(
                    happened("remy_farm_evaluation_requests_failed_total"),
                    "failed",
                ),
                width=8,
            ),
        ],
    )
