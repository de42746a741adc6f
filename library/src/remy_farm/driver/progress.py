"""Reports a run's progress to an observer, and writes its events to progress.jsonl."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from google.protobuf import json_format
from google.protobuf.message import Message

from remy_farm.designer.budgets import Elapsed
from remy_farm.files import FileError, reason
from remy_farm.specification.schema import convert_value, fields_of, is_unset
from remy_proto.v1 import progress_pb2
from remy_simulator import RuleTable


class DesignObserver:
    """Base class of observers of a run; its methods do nothing.

    Methods are called in the thread that called `DesignRun.run`, and should return at once.
    """

    def started(self, steps: int, *, resumed: bool) -> None:
        """Is called before the first step of this run.

        Args:
            steps: Number of steps that earlier runs have made.
            resumed: Whether the run continues from a checkpoint.
        """

    def progress(self, progress: progress_pb2.JobProgress) -> None:
        """Is called about ten times a second while a step is evaluated.

        `progress` describes the running step: `step` is its number, from 1, and
        `simulated_packets` counts its packets only. Fields that a run does not know are absent.
        """

    def event(self, event: progress_pb2.ProgressEvent) -> None:
        """Is called after an event was added to progress.jsonl, possibly before its checkpoint."""

    def published(self, table: RuleTable, steps: int) -> None:
        """Is called at a run's first event, and whenever the table to publish changes.

        `steps` is the number of steps since the design began.
        """


def to_line(event: progress_pb2.ProgressEvent) -> str:
    """Returns an event as a line of JSON, with fields by name in the order of their declaration.

    Integers of 64 bits are written as numbers. Zeros are written; absent fields are left out.
    """
    return json.dumps(_to_dict(event), allow_nan=False) + "\n"


def from_line(line: str | bytes) -> progress_pb2.ProgressEvent:
    """Reads what `to_line` wrote. Raises ValueError."""
    tree = json.loads(line)
    if not isinstance(tree, dict):
        raise ValueError("an event is a JSON object")
    try:
        return json_format.ParseDict(tree, progress_pb2.ProgressEvent())
    except json_format.ParseError as error:
        raise ValueError(str(error)) from error


def _to_dict(message: Message) -> dict[str, Any]:
    present = (field for field in fields_of(message) if not is_unset(message, field))
    return {field.name: convert_value(message, field, _value) for field in present}


def _value(field: Any, value: Any) -> Any:
    if field.message_type is not None:
        return _to_dict(value)
    if field.enum_type is not None:
        return field.enum_type.values_by_number[value].name
    return value


class ProgressLog:
    """The file progress.jsonl of a running design, open for appending."""

    def __init__(self, path: Path, sequence: int) -> None:
        """Opens or creates the file, and removes its lines after event `sequence`.

        `sequence` is the last event of the checkpoint that the design resumes from; later events
        will be written again. Raises FileError.
        """
        self._path = path
        size, self.elapsed = _lines_up_to(path, sequence)
        try:
            if path.exists() and path.stat().st_size > size:
                os.truncate(path, size)
            self._descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
        except OSError as error:
            raise self._failure(error) from error

    def append(self, events: Iterable[progress_pb2.ProgressEvent]) -> None:
        """Appends events. They are durable only after `sync`. Raises FileError."""
        data = "".join(to_line(event) for event in events).encode()
        try:
            while data:
                data = data[os.write(self._descriptor, data) :]
        except OSError as error:
            raise self._failure(error) from error

    def sync(self) -> None:
        """Flushes all lines to the disk. Raises FileError."""
        try:
            os.fsync(self._descriptor)
        except OSError as error:
            raise self._failure(error) from error

    def close(self) -> None:
        """Closes the file."""
        os.close(self._descriptor)

    def _failure(self, error: OSError) -> FileError:
        return FileError(f"{self._path}: cannot be written ({reason(error)})")


def read_events(path: Path) -> Iterator[progress_pb2.ProgressEvent]:
    """Yields the events of a progress.jsonl, in order. Raises FileError."""
    return (event for event, _ in _events(path))


def elapsed_up_to(path: Path, sequence: int) -> Elapsed:
    """Returns the time used up to event `sequence` of a progress.jsonl. Raises FileError."""
    return _lines_up_to(path, sequence)[1]


def _lines_up_to(path: Path, sequence: int) -> tuple[int, Elapsed]:
    """Returns the size in bytes of the file up to event `sequence`, and the time used up to it.

    Returns zeros for a missing or empty file, which the user may have deleted.
    """
    if sequence == 0 or not path.exists() or path.stat().st_size == 0:
        return 0, Elapsed()
    for event, end in _events(path):
        if event.sequence == sequence:
            return end, Elapsed(event.wall_seconds, event.cpu_seconds)
    raise FileError(
        f"{path} ends before event {sequence}, the last one of the checkpoint; restore the file, "
        f"or remove it to continue without its events"
    )


def _events(path: Path) -> Iterator[tuple[progress_pb2.ProgressEvent, int]]:
    """Yields the event of each line, and the file position after it."""
    try:
        with path.open("rb") as file:
            for number, line in enumerate(iter(file.readline, b""), start=1):
                try:
                    yield from_line(line), file.tell()
                except ValueError as error:
                    raise FileError(f"{path}: line {number} is not a progress event") from error
    except OSError as error:
        raise FileError(f"{path}: cannot be read ({reason(error)})") from error
