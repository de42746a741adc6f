"""Sections about a running job: its throughput and its interruptions."""

from __future__ import annotations

from dashboards import fleet
from dashboards.board import Section
from dashboards.parts import Query, lines
from dashboards.queries import age_of, happened, per_second


def throughput(selector: str) -> Section:
    """The section about a job's throughput.

    `selector` is the label selector of the job's series, as in `{job_id="$job"}`.
    """
    packets = per_second(f"remy_farm_job_simulated_packets_total{selector}")
    return Section(
        "Throughput",
        [
            lines(
                "Evaluations",
                "Simulations per second, each of one specimen under one candidate.",
                "ops",
                Query(
                    per_second(f"remy_farm_job_evaluations_total{selector}"),
                    "evaluations",
                ),
                width=6,
            ),
            lines(
                "CPU in use",
                "CPUs used by the job's evaluations.",
                "none",
                Query(per_second(f"remy_farm_job_cpu_seconds_total{selector}"), "CPUs"),
                width=6,
            ),
            lines(
                "Throughput per worker",
                "The job's packets per second, divided by the workers that evaluated something for"
                " it in the last minute. It falls when workers share processors or wait for tasks.",
                "pps",
                Query(
                    f"{packets} / max(remy_farm_job_workers{selector} > 0)",
                    "packets by worker",
                ),
                width=6,
            ),
            lines(
                "Workers",
                "Workers that evaluated something for the job in the last minute or so.",
                "none",
                Query(f"max(remy_farm_job_workers{selector})", "workers"),
                width=6,
            ),
        ],
    )


def interruptions(selector: str) -> Section:
    """The section about preemptions and other interruptions of a job."""
    return Section(
        "Preemptions and interruptions",
        [
            lines(
                "Lost workers",
                "Workers that were lost without notice while they worked only for this job or had"
                " tasks of it. Other workers took over the tasks.",
                "none",
                Query(happened(f"remy_farm_job_workers_lost_total{selector}"), "lost"),
                width=8,
                no_value="none",
                colored=["lost"],
            ),
            fleet.pods("Worker pods", selector, width=8),
            fleet.pods_ended("Pods preempted and failed", selector, width=8),
            lines(
                "Recoveries",
                "How often the job resumed after its coordinator ended unexpectedly.",
                "none",
                Query(f"max(remy_farm_job_recoveries_total{selector})", "recoveries"),
                width=8,
            ),
            lines(
                "Age of the last checkpoint",
                "The most work that would be lost if the coordinator ended now. A checkpoint is"
                " written after every step.",
                "s",
                Query(
                    age_of(f"max(remy_farm_job_last_checkpoint_timestamp_seconds{selector})"),
                    "age of the checkpoint",
                ),
                width=8,
            ),
            lines(
                "Time of steps by phase",
                "For all jobs together, per second: seconds that tasks wait, travel and are"
                " simulated, and seconds that the coordinator spends in the store and in the"
                " search.",
                "none",
                Query(
                    per_second("remy_farm_step_phase_seconds_total", "phase"),
                    "{{phase}}",
                ),
                width=8,
                stacked=True,
            ),
        ],
    )
