"""The dashboard of one job: its score, convergence, cost, throughput and interruptions."""

from __future__ import annotations

from grafana_foundation_sdk.models import dashboard as models

from dashboards import running, score
from dashboards.board import Section, board
from dashboards.parts import Query, lines, number

UID = "remy-farm-job"

_JOB = '{job_id="$job"}'


def job() -> models.Dashboard:
    """The dashboard."""
    return board(
        UID,
        "Job",
        "One job: score, convergence, cost, throughput and interruptions.",
        [_now(), _search(), _convergence(), running.throughput(_JOB), running.interruptions(_JOB)],
        jobs=True,
    )


def _now() -> Section:
    return Section(
        "Now",
        [
            number(
                "State",
                "State of the job, as in `remy-farm list`.",
                "none",
                Query(f"max by (state) (remy_farm_job_state{_JOB})", "{{state}}"),
                text_is_name=True,
                no_value="no such job",
            ),
            number(
                "Score",
                "Score of the published table on validation specimens, in units of the job's"
                " objective.",
                "none",
                Query(f"max(remy_farm_job_validated_score{_JOB})"),
                decimals=3,
                no_value="not yet",
            ),
            number(
                "Rules",
                "Number of rules in the table that the search is improving.",
                "none",
                Query(f"max(remy_farm_job_rules{_JOB})"),
            ),
            number(
                "Epoch",
                "The current epoch, from 0.",
                "none",
                Query(f"max(remy_farm_job_epoch{_JOB})"),
            ),
            number(
                "Done",
                "Completed share of a search of fixed length. Other searches end when they converge"
                " or when they are stopped.",
                "percentunit",
                Query(f"max(remy_farm_job_done_ratio{_JOB})"),
                no_value="open end",
            ),
            number(
                "Time left",
                "Estimate from the job's remaining budget and its current speed.",
                "s",
                Query(f"max(remy_farm_job_eta_seconds{_JOB})"),
                no_value="unknown",
            ),
            number(
                "CPU time",
                "Total CPU time of the job's evaluations.",
                "s",
                Query(f"max(remy_farm_job_cpu_seconds_total{_JOB})"),
            ),
            number(
                "Cost",
                "Cost of that CPU time, by the coordinator's price of a CPU-hour.",
                "short",
                Query(f"max(remy_farm_job_cost_total{_JOB})"),
                no_value="no price",
            ),
        ],
    )


def _search() -> Section:
    return Section(
        "Search",
        [
            score.score_over_cpu_hours(_JOB),
            score.score_over_time(_JOB),
            lines(
                "Rules and epochs",
                "Number of rules in the table, and the current epoch.",
                "none",
                Query(f"max(remy_farm_job_rules{_JOB})", "rules"),
                Query(f"max(remy_farm_job_epoch{_JOB})", "epoch"),
            ),
            lines(
                "Step",
                "Candidates of the current step, and those not yet evaluated. The count falls"
                " during each step; if it stops falling, workers are missing.",
                "short",
                Query(f"max(remy_farm_job_candidates_left{_JOB})", "candidates left"),
                Query(f"max(remy_farm_job_candidates{_JOB})", "candidates"),
            ),
        ],
    )


def _convergence() -> Section:
    return Section(
        "Convergence",
        [
            score.gain(_JOB, width=6),
            lines(
                "Errors of scores",
                "Standard errors of the published table's score on validation specimens, and of the"
                " last step's score on that step's specimens.",
                "none",
                Query(
                    f"max(remy_farm_job_validated_score_standard_error{_JOB})", "published table"
                ),
                Query(f"max(remy_farm_job_score_standard_error{_JOB})", "last step"),
                width=6,
            ),
            lines(
                "Epochs without gain",
                "Number of consecutive epochs without gain on validation specimens, up to the last"
                " one.",
                "none",
                Query(f"max(remy_farm_job_epochs_without_gain{_JOB})", "epochs without gain"),
                width=6,
            ),
            lines(
                "Steps",
                "Steps finished per minute.",
                "none",
                Query(f"60 * sum(deriv(remy_farm_job_step{_JOB}[5m]))", "steps a minute"),
                width=6,
            ),
        ],
    )
