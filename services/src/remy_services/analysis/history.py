"""A design's history: what its plots and reports show of it, and its epochs or steps as a table."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from remy_farm.v1 import job_pb2, progress_pb2
from remy_services.analysis.wording import enum_name
from remy_services.files import FileError


@dataclass(frozen=True, slots=True)
class StepPoint:
    """The score, before a step, of the table that it tried to improve."""

    step: int
    visit: int
    """Steps of one visit to a rule share their specimens; visits are counted from 0."""
    score: float
    standard_error: float


@dataclass(frozen=True, slots=True)
class SplitPoint:
    """A rule was divided."""

    step: int
    rules: int


@dataclass(slots=True)
class History:
    """A design from its first step to its last, by increasing step."""

    steps: list[StepPoint] = field(default_factory=list)
    epochs: list[progress_pb2.EpochRecord] = field(default_factory=list)
    splits: list[SplitPoint] = field(default_factory=list)
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
                history.splits.append(SplitPoint(event.step, event.rule_split.rules))
            case "epoch_finished":
                history.epochs.append(event.epoch_finished.record)
            case "design_finished":
                history.finished = event.design_finished
    return history


Value = str | int | float | bool | None
Row = Mapping[str, Value]
Columns = Mapping[str, type]

_ESTIMATES = {
    "score": float,
    "score_standard_error": float,
    "gain": float,
    "gain_standard_error": float,
}
EPOCH_COLUMNS: Columns = {
    "epoch": int,
    "time": str,
    "step": int,
    "rules": int,
    "rules_changed": int,
    **_ESTIMATES,
    "accepted": bool,
    "evaluations": int,
    "simulated_packets": int,
    "cpu_seconds": float,
}
STEP_COLUMNS: Columns = {
    "revision": int,
    "time": str,
    "step": int,
    "epoch": int,
    "purpose": str,
    "rules": int,
    "candidates": int,
    "specimens": int,
    **_ESTIMATES,
    "simulated_packets": int,
    "cpu_seconds": float,
    "wall_seconds": float,
}


def epoch_rows(epochs: Iterable[job_pb2.JobEpoch]) -> list[Row]:
    """A row for each epoch, by EPOCH_COLUMNS; the score is that of the table it ended with."""
    return [_epoch_row(epoch) for epoch in epochs]


def step_rows(events: Iterable[job_pb2.JobEvent]) -> list[Row]:
    """A row for each step, by STEP_COLUMNS."""
    return [_step_row(event) for event in events if event.progress.HasField("step_finished")]


def _epoch_row(epoch: job_pb2.JobEpoch) -> Row:
    record, compared = epoch.record, epoch.record.comparison
    values: Sequence[Value] = (
        record.epoch,
        epoch.time.ToJsonString(),
        record.step,
        record.rules,
        record.rules_changed,
        *_estimate(compared, "after" if compared.accepted else "before"),
        *_estimate(compared, "gain"),
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
        *_estimate(done, "score"),
        *_estimate(done, "gain"),
        done.simulated_packets,
        progress.cpu_seconds if progress.HasField("cpu_seconds") else None,
        progress.wall_seconds if progress.HasField("wall_seconds") else None,
    )
    return dict(zip(STEP_COLUMNS, values, strict=True))


def _estimate(
    message: progress_pb2.Comparison | progress_pb2.StepFinished, field: str
) -> tuple[float | None, float | None]:
    """Mean and standard error, as far as they are known."""
    if not message.HasField(field):
        return None, None
    estimate = getattr(message, field)
    return estimate.mean, estimate.standard_error if estimate.HasField("standard_error") else None


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
    schema = pyarrow.schema([(name, types[kind]) for name, kind in columns.items()])
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
