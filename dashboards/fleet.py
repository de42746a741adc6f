"""Sections about workers, and how much they do."""

from __future__ import annotations

from grafana_foundation_sdk.builders import timeseries

from dashboards.board import Section
from dashboards.parts import Query, lines
from dashboards.queries import happened, per_second

#: Why workers leave.
DEPARTURES = ("signal", "idle", "goodbye", "spot_interruption", "lost", "silent", "quarantined")


def pods(title: str, chosen: str, *, width: int = 12) -> timeseries.Panel:
    """Pods of workers by phase; `chosen` selects jobs, as in `{job_id="$job"}`."""
    return lines(
        title,
        "Pods that Kubernetes is asked for, and those that run, start, find no node, or are on a"
        " node that does not answer.",
        "none",
        Query(f"sum by (phase) (remy_farm_job_worker_pods{chosen})", "{{phase}}"),
        width=width,
        no_value="Kubernetes runs no workers",
        colored=["wanted", "running", "starting", "unschedulable", "lost"],
    )


def pods_ended(title: str, chosen: str, *, width: int = 12) -> timeseries.Panel:
    """Pods of workers that ended before their work did."""
    return lines(
        title,
        "Pods that the cluster took away (a node reclaimed or drained, a higher priority), and"
        " those that failed by themselves.",
        "none",
        Query(happened(f"remy_farm_job_worker_pods_ended_total{chosen}", "reason"), "{{reason}}"),
        width=width,
        no_value="Kubernetes runs no workers",
        colored=["preempted", "failed"],
    )


def workers() -> Section:
    """Who is there."""
    return Section(
        "Fleet",
        [
            lines(
                "Workers over time",
                "Connected workers; those that have a task; those not heard of for longer than they"
                " should; and those that get no tasks because their results were wrong.",
                "none",
                Query("sum(remy_farm_workers_connected)", "connected"),
                Query("sum(remy_farm_workers_busy)", "busy"),
                Query("sum(remy_farm_workers_silent)", "silent"),
                Query("sum(remy_farm_workers_quarantined)", "quarantined"),
            ),
            lines(
                "Workers that came and left",
                "By why they left: as they said (a signal, an interruption notice, nothing left to"
                " do), lost without a word, or silent before their connection broke, as with a"
                " lost node. On spot instances all are daily business.",
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
                "Simulating threads, and how many of them the evaluations have kept busy.",
                "none",
                Query("sum(remy_farm_threads_connected)", "threads"),
                Query(per_second("remy_farm_evaluation_cpu_seconds_total"), "busy"),
            ),
            lines(
                "Packets by worker",
                "Packets that each worker simulated by second, as the workers tell. A slow one has"
                " a slower processor, or shares it.",
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
    """How fast it goes."""
    return Section(
        "Throughput",
        [
            lines(
                "Evaluations",
                "Simulations of one specimen under one candidate that were finished.",
                "ops",
                Query(per_second("remy_farm_evaluations_total"), "evaluations"),
                width=6,
            ),
            lines(
                "Tasks done",
                "Tasks whose outcome is known: parts of requests, of up to a second each.",
                "ops",
                Query(per_second("remy_farm_tasks_total"), "tasks"),
                width=6,
                no_value="no workers",
            ),
            lines(
                "Packets over time",
                "Packets sent in simulations.",
                "pps",
                Query(per_second("remy_farm_simulated_packets_total"), "packets"),
                width=6,
            ),
            lines(
                "Faster than real time",
                "Seconds of network time that are simulated in a second.",
                "none",
                Query(per_second("remy_farm_simulated_seconds_total"), "simulated seconds"),
                width=6,
            ),
        ],
    )
