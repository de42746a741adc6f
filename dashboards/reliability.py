"""The dashboard about reliability: checkpoints, leases, the store and errors."""

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
        "Whether work is safe: checkpoints, leases, the store, errors and the coordinator.",
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
                "1 if the last operation on the store succeeded.",
                "none",
                Query("min(remy_farm_store_available)"),
                thresholds=_OK_IF_ONE,
                no_value="no coordinator",
            ),
            number(
                "Oldest checkpoint",
                "Age of the last checkpoint of the running job whose checkpoint is oldest.",
                "s",
                Query(f"max({_CHECKPOINT_AGE})"),
                thresholds=((None, "green"), (1800, "red")),
                no_value="no job runs",
            ),
            number(
                "Fencing conflicts",
                "Operations rejected in the last day because another coordinator has taken over"
                " the job.",
                "none",
                Query(happened("remy_farm_fencing_conflicts_total", window="1d")),
                thresholds=_OK_IF_ZERO,
            ),
            number(
                "Workers quarantined",
                "Workers that are assigned no tasks because their results were wrong.",
                "none",
                Query("sum(remy_farm_workers_quarantined)"),
                thresholds=_OK_IF_ZERO,
            ),
            number(
                "Tasks quarantined",
                "Tasks given up in the last day because they repeatedly crashed their workers.",
                "none",
                Query(happened("remy_farm_tasks_quarantined_total", window="1d")),
                thresholds=_OK_IF_ZERO,
            ),
            number(
                "Certificate expires in",
                "Time until the first certificate in use expires.",
                "s",
                Query("min(remy_farm_certificate_expiry_timestamp_seconds) - time()"),
                thresholds=((None, "red"), (172800, "orange"), (1209600, "green")),
                no_value="no TLS",
            ),
            number(
                "Failed jobs",
                "Jobs that stopped with an error.",
                "none",
                Query('sum(remy_farm_jobs{state="FAILED"})'),
                thresholds=_OK_IF_ZERO,
            ),
            number(
                "Database",
                "Kind and version of the database that stores jobs.",
                "none",
                Query("max by (kind, version) (remy_farm_store_info)", "{{kind}} {{version}}"),
                width=6,
                text_is_name=True,
                no_value="no coordinator",
            ),
            number(
                "Version",
                "Version of the coordinator and of its simulator. There are two while one"
                " coordinator replaces another.",
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
                "Jobs resumed in the last day after their coordinator ended unexpectedly.",
                "none",
                Query(happened("remy_farm_job_recoveries_total", window="1d")),
                width=6,
            ),
            number(
                "Failed checkpoints in a day",
                "Failed commits of snapshots, without those that turned out to have succeeded.",
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
                "For each running job, the most work that would be lost if the coordinator ended"
                " now.",
                "s",
                Query(_CHECKPOINT_AGE, JOB_LEGEND),
                width=6,
                no_value="no job runs",
            ),
            lines(
                "Duration",
                "Time from the call until the commit is durable.",
                "s",
                *quantiles("remy_farm_checkpoint_duration_seconds"),
                width=6,
            ),
            lines(
                "Size",
                "Size of each job's last snapshot, and the 99th percentile over all snapshots.",
                "bytes",
                Query(by_job("remy_farm_job_checkpoint_bytes"), JOB_LEGEND),
                quantiles("remy_farm_checkpoint_size_bytes")[-1],
                width=6,
            ),
            lines(
                "Failures",
                "Failed commits of snapshots, by reason. A conflict means that the commit had"
                " succeeded but its response was lost.",
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
