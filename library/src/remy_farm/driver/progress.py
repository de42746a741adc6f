"""Progress: what a run shows, and its events as lines of JSON, through crashes and resumes."""

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
    """Is called in the thread that called `DesignRun.run`, and should return at once. This one
    shows nothing."""

    def started(self, steps: int, *, resumed: bool) -> None:
        """Before the first step of this run: how many earlier runs have made, and whether there was
        a checkpoint to resume from."""

    def progress(self, progress: progress_pb2.JobProgress) -> None:
        """Some ten times a second while a step is evaluated. As far as it is known here, and of the
        running step: `step` is its number, from 1, and packets are those of its simulations."""

    def event(self, event: progress_pb2.ProgressEvent) -> None:
        """The line was added to progress.jsonl; its checkpoint may not have been written yet."""

    def published(self, table: RuleTable, steps: int) -> None:
        """From now on `table` is the one to publish, `steps` steps after the design began; told at
        a run's first event and whenever it changes."""


def to_line(event: progress_pb2.ProgressEvent) -> str:
    """One line, with the newline: fields by name, in the order of their declaration.

    Numbers are numbers, also those of 64 bits; zeros are written; what is absent is left out.
    """
    return json.dumps(_tree(event), allow_nan=False) + "\n"


def from_line(line: str | bytes) -> progress_pb2.ProgressEvent:
    """The inverse. Raises ValueError."""
    tree = json.loads(line)
    if not isinstance(tree, dict):
        raise ValueError("an event is a JSON object")
    try:
        return json_format.ParseDict(tree, progress_pb2.ProgressEvent())
    except json_format.ParseError as error:
        raise ValueError(str(error)) from error


def _tree(message: Message) -> dict[str, Any]:
    told = (field for field in fields_of(message) if not is_unset(message, field))
    return {field.name: convert_value(message, field, _value) for field in told}


def _value(field: Any, value: Any) -> Any:
    if field.message_type is not None:
        return _tree(value)
    if field.enum_type is not None:
        return field.enum_type.values_by_number[value].name
    return value


class ProgressLog:
    """The file, open behind the last line that the design's checkpoint knows of."""

    def __init__(self, path: Path, sequence: int) -> None:
        """Opens the file (a new one if there is none) and drops its lines above event `sequence`.

        What was written after the checkpoint that a design resumes from will be written again.
        Raises FileError.
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
        """Adds lines. They are safe after `sync`. Raises FileError."""
        data = "".join(to_line(event) for event in events).encode()
        try:
            while data:
                data = data[os.write(self._descriptor, data) :]
        except OSError as error:
            raise self._failure(error) from error

    def sync(self) -> None:
        """Forces all lines to the disk. Raises FileError."""
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
    """The events of a progress.jsonl, in order. Raises FileError."""
    return (event for event, _ in _events(path))


def elapsed_up_to(path: Path, sequence: int) -> Elapsed:
    """The time used up to event `sequence` of a progress.jsonl. Raises FileError."""
    return _lines_up_to(path, sequence)[1]


def _lines_up_to(path: Path, sequence: int) -> tuple[int, Elapsed]:
    """Size in bytes of the file up to event `sequence`, and the time used up to it.

    A file that is missing or empty is a fresh start: somebody has taken the lines away.
    """
    if sequence == 0 or not path.exists() or path.stat().st_size == 0:
        return 0, Elapsed()
    for event, end in _events(path):
        if event.sequence == sequence:
            return end, Elapsed(event.wall_seconds, event.cpu_seconds)
    raise FileError(
        f"{path} ends before event {sequence}, where the checkpoint is; restore the file, or "
        f"remove it to go on without its lines"
    )


def _events(path: Path) -> Iterator[tuple[progress_pb2.ProgressEvent, int]]:
    """Each line's event, and the position behind it."""
    try:
        with path.open("rb") as file:
            for number, line in enumerate(iter(file.readline, b""), start=1):
                try:
                    yield from_line(line), file.tell()
                except ValueError as error:
                    raise FileError(f"{path}: line {number} is not a progress event") from error
    except OSError as error:
        raise FileError(f"{path}: cannot be read ({reason(error)})") from error
