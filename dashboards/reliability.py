"""What would hurt: checkpoints, leases, the store, errors."""

from __future__ import annotations

from grafana_foundation_sdk.models import dashboard as models

from dashboards import serving, tasks
from dashboards.board import Section, board
from dashboards.parts import Query, lines, number
from dashboards.queries import JOB_LEGEND, age_of, by_job, happened, quantiles

UID = "remy-farm-reliability"

_OK_IF_ZERO = ((None, "green"), (1, "red"))
_OK_IF_ONE = ((None, "red"), (1, "green"))

_CHECKPOINT_AGE = (
    f"{age_of(by_job('remy_farm_job_last_checkpoint_timestamp_seconds'))}"
    ' and on (job_id) remy_farm_job_state{state=~"RUNNING|PAUSING|CANCELLING"}'
)
_FAILED_CHECKPOINTS = 'remy_farm_checkpoint_failures_total{reason!="conflict"}'


def reliability() -> models.Dashboard:
    """The dashboard."""
    return board(
        UID,
        "Reliability",
        "Whether work is safe: checkpoints, leases, the store, errors, the coordinator itself.",
        [
            _now(),
            _checkpoints(),
            tasks.leases(),
            serving.store(),
            serving.calls(),
            serving.process(),
        ],
    )


def _now() -> Section:
    return Section(
        "Now",
        [
            number(
                "Store durable",
                "1 if acknowledged commits survive the loss of the store.",
                "none",
                Query("min(remy_farm_store_durable)"),
                thresholds=_OK_IF_ONE,
                no_value="no coordinator",
            ),
            number(
                "Store available",
                "1 if the store took the last thing that was asked of it.",
                "none",
                Query("min(remy_farm_store_available)"),
                thresholds=_OK_IF_ONE,
                no_value="no coordinator",
            ),
            number(
                "Oldest checkpoint",
                "Age of the oldest last checkpoint of a running job.",
                "s",
                Query(f"max({_CHECKPOINT_AGE})"),
                thresholds=((None, "green"), (1800, "red")),
                no_value="no job runs",
            ),
            number(
                "Fencing conflicts",
                "Operations refused in the last day because another coordinator has the job.",
                "none",
                Query(happened("remy_farm_fencing_conflicts_total", window="1d")),
                thresholds=_OK_IF_ZERO,
            ),
            number(
                "Workers quarantined",
                "Workers that get no tasks because their results were wrong.",
                "none",
                Query("sum(remy_farm_workers_quarantined)"),
                thresholds=_OK_IF_ZERO,
            ),
            number(
                "Tasks quarantined",
                "Tasks given up in the last day because they kept ending their workers.",
                "none",
                Query(happened("remy_farm_tasks_quarantined_total", window="1d")),
                thresholds=_OK_IF_ZERO,
            ),
            number(
                "Certificate ends in",
                "The first of the certificates in use. None without TLS.",
                "s",
                Query("min(remy_farm_certificate_expiry_timestamp_seconds) - time()"),
                thresholds=((None, "red"), (172800, "orange"), (1209600, "green")),
                no_value="no TLS",
            ),
            number(
                "Failed jobs",
                "Jobs that cannot go on.",
                "none",
                Query('sum(remy_farm_jobs{state="FAILED"})'),
                thresholds=_OK_IF_ZERO,
            ),
            number(
                "Database",
                "The database that keeps jobs, and its version.",
                "none",
                Query("max by (kind, version) (remy_farm_store_info)", "{{kind}} {{version}}"),
                width=6,
                text_is_name=True,
                no_value="no coordinator",
            ),
            number(
                "Version",
                "Its version, and that of its simulator. Two are there while one takes over.",
                "none",
                Query(
                    "max by (version, simulator_version) (remy_farm_build_info)",
                    "{{version}}, simulator {{simulator_version}}",
                ),
                width=6,
                text_is_name=True,
                no_value="no coordinator",
            ),
            number(
                "Recoveries in a day",
                "How often jobs went on after their coordinator had ended unexpectedly.",
                "none",
                Query(happened("remy_farm_job_recoveries_total", window="1d")),
                width=6,
            ),
            number(
                "Failed checkpoints in a day",
                "Commits with a snapshot that failed, but for those that turned out to be made.",
                "none",
                Query(happened(_FAILED_CHECKPOINTS, window="1d")),
                width=6,
            ),
        ],
    )


def _checkpoints() -> Section:
    return Section(
        "Checkpoints",
        [
            lines(
                "Age of checkpoints",
                "Of every running job: what would be lost, at most, if the coordinator ended now.",
                "s",
                Query(_CHECKPOINT_AGE, JOB_LEGEND),
                width=6,
                no_value="no job runs",
            ),
            lines(
                "Duration",
                "From the call to the durable answer.",
                "s",
                *quantiles("remy_farm_checkpoint_duration_seconds"),
                width=6,
            ),
            lines(
                "Size",
                "Last snapshot of every job, and the 99th percentile of all.",
                "bytes",
                Query(by_job("remy_farm_job_checkpoint_bytes"), JOB_LEGEND),
                quantiles("remy_farm_checkpoint_size_bytes")[-1],
                width=6,
            ),
            lines(
                "Failures",
                "Commits with a snapshot that failed, by reason. A conflict is an answer that was"
                " lost: the commit had been made.",
                "none",
                Query(
                    happened("remy_farm_checkpoint_failures_total", "reason"),
                    "{{reason}}",
                ),
                width=6,
                colored=["fenced", "conflict", "unavailable", "other"],
            ),
        ],
    )
