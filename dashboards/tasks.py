"""Sections about tasks: their queue, their durations and their faults."""

from __future__ import annotations

from grafana_foundation_sdk.builders import timeseries

from dashboards.board import Section
from dashboards.parts import Query, lines
from dashboards.queries import JOB_LEGEND, by_job, happened, per_second, quantiles

# The alert about lost leases counts these reasons, too.
_LOST = 'remy_farm_leases_ended_total{reason=~"lost|silent"}'


def queue() -> Section:
    """The section about waiting tasks."""
    return Section(
        "Queue",
        [
            lines(
                "Tasks",
                "Tasks that wait for a worker, and tasks assigned to one.",
                "short",
                Query("sum(remy_farm_tasks_waiting)", "waiting"),
                Query("sum(remy_farm_tasks_running)", "running"),
                width=8,
            ),
            lines(
                "Task duration",
                "Time from the assignment of a task to the arrival of its result. Tasks are sized"
                " to take up to a second, and less towards the end of a step.",
                "s",
                *quantiles("remy_farm_task_duration_seconds"),
                width=8,
                no_value="no workers",
            ),
            lines(
                "Queue time",
                "Time from when a task is ready to when it is assigned to a worker.",
                "s",
                *quantiles("remy_farm_task_queue_seconds"),
                width=8,
                no_value="no workers",
            ),
        ],
    )


def faults() -> Section:
    """The section about faults that the farm recovers from."""
    return Section(
        "Faults",
        [
            _leases_ended_early(),
            lines(
                "Work done twice",
                "Late tasks also assigned to another worker, and results that arrived after another"
                " result of the same task.",
                "none",
                Query(happened("remy_farm_tasks_hedged_total"), "hedged"),
                Query(happened("remy_farm_results_duplicate_total"), "duplicate"),
                width=8,
                no_value="none",
            ),
            lines(
                "Wrong results",
                "Results that failed validation, and tasks given up because they repeatedly crashed"
                " their workers. Investigate each of them.",
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
    """The section about leases that ended without a result."""
    return Section(
        "Leases",
        [
            _leases_ended_early(),
            lines(
                "Share of tasks lost",
                "Share of assigned tasks whose worker was lost or fell silent.",
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
                "How often each job resumed after its coordinator ended unexpectedly.",
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
        "Assigned tasks that ended without a useful result, by reason. If the result is still"
        " needed, the task is assigned again; the outcome of a design does not change.",
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
