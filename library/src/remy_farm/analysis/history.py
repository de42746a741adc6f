"""A design's history: what its plots and reports show of it, and its epochs or steps as a table."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

from google.protobuf.message import Message

from remy_farm.analysis.wording import enum_name
from remy_farm.files import FileError
from remy_proto.v1 import job_pb2, progress_pb2


@dataclass(frozen=True, slots=True)
class StepPoint:
    """The score, before a step, of the table that it tried to improve."""

    step: int
    visit: int
    """Steps of one visit to a rule share their specimens; visits are counted from 0."""
    score: float
    standard_error: float


@dataclass(frozen=True, slots=True)
class SizePoint:
    """A table's number of rules since a rule was divided, or rules were merged."""

    step: int
    rules: int


@dataclass(slots=True)
class History:
    """A design from its first step to its last, by increasing step."""

    steps: list[StepPoint] = field(default_factory=list)
    epochs: list[progress_pb2.EpochRecord] = field(default_factory=list)
    splits: list[SizePoint] = field(default_factory=list)
    rests: list[tuple[int, int]] = field(default_factory=list)
    """(step at which the climb was found at rest, steps that nothing had moved for)"""
    merges: list[SizePoint] = field(default_factory=list)
    cpu_seconds: list[tuple[int, float]] = field(default_factory=list)
    """(step, CPU-seconds used when it was over), where a clock was read."""
    wall_seconds: float | None = None
    simulated_packets: int = 0
    evaluations: int = 0
    """Simulations of one specimen under one candidate."""
    finished: progress_pb2.DesignFinished | None = None


def collect_history(events: Iterable[progress_pb2.ProgressEvent]) -> History:
    """Sorts the events of a design, in their order, into a history."""
    history = History()
    visit = -1
    was_improving = False
    for event in events:
        if event.HasField("wall_seconds"):
            history.wall_seconds = event.wall_seconds
        match event.WhichOneof("event"):
            case "step_finished":
                done = event.step_finished
                history.simulated_packets += done.simulated_packets
                history.evaluations += done.candidates * done.specimens
                if event.HasField("cpu_seconds"):
                    history.cpu_seconds.append((event.step, event.cpu_seconds))
                is_improving = done.purpose == progress_pb2.STEP_PURPOSE_IMPROVE
                if is_improving:
                    visit += not was_improving
                    if done.HasField("score"):
                        score, error = done.score.mean, done.score.standard_error
                        history.steps.append(StepPoint(event.step, visit, score, error))
                was_improving = is_improving
            case "rule_split":
                history.splits.append(SizePoint(event.step, event.rule_split.rules))
            case "climb_rested":
                history.rests.append((event.step, event.climb_rested.steps))
            case "rules_merged":
                history.merges.append(SizePoint(event.step, event.rules_merged.rules))
            case "epoch_finished":
                history.epochs.append(event.epoch_finished.record)
            case "design_finished":
                history.finished = event.design_finished
    return history


Value = str | int | float | bool | None
Row = Mapping[str, Value]
Columns = Mapping[str, tuple[type, Callable[[Any], Value]]]
"""By name: the type of its values, and what fills it of an entry, None where that is not known."""


def _known(message: Message | None, field: str) -> Any:
    """The field, if it and the message are there."""
    return getattr(message, field) if message is not None and message.HasField(field) else None


def _estimate(name: str, of: Callable[[Any], Message | None]) -> Columns:
    """Its mean and standard error, as far as they are known."""
    return {
        name: (float, lambda entry: getattr(of(entry), "mean", None)),
        f"{name}_standard_error": (float, lambda entry: _known(of(entry), "standard_error")),
    }


def _end_score(epoch: job_pb2.JobEpoch) -> Any:
    """That of the table with which the epoch ended."""
    compared = epoch.record.comparison
    return _known(compared, "after" if compared.accepted else "before")


def _measured(name: str) -> Columns:
    """Of the table that the epoch came to, kept or not."""
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
    """A row for each epoch, by EPOCH_COLUMNS; the score is that of the table it ended with."""
    return [_row(EPOCH_COLUMNS, epoch) for epoch in epochs]


def step_rows(events: Iterable[job_pb2.JobEvent]) -> list[Row]:
    """A row for each step, by STEP_COLUMNS."""
    steps = (event for event in events if event.progress.HasField("step_finished"))
    return [_row(STEP_COLUMNS, step) for step in steps]


def _row(columns: Columns, entry: Message) -> Row:
    return {name: value(entry) for name, (_, value) in columns.items()}


def to_csv(columns: Columns, rows: Sequence[Row]) -> bytes:
    """A line of names and one for each row; what is not known is empty."""
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, list(columns), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode()


def to_json(_: Columns, rows: Sequence[Row]) -> bytes:
    """A list of objects; what is not known is null."""
    return (json.dumps(list(rows), indent=2, allow_nan=False) + "\n").encode()


def to_parquet(columns: Columns, rows: Sequence[Row]) -> bytes:
    """A Parquet file with typed columns; what is not known is null. Raises FileError."""
    try:
        # Large, and needed for nothing else.
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise FileError(
            "Parquet needs pyarrow, which is not installed: pip install 'remy-farm[parquet]', or"
            " choose a name that ends in .csv or .json"
        ) from error
    types = {
        int: pyarrow.int64(),
        float: pyarrow.float64(),
        bool: pyarrow.bool_(),
        str: pyarrow.string(),
    }
    schema = pyarrow.schema([(name, types[kind]) for name, (kind, _) in columns.items()])
    table = pyarrow.Table.from_pylist(list(rows), schema=schema)
    buffer = io.BytesIO()
    pyarrow.parquet.write_table(table, buffer)
    return buffer.getvalue()


#: By how the file's name ends.
FORMATS: Mapping[str, Callable[[Columns, Sequence[Row]], bytes]] = {
    ".csv": to_csv,
    ".json": to_json,
    ".parquet": to_parquet,
}
