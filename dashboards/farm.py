"""The dashboard of a whole farm: jobs, workers, throughput, cost and faults."""

from __future__ import annotations

from grafana_foundation_sdk.models import dashboard as models

from dashboards import fleet, tasks
from dashboards.board import Section, board
from dashboards.parts import Query, bars, lines, number
from dashboards.queries import (
    JOB_LEGEND,
    by_job,
    grown,
    per_second,
    unfinished,
)
from dashboards.tables import Column, job_table

UID = "remy-farm-farm"

_COST_OF_AN_HOUR = f"3600 * {per_second('remy_farm_job_cost_total')}"


def farm() -> models.Dashboard:
    """The dashboard."""
    return board(
        UID,
        "Farm",
        "All jobs, all workers: throughput, queue, cost and faults.",
        [
            _now(),
            _jobs(),
            fleet.workers(),
            fleet.throughput(),
            tasks.queue(),
            _cost(),
            tasks.faults(),
        ],
    )


def _now() -> Section:
    return Section(
        "Now",
        [
            number(
                "Jobs running",
                "Jobs in the state RUNNING.",
                "none",
                Query('sum(remy_farm_jobs{state="RUNNING"})'),
            ),
            number(
                "Jobs waiting",
                "Jobs in the state PENDING, which wait to be started.",
                "none",
                Query('sum(remy_farm_jobs{state="PENDING"})'),
            ),
            number(
                "Workers",
                "Connected workers. Without workers, jobs make no progress.",
                "none",
                Query("sum(remy_farm_workers_connected)"),
                thresholds=((None, "red"), (1, "green")),
            ),
            number(
                "Threads",
                "Simulating threads of all connected workers.",
                "none",
                Query("sum(remy_farm_threads_connected)"),
            ),
            number(
                "Threads busy",
                "CPU time of evaluations divided by the time available to all threads. If it is low"
                " while jobs run, tasks are too few or too short, or workers wait for the network.",
                "percentunit",
                Query(
                    f"{per_second('remy_farm_evaluation_cpu_seconds_total')}"
                    " / sum(remy_farm_threads_connected)"
                ),
                decimals=0,
            ),
            number(
                "Tasks waiting",
                "Tasks not yet assigned to a worker.",
                "short",
                Query("sum(remy_farm_tasks_waiting)"),
            ),
            number(
                "Packets",
                "Packets sent in simulations per second.",
                "pps",
                Query(per_second("remy_farm_simulated_packets_total")),
            ),
            number(
                "Cost of an hour",
                "Cost of evaluations per hour at the current rate, in the currency of the"
                " coordinator's price of a CPU-hour.",
                "short",
                Query(_COST_OF_AN_HOUR),
                no_value="no price",
            ),
        ],
    )


def _column(title: str, metric: str, unit: str = "none") -> Column:
    return Column(title, unfinished(by_job(metric)), unit)


def _jobs() -> Section:
    return Section(
        "Jobs",
        [
            job_table(
                "Jobs at work",
                "Unfinished jobs. The name links to the job's dashboard.",
                [
                    _column("priority", "remy_farm_job_priority"),
                    _column("score", "remy_farm_job_validated_score"),
                    _column("rules", "remy_farm_job_rules"),
                    _column("epoch", "remy_farm_job_epoch"),
                    _column("step", "remy_farm_job_step"),
                    _column("CPU time", "remy_farm_job_cpu_seconds_total", "s"),
                    _column("time left", "remy_farm_job_eta_seconds", "s"),
                    _column("workers", "remy_farm_job_workers"),
                ],
            ),
            lines(
                "Jobs by state",
                "Finished jobs are counted until they are deleted.",
                "none",
                Query("sum by (state) (remy_farm_jobs) > 0", "{{state}}"),
                stacked=True,
            ),
            lines(
                "Scores of jobs at work",
                "Score of each job's published table on validation specimens. Compare scores only"
                " between jobs with the same objective and networks.",
                "none",
                Query(unfinished(by_job("remy_farm_job_validated_score")), JOB_LEGEND),
                from_zero=False,
            ),
        ],
    )


def _cost() -> Section:
    spent = grown("remy_farm_job_cpu_seconds_total", "job_id, job_name", "$__range")
    paid = grown("remy_farm_job_cost_total", "job_id, job_name", "$__range")
    return Section(
        "Cost",
        [
            bars(
                "CPU time by job",
                "CPU time of evaluations in the time range; the ten largest.",
                "s",
                Query(f"topk(10, {spent} > 0)", JOB_LEGEND),
                width=8,
            ),
            bars(
                "Cost by job",
                "Cost in the time range, by the coordinator's price of a CPU-hour; the ten"
                " highest.",
                "short",
                Query(f"topk(10, {paid} > 0)", JOB_LEGEND),
                width=8,
            ),
            lines(
                "Cost over time",
                "Cost of evaluations per hour at the current rate.",
                "short",
                Query(_COST_OF_AN_HOUR, "cost of an hour"),
                width=8,
                no_value="no price",
            ),
        ],
    )
