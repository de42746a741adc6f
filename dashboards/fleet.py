"""Sections about workers, tasks and what goes wrong with them."""

from __future__ import annotations

from dashboards.board import Section
from dashboards.parts import Query, lines
from dashboards.queries import JOB_LEGEND, by_job, grown, per_second, quantiles

_LOST = 'remy_farm_leases_ended_total{reason=~"lost|silent|goodbye"}'


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
                "By how they left: with a goodbye (a signal, an interruption notice, nothing left"
                " to do), or lost without one. On spot instances both are daily business.",
                "none",
                Query(grown("remy_farm_workers_joined_total"), "came"),
                Query(f"-{grown('remy_farm_worker_departures_total', 'reason')}", "{{reason}}"),
                from_zero=False,
                no_value="none",
            ),
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


def queue() -> Section:
    """What waits, and for how long."""
    return Section(
        "Queue",
        [
            lines(
                "Tasks",
                "Tasks that wait for a worker, and tasks that a worker has.",
                "short",
                Query("sum(remy_farm_tasks_waiting)", "waiting"),
                Query("sum(remy_farm_tasks_running)", "running"),
                width=8,
            ),
            lines(
                "Task duration",
                "From when a worker got a task to when its result was here. Tasks are made to take"
                " up to a second, and less towards the end of a step.",
                "s",
                *quantiles("remy_farm_task_duration_seconds"),
                width=8,
                no_value="no workers",
            ),
            lines(
                "Queue time",
                "From when a task could be given out to when a worker got it.",
                "s",
                *quantiles("remy_farm_task_queue_seconds"),
                width=8,
                no_value="no workers",
            ),
        ],
    )


def faults() -> Section:
    """What goes wrong, and is mended."""
    return Section(
        "Faults",
        [
            lines(
                "Tasks that were lost",
                "Tasks that a worker had and that ended without an answer that was wanted. Where"
                " it is wanted still they are given out again; results do not change.",
                "none",
                Query(grown("remy_farm_leases_ended_total", "reason"), "{{reason}}"),
                width=8,
                stacked=True,
                no_value="none",
            ),
            lines(
                "Work done twice",
                "Late tasks given to another worker, tasks done twice to compare results, and"
                " results that came when the outcome was known.",
                "none",
                Query(grown("remy_farm_tasks_hedged_total"), "hedged"),
                Query(grown("remy_farm_tasks_doubled_total"), "compared"),
                Query(grown("remy_farm_results_duplicate_total"), "duplicate"),
                width=8,
                no_value="none",
            ),
            lines(
                "Wrong results",
                "Results that failed their checks, earlier results of quarantined workers, tasks on"
                " which workers disagreed, and tasks given up because they kept ending"
                " their workers. Each deserves a look.",
                "none",
                Query(grown("remy_farm_results_rejected_total", "reason"), "rejected: {{reason}}"),
                Query(grown("remy_farm_results_revoked_total"), "revoked"),
                Query(grown("remy_farm_tasks_disputed_total"), "disputed"),
                Query(grown("remy_farm_tasks_quarantined_total"), "quarantined"),
                width=8,
                no_value="none",
            ),
        ],
    )


def leases() -> Section:
    """What workers had and did not finish."""
    return Section(
        "Leases",
        [
            lines(
                "Leases that ended early",
                "Tasks that a worker had and that ended without an answer that was wanted, by"
                " reason.",
                "none",
                Query(
                    grown("remy_farm_leases_ended_total", "reason"),
                    "{{reason}}",
                ),
                width=8,
                stacked=True,
                no_value="none",
            ),
            lines(
                "Share of tasks lost",
                "Tasks lost with their workers, or with silent ones, of those given out.",
                "percentunit",
                Query(
                    f"{per_second(_LOST)} / {per_second('remy_farm_tasks_assigned_total')}",
                    "lost",
                ),
                width=8,
                no_value="none",
            ),
            lines(
                "Recoveries",
                "How often each job went on after its coordinator had ended unexpectedly.",
                "none",
                Query(
                    by_job("remy_farm_job_recoveries_total"),
                    JOB_LEGEND,
                ),
                width=8,
            ),
        ],
    )
