"""The dashboard that compares jobs."""

from __future__ import annotations

from grafana_foundation_sdk.models import dashboard as models

from dashboards import score
from dashboards.board import Section, board
from dashboards.parts import Query, lines
from dashboards.queries import JOB_LABELS, JOB_LEGEND, by_job, per_second
from dashboards.tables import Column, job_table

UID = "remy-farm-compare"

_JOBS = '{job_id=~"$job"}'


def compare() -> models.Dashboard:
    """The dashboard."""
    return board(
        UID,
        "Compare",
        "Several jobs side by side. Compare scores only between jobs with the same objective and"
        " networks.",
        [_figures(), _curves(), _each()],
        many_jobs=True,
    )


def _latest(metric: str) -> str:
    return by_job(f"{metric}{_JOBS}")


def _rate(metric: str) -> str:
    return per_second(f"{metric}{_JOBS}", ", ".join(JOB_LABELS))


def _figures() -> Section:
    cpu_hours = f"{_latest('remy_farm_job_cpu_seconds_total')} / 3600"
    return Section(
        "Figures",
        [
            job_table(
                "Jobs",
                "Current values of each job. The name links to the job's dashboard.",
                [
                    Column("score", _latest("remy_farm_job_validated_score"), "none"),
                    Column(
                        "standard error",
                        _latest("remy_farm_job_validated_score_standard_error"),
                        "none",
                    ),
                    Column("gain of the last epoch", _latest("remy_farm_job_epoch_gain"), "none"),
                    Column("rules", _latest("remy_farm_job_rules"), "none"),
                    Column("epoch", _latest("remy_farm_job_epoch"), "none"),
                    Column("step", _latest("remy_farm_job_step"), "none"),
                    Column("run time", _latest("remy_farm_job_run_seconds_total"), "s"),
                    Column("CPU-hours", cpu_hours, "none"),
                    Column("cost", _latest("remy_farm_job_cost_total"), "short"),
                ],
            )
        ],
    )


def _curves() -> Section:
    return Section(
        "Curves",
        [
            lines(
                "Score",
                "Score of each job's published table on validation specimens.",
                "none",
                Query(_latest("remy_farm_job_validated_score"), JOB_LEGEND),
                from_zero=False,
            ),
            lines(
                "Gain of the last epoch",
                "Gain of each job's last epoch on validation specimens.",
                "none",
                Query(_latest("remy_farm_job_epoch_gain"), JOB_LEGEND),
                from_zero=False,
                no_value="no epoch yet",
            ),
            lines(
                "Rules",
                "Number of rules in the table that each job is improving.",
                "none",
                Query(_latest("remy_farm_job_rules"), JOB_LEGEND),
                width=8,
            ),
            lines(
                "CPU in use",
                "CPUs used by each job's evaluations, which is its share of the farm.",
                "none",
                Query(
                    _rate("remy_farm_job_cpu_seconds_total"),
                    JOB_LEGEND,
                ),
                width=8,
                stacked=True,
            ),
            lines(
                "Packets",
                "Packets sent in each job's simulations.",
                "pps",
                Query(
                    _rate("remy_farm_job_simulated_packets_total"),
                    JOB_LEGEND,
                ),
                width=8,
                stacked=True,
            ),
        ],
    )


def _each() -> Section:
    panel = score.score_over_cpu_hours('{job_id="$job"}', title="${job:text}", width=8)
    return Section("Score over CPU-hours, job by job", [panel.repeat("job").repeat_direction("h")])
