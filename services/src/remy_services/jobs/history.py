"""Tables of a job's epochs and steps, for the `history` command, the web page and exports."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import Any

from google.protobuf.message import Message

from remy_farm.analysis.rows import Columns, Row
from remy_farm.analysis.wording import enum_name
from remy_proto.v1 import job_pb2, progress_pb2


def _known(message: Message | None, field: str) -> Any:
    """Returns a field's value, or None if the message or the field is absent."""
    return getattr(message, field) if message is not None and message.HasField(field) else None


def _estimate(name: str, of: Callable[[Any], Message | None]) -> Columns:
    """Columns for the mean and standard error of an estimate; empty cells where unknown."""
    return {
        name: (float, lambda entry: getattr(of(entry), "mean", None)),
        f"{name}_standard_error": (float, lambda entry: _known(of(entry), "standard_error")),
    }


def _end_score(epoch: job_pb2.JobEpoch) -> Any:
    """Returns the score of the table with which the epoch ended."""
    compared = epoch.record.comparison
    return _known(compared, "after" if compared.accepted else "before")


def _measured(name: str) -> Columns:
    """Column for a measurement of the epoch's new table, even if the table was rolled back."""
    return {name: (float, lambda epoch: _known(_known(epoch, "measured"), name))}


def _purpose(event: job_pb2.JobEvent) -> str | None:
    kind = progress_pb2.StepPurpose.DESCRIPTOR
    return enum_name(kind, event.progress.step_finished.purpose)


EPOCH_COLUMNS: Columns = {
    "epoch": (int, attrgetter("record.epoch")),
    "time": (str, lambda epoch: epoch.time.ToJsonString()),
    "step": (int, attrgetter("record.step")),
    "rules": (int, attrgetter("record.rules")),
    "rules_changed": (int, attrgetter("record.rules_changed")),
    **_estimate("score", _end_score),
    **_estimate("gain", lambda epoch: _known(epoch.record.comparison, "gain")),
    "accepted": (bool, lambda epoch: getattr(_known(epoch.record, "comparison"), "accepted", None)),
    **_measured("throughput_over_link_rate_median"),
    **_measured("delay_over_rtt_median"),
    **_measured("loss_mean"),
    "evaluations": (int, attrgetter("record.evaluations")),
    "simulated_packets": (int, attrgetter("record.simulated_packets")),
    "cpu_seconds": (float, attrgetter("cpu_seconds")),
}
STEP_COLUMNS: Columns = {
    "revision": (int, attrgetter("revision")),
    "time": (str, lambda event: event.time.ToJsonString()),
    "step": (int, attrgetter("progress.step")),
    "epoch": (int, attrgetter("progress.epoch")),
    "purpose": (str, _purpose),
    "rules": (int, attrgetter("progress.step_finished.rules")),
    "candidates": (int, attrgetter("progress.step_finished.candidates")),
    "specimens": (int, attrgetter("progress.step_finished.specimens")),
    **_estimate("score", lambda event: _known(event.progress.step_finished, "score")),
    **_estimate("gain", lambda event: _known(event.progress.step_finished, "gain")),
    "simulated_packets": (int, attrgetter("progress.step_finished.simulated_packets")),
    "cpu_seconds": (float, lambda event: _known(event.progress, "cpu_seconds")),
    "wall_seconds": (float, lambda event: _known(event.progress, "wall_seconds")),
}


def epoch_rows(epochs: Iterable[job_pb2.JobEpoch]) -> list[Row]:
    """Returns a row with EPOCH_COLUMNS for each epoch. Scores are of the table at its end."""
    return [_row(EPOCH_COLUMNS, epoch) for epoch in epochs]


def step_rows(events: Iterable[job_pb2.JobEvent]) -> list[Row]:
    """Returns a row with STEP_COLUMNS for each step."""
    steps = (event for event in events if event.progress.HasField("step_finished"))
    return [_row(STEP_COLUMNS, step) for step in steps]


def _row(columns: Columns, entry: Message) -> Row:
    return {name: value(entry) for name, (_, value) in columns.items()}
