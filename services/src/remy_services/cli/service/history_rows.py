"""A job's progress history as rows. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from remy_farm.v1 import job_pb2, progress_pb2
from remy_services.cli.service.message_tree import enum_name

Value = str | int | float | bool | None
Row = Mapping[str, Value]

EPOCH_COLUMNS: Mapping[str, type] = {
    "epoch": int,
    "time": str,
    "step": int,
    "rules": int,
    "rules_changed": int,
    "score": float,
    "score_standard_error": float,
    "gain": float,
    "gain_standard_error": float,
    "accepted": bool,
    "evaluations": int,
    "simulated_packets": int,
    "cpu_seconds": float,
}
STEP_COLUMNS: Mapping[str, type] = {
    "revision": int,
    "time": str,
    "step": int,
    "epoch": int,
    "purpose": str,
    "rules": int,
    "candidates": int,
    "specimens": int,
    "score": float,
    "score_standard_error": float,
    "gain": float,
    "gain_standard_error": float,
    "simulated_packets": int,
    "cpu_seconds": float,
    "wall_seconds": float,
}


def epoch_rows(epochs: Iterable[job_pb2.JobEpoch]) -> list[Row]:
    """A row for each epoch, by EPOCH_COLUMNS; the score is that of the table it ended with."""
    return [_epoch_row(epoch) for epoch in epochs]


def step_rows(events: Iterable[job_pb2.JobEvent]) -> list[Row]:
    """A row for each step, by STEP_COLUMNS."""
    return [
        _step_row(event)
        for event in events
        if event.progress.WhichOneof("event") == "step_finished"
    ]


def _epoch_row(epoch: job_pb2.JobEpoch) -> Row:
    record, compared = epoch.record, epoch.record.comparison
    score = compared.after if compared.accepted else compared.before
    has_score = compared.HasField("after" if compared.accepted else "before")
    has_gain = compared.HasField("gain")
    values: Sequence[Value] = (
        record.epoch,
        epoch.time.ToJsonString(),
        record.step,
        record.rules,
        record.rules_changed,
        *_estimate(score if has_score else None),
        *_estimate(compared.gain if has_gain else None),
        compared.accepted if record.HasField("comparison") else None,
        record.evaluations,
        record.simulated_packets,
        epoch.cpu_seconds,
    )
    return dict(zip(EPOCH_COLUMNS, values, strict=True))


def _step_row(event: job_pb2.JobEvent) -> Row:
    progress, done = event.progress, event.progress.step_finished
    values: Sequence[Value] = (
        event.revision,
        event.time.ToJsonString(),
        progress.step,
        progress.epoch,
        enum_name(progress_pb2.StepPurpose.DESCRIPTOR, done.purpose),
        done.rules,
        done.candidates,
        done.specimens,
        *_estimate(done.score if done.HasField("score") else None),
        *_estimate(done.gain if done.HasField("gain") else None),
        done.simulated_packets,
        progress.cpu_seconds if progress.HasField("cpu_seconds") else None,
        progress.wall_seconds if progress.HasField("wall_seconds") else None,
    )
    return dict(zip(STEP_COLUMNS, values, strict=True))


def _estimate(estimate: progress_pb2.Estimate | None) -> tuple[float | None, float | None]:
    if estimate is None:
        return None, None
    error = estimate.standard_error if estimate.HasField("standard_error") else None
    return estimate.mean, error
