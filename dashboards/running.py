"""Sections about a job at work: how fast it goes, and what holds it up."""

from __future__ import annotations

from dashboards import fleet
from dashboards.board import Section
from dashboards.parts import Query, lines
from dashboards.queries import age_of, happened, per_second


def throughput(chosen: str) -> Section:
    """How fast a job goes; `chosen` selects its series, as in `{job_id="$job"}`."""
    packets = per_second(f"remy_farm_job_simulated_packets_total{chosen}")
    return Section(
        "Throughput",
        [
            lines(
                "Evaluations",
                "Simulations of one specimen under one candidate.",
                "ops",
                Query(
                    per_second(f"remy_farm_job_evaluations_total{chosen}"),
                    "evaluations",
                ),
                width=6,
            ),
            lines(
                "CPU in use",
                "Processors that the job's evaluations kept busy.",
                "none",
                Query(per_second(f"remy_farm_job_cpu_seconds_total{chosen}"), "CPUs"),
                width=6,
            ),
            lines(
                "Throughput per worker",
                "Packets by second of the job, over the workers that evaluated something for it in"
                " the last minute. It falls when workers share processors or wait for tasks.",
                "pps",
                Query(
                    f"{packets} / max(remy_farm_job_workers{chosen} > 0)",
                    "packets by worker",
                ),
                width=6,
            ),
            lines(
                "Workers",
                "Workers that evaluated something for the job in the last minute or so.",
                "none",
                Query(f"max(remy_farm_job_workers{chosen})", "workers"),
                width=6,
            ),
        ],
    )


def interruptions(chosen: str) -> Section:
    """What holds a job up."""
    return Section(
        "Preemptions and interruptions",
        [
            lines(
                "Lost workers",
                "Workers that left without a goodbye and worked for this job only, or had tasks of"
                " it, which went to others.",
                "none",
                Query(happened(f"remy_farm_job_workers_lost_total{chosen}"), "lost"),
                width=8,
                no_value="none",
                colored=["lost"],
            ),
            fleet.pods("Worker pods", chosen, width=8),
            fleet.pods_ended("Pods preempted and failed", chosen, width=8),
            lines(
                "Recoveries",
                "How often the job went on after its coordinator had ended unexpectedly.",
                "none",
                Query(f"max(remy_farm_job_recoveries_total{chosen})", "recoveries"),
                width=8,
            ),
            lines(
                "Age of the last checkpoint",
                "What would be lost, at most, if the coordinator ended now. A checkpoint is made"
                " after every step.",
                "s",
                Query(
                    age_of(f"max(remy_farm_job_last_checkpoint_timestamp_seconds{chosen})"),
                    "age of the checkpoint",
                ),
                width=8,
            ),
            lines(
                "Where the time of steps goes",
                "Of all jobs together: seconds of tasks that wait, travel and are simulated, and"
                " seconds of the coordinator in the store and in the search, by second.",
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
