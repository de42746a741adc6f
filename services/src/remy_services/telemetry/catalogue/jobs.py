"""Metrics of jobs.

Those of one job are labelled with its id and its name. They are there while the job is, and for
finished jobs while they are among the newest.
"""

from __future__ import annotations

from remy_services.telemetry.catalogue.metric import Metric, counter, gauge

_JOB = ("job_id", "job_name")

JOBS = gauge("jobs", "Jobs by state.", "state")

JOB_INFO = gauge(
    "job_info",
    "Always 1: what is fixed about a job. `fork_of` is the id of the job that it began from.",
    *_JOB,
    "owner",
    "campaign",
    "strategy",
    "fork_of",
)
JOB_STATE = gauge("job_state", "Always 1: the state that the job is in.", *_JOB, "state")
JOB_PRIORITY = gauge("job_priority", "Jobs of higher priority run first.", *_JOB)
JOB_SCORE = gauge(
    "job_score", "Score of the table being worked on, in units of the job's objective.", *_JOB
)
JOB_SCORE_STANDARD_ERROR = gauge(
    "job_score_standard_error", "Standard error of that score, over specimens.", *_JOB
)
JOB_EPOCH_GAIN = gauge(
    "job_epoch_gain", "What the last epoch gained on fresh specimens, in units of score.", *_JOB
)
JOB_EPOCH_GAIN_STANDARD_ERROR = gauge(
    "job_epoch_gain_standard_error", "Standard error of that gain.", *_JOB
)
JOB_EPOCHS_WITHOUT_GAIN = gauge(
    "job_epochs_without_gain", "Epochs in a row, up to the last, that brought no gain.", *_JOB
)
JOB_EPOCH = gauge("job_epoch", "The running epoch, from 0.", *_JOB)
JOB_STEP = gauge("job_step", "Steps made since the job began.", *_JOB)
JOB_RULES = gauge("job_rules", "Rules of the table being worked on.", *_JOB)
JOB_CANDIDATES = gauge("job_candidates", "Candidates of the running step.", *_JOB)
JOB_CANDIDATES_LEFT = gauge(
    "job_candidates_left", "Candidates of the running step that are not done.", *_JOB
)
JOB_DONE_RATIO = gauge(
    "job_done_ratio", "How much of a search of fixed length is done, from 0 to 1.", *_JOB
)
JOB_ETA_SECONDS = gauge("job_eta_seconds", "A guess at the time left.", *_JOB)
JOB_WORKERS = gauge(
    "job_workers", "Workers that evaluated something for the job in the last minute or so.", *_JOB
)
JOB_CPU_SECONDS = counter(
    "job_cpu_seconds_total", "CPU time of the job's evaluations since it began.", *_JOB
)
JOB_RUN_SECONDS = counter("job_run_seconds_total", "Time that the job has run for.", *_JOB)
JOB_COST = counter(
    "job_cost_total",
    "CPU time by the coordinator's price of a CPU-hour, in the currency of that price.",
    *_JOB,
)
JOB_EVALUATIONS = counter(
    "job_evaluations_total",
    "Simulations of one specimen under one candidate since the job began.",
    *_JOB,
)
JOB_SIMULATED_PACKETS = counter(
    "job_simulated_packets_total", "Packets sent in these simulations.", *_JOB
)
JOB_RECOVERIES = counter(
    "job_recoveries_total",
    "How often the job went on after its coordinator had ended unexpectedly.",
    *_JOB,
)
JOB_LAST_EVALUATION = gauge(
    "job_last_evaluation_timestamp_seconds",
    "Unix time of the last result of the job's evaluations; before the first, of its request.",
    *_JOB,
)
JOB_LAST_CHECKPOINT = gauge(
    "job_last_checkpoint_timestamp_seconds",
    "Unix time of the job's last durable checkpoint; before the first, of when the job was taken.",
    *_JOB,
)
JOB_CHECKPOINT_BYTES = gauge("job_checkpoint_bytes", "Size of the job's last checkpoint.", *_JOB)

METRICS: tuple[Metric, ...] = (
    JOBS,
    JOB_INFO,
    JOB_STATE,
    JOB_PRIORITY,
    JOB_SCORE,
    JOB_SCORE_STANDARD_ERROR,
    JOB_EPOCH_GAIN,
    JOB_EPOCH_GAIN_STANDARD_ERROR,
    JOB_EPOCHS_WITHOUT_GAIN,
    JOB_EPOCH,
    JOB_STEP,
    JOB_RULES,
    JOB_CANDIDATES,
    JOB_CANDIDATES_LEFT,
    JOB_DONE_RATIO,
    JOB_ETA_SECONDS,
    JOB_WORKERS,
    JOB_CPU_SECONDS,
    JOB_RUN_SECONDS,
    JOB_COST,
    JOB_EVALUATIONS,
    JOB_SIMULATED_PACKETS,
    JOB_RECOVERIES,
    JOB_LAST_EVALUATION,
    JOB_LAST_CHECKPOINT,
    JOB_CHECKPOINT_BYTES,
)
