"""Sections about workers and their throughput."""

from __future__ import annotations

from grafana_foundation_sdk.builders import timeseries

from dashboards.board import Section
from dashboards.parts import Query, lines
from dashboards.queries import happened, per_second

#: Reasons for which workers leave.
DEPARTURES = ("signal", "idle", "goodbye", "spot_interruption", "lost", "silent", "quarantined")


def pods(title: str, selector: str, *, width: int = 12) -> timeseries.Panel:
    """A panel of worker pods by phase.

    `selector` is a label selector of jobs, as in `{job_id="$job"}`.
    """
    return lines(
        title,
        "Pods requested from Kubernetes, and pods that run, start, cannot be scheduled, or are on"
        " an unreachable node.",
        "none",
        Query(f"sum by (phase) (remy_farm_job_worker_pods{selector})", "{{phase}}"),
        width=width,
        no_value="Kubernetes runs no workers",
        colored=["wanted", "running", "starting", "unschedulable", "lost"],
    )


def pods_ended(title: str, selector: str, *, width: int = 12) -> timeseries.Panel:
    """A panel of worker pods that were preempted or failed."""
    return lines(
        title,
        "Pods that the cluster removed (node reclaimed or drained, or a pod of higher priority),"
        " and pods that failed by themselves.",
        "none",
        Query(happened(f"remy_farm_job_worker_pods_ended_total{selector}", "reason"), "{{reason}}"),
        width=width,
        no_value="Kubernetes runs no workers",
        colored=["preempted", "failed"],
    )


def workers() -> Section:
    """The section about the workers of the farm."""
    return Section(
        "Fleet",
        [
            lines(
                "Workers over time",
                "Workers that are connected; busy with a task; silent (no heartbeat for too long);"
                " and quarantined (assigned no tasks because their results were wrong).",
                "none",
                Query("sum(remy_farm_workers_connected)", "connected"),
                Query("sum(remy_farm_workers_busy)", "busy"),
                Query("sum(remy_farm_workers_silent)", "silent"),
                Query("sum(remy_farm_workers_quarantined)", "quarantined"),
            ),
            lines(
                "Workers that came and left",
                "By reason. A worker announces a signal, an interruption notice or an idle"
                " timeout; it is lost if its connection breaks without notice, and silent if"
                " heartbeats stop first, as when a node is lost. All of them are normal on spot"
                " instances.",
                "none",
                Query(happened("remy_farm_workers_joined_total"), "came"),
                Query(f"-{happened('remy_farm_worker_departures_total', 'reason')}", "{{reason}}"),
                from_zero=False,
                no_value="none",
                colored=["came", *DEPARTURES],
            ),
            pods("Worker pods", ""),
            pods_ended("Pods preempted and failed", ""),
            lines(
                "Threads over time",
                "Simulation threads, and the number that evaluations keep busy.",
                "none",
                Query("sum(remy_farm_threads_connected)", "threads"),
                Query(per_second("remy_farm_evaluation_cpu_seconds_total"), "busy"),
            ),
            lines(
                "Packets by worker",
                "Packets that each worker simulates per second, by the worker's own metrics. A slow"
                " worker has a slower processor or shares it.",
                "pps",
                Query(
                    per_second("remy_farm_worker_simulated_packets_total", "instance"),
                    "{{instance}}",
                ),
                no_value="workers are not scraped",
            ),
        ],
    )


def throughput() -> Section:
    """The section about the throughput of the farm."""
    return Section(
        "Throughput",
        [
            lines(
                "Evaluations",
                "Finished simulations per second, each of one specimen under one candidate.",
                "ops",
                Query(per_second("remy_farm_evaluations_total"), "evaluations"),
                width=6,
            ),
            lines(
                "Tasks done",
                "Completed tasks per second. A task is a part of a request that takes up to a"
                " second.",
                "ops",
                Query(per_second("remy_farm_tasks_total"), "tasks"),
                width=6,
                no_value="no workers",
            ),
            lines(
                "Packets over time",
                "Packets sent in simulations per second.",
                "pps",
                Query(per_second("remy_farm_simulated_packets_total"), "packets"),
                width=6,
            ),
            lines(
                "Faster than real time",
                "Seconds of network time simulated per second.",
                "none",
                Query(per_second("remy_farm_simulated_seconds_total"), "simulated seconds"),
                width=6,
            ),
        ],
    )
