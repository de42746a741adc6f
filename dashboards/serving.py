"""Sections about the coordinator as a server: its store, its calls, its process."""

from __future__ import annotations

from dashboards.board import Section
from dashboards.parts import Query, lines
from dashboards.queries import happened, per_second, tail


def store() -> Section:
    """Whether the store keeps up."""
    return Section(
        "Store",
        [
            lines(
                "Round trips, 99th percentile",
                "By operation. A commit is one round trip.",
                "s",
                Query(
                    tail("remy_farm_store_operation_duration_seconds", "operation"),
                    "{{operation}}",
                ),
                width=8,
            ),
            lines(
                "Round trips",
                "How often each operation was asked for.",
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
                "Operations that failed. While the store is away, jobs wait and try again.",
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
                "What it takes, and the limit from which on it takes no commits. A Redis needs as"
                " much disk again while it rewrites its file; how much is left there only its"
                " volume tells.",
                "bytes",
                Query("max by (kind) (remy_farm_store_bytes)", "{{kind}}"),
                width=8,
            ),
            lines(
                "Mirror behind",
                "For how long the oldest change of a job has waited to be in the mirror.",
                "s",
                Query("max(remy_farm_mirror_behind_seconds)", "behind"),
                width=8,
                no_value="no mirror",
            ),
            lines(
                "Failures of the mirror",
                "Writes that failed; they are tried again.",
                "none",
                Query(happened("remy_farm_mirror_failures_total"), "failed"),
                width=8,
                no_value="no mirror",
                colored=["failed"],
            ),
        ],
    )


def calls() -> Section:
    """Whether requests are answered."""
    return Section(
        "Requests",
        [
            lines(
                "Calls by code",
                "Calls of the coordinator's server that ended, by gRPC status code.",
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
                "By method; streams are left out, since they last as long as their clients like.",
                "s",
                Query(
                    tail("remy_farm_grpc_server_handling_seconds", "grpc_method"),
                    "{{grpc_method}}",
                ),
                width=8,
            ),
            lines(
                "Open calls",
                "Calls that are being served: watchers and workers hold one each.",
                "none",
                Query("sum by (grpc_method) (remy_farm_grpc_server_open_calls)", "{{grpc_method}}"),
                width=8,
                stacked=True,
            ),
        ],
    )


def process() -> Section:
    """Whether the process is well."""
    only = "* on (instance, job) group_left () remy_farm_build_info"
    return Section(
        "Coordinator",
        [
            lines(
                "CPU",
                "Processors that the coordinator itself keeps busy. Near 1, it is what holds the"
                " farm up.",
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
                "Requests of designs that ended without an outcome. Their jobs fail.",
                "none",
                Query(
                    happened("remy_farm_evaluation_requests_failed_total"),
                    "failed",
                ),
                width=8,
            ),
        ],
    )
