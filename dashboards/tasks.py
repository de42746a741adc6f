"""Sections about tasks: how long they wait and take, and what goes wrong with them."""

from __future__ import annotations

from grafana_foundation_sdk.builders import timeseries

from dashboards.board import Section
from dashboards.parts import Query, lines
from dashboards.queries import JOB_LEGEND, by_job, happened, per_second, quantiles

# As the alert about lost leases counts them.
_LOST = 'remy_farm_leases_ended_total{reason=~"lost|silent"}'


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
            _leases_ended_early(),
            lines(
                "Work done twice",
                "Late tasks given to another worker, and results that came when the outcome was"
                " known.",
                "none",
                Query(happened("remy_farm_tasks_hedged_total"), "hedged"),
                Query(happened("remy_farm_results_duplicate_total"), "duplicate"),
                width=8,
                no_value="none",
            ),
            lines(
                "Wrong results",
                "Results that failed their checks, and tasks given up because they kept ending"
                " their workers. Each deserves a look.",
                "none",
                Query(
                    happened("remy_farm_results_rejected_total", "reason"), "rejected: {{reason}}"
                ),
                Query(happened("remy_farm_tasks_quarantined_total"), "quarantined"),
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
            _leases_ended_early(),
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


def _leases_ended_early() -> timeseries.Panel:
    return lines(
        "Leases that ended early",
        "Tasks that a worker had and that ended without an answer that was wanted, by reason."
        " Where it is wanted still they are given out again; results do not change.",
        "none",
        Query(happened("remy_farm_leases_ended_total", "reason"), "{{reason}}"),
        width=8,
        stacked=True,
        no_value="none",
        colored=[
            *("lost", "silent", "goodbye", "returned"),
            *("bad_result", "quarantined", "withdrawn", "done_elsewhere", "divided"),
        ],
    )
