"""Writes and reads pareto.csv: throughput, delay and loss of each epoch's table.

Each epoch ends with a validation, whose outcome holds the results of every sender. The points of a
throughput-delay plot therefore need no further simulation.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path

import msgspec

from remy_farm.evaluation.measures import (
    by_specimen,
    mean,
    measure_packets,
    measure_senders,
    measure_specimen,
    median,
    present,
)
from remy_farm.files import FileError, read_file, write_file
from remy_proto.v1 import evaluation_pb2, progress_pb2

_MAX_BYTES = 64 << 20


@dataclass(frozen=True)
class ParetoPoint:
    """Throughput, delay and loss of one epoch's table on the validation specimens.

    Throughput and delay of a specimen are means over its senders that received packets. Medians and
    means are over specimens; None if no sender received packets on any specimen.
    """

    epoch: int
    step: int
    rules: int
    #: Equal-share throughput over the link rate.
    throughput_over_link_rate_median: float | None
    throughput_over_link_rate_mean: float | None
    #: Delay over the RTT without queueing and service.
    delay_over_rtt_median: float | None
    delay_over_rtt_mean: float | None
    #: The objective; None if no sender could be scored.
    score: float | None
    #: Whether the table beat the best one so far and replaced it.
    accepted: bool
    #: Packets lost over packets sent; None if no packet was sent, and in files of earlier versions.
    loss_mean: float | None = None


_COLUMNS = [field.name for field in fields(ParetoPoint)]
#: Columns of files that earlier versions wrote, of designs that a later one resumes.
_EARLIER_COLUMNS = [name for name in _COLUMNS if name != "loss_mean"]


def _measured(
    request: evaluation_pb2.EvaluationRequest, outcome: evaluation_pb2.EvaluationOutcome
) -> dict[str, float | None]:
    """Returns the measures of the request's last candidate, by name of the field."""
    measured = [
        measure_specimen(
            specimen,
            measure_senders(result),
            measure_packets(result, range(len(result.packets_sent))),
        )
        for specimen, result in by_specimen(request, outcome)
    ]
    throughputs = present(each.throughput_over_link_rate for each in measured)
    delays = present(each.delay_over_rtt for each in measured)
    return {
        "throughput_over_link_rate_median": median(throughputs),
        "throughput_over_link_rate_mean": mean(throughputs),
        "delay_over_rtt_median": median(delays),
        "delay_over_rtt_mean": mean(delays),
        "loss_mean": mean(present(each.loss for each in measured)),
    }


def throughput_delay(
    request: evaluation_pb2.EvaluationRequest, outcome: evaluation_pb2.EvaluationOutcome
) -> progress_pb2.ThroughputDelay:
    """Returns throughput, delay and loss of the request's last candidate, for an epoch of a job."""
    return progress_pb2.ThroughputDelay(**_measured(request, outcome))


def pareto_point(
    request: evaluation_pb2.EvaluationRequest,
    outcome: evaluation_pb2.EvaluationOutcome,
    record: progress_pb2.EpochRecord,
) -> ParetoPoint:
    """Returns the point of the epoch that ended with `outcome`.

    The epoch's table is the request's last candidate.
    """
    after = record.comparison.after
    return ParetoPoint(
        epoch=record.epoch,
        step=record.step,
        rules=record.rules,
        **_measured(request, outcome),
        score=after.mean if record.comparison.HasField("after") else None,
        accepted=record.comparison.accepted,
    )


class ParetoFile:
    """The file pareto.csv of a running design."""

    def __init__(self, path: Path, steps: int) -> None:
        """Reads the points of the first `steps` steps from the file, if it exists.

        Later points are dropped, because their steps will be made again. Raises FileError.
        """
        self._path = path
        points = read_points(path) if steps > 0 and path.exists() else []
        self._points = [point for point in points if point.step <= steps]
        self._is_saved = False

    def observe(
        self,
        request: evaluation_pb2.EvaluationRequest,
        outcome: evaluation_pb2.EvaluationOutcome,
        events: Sequence[progress_pb2.ProgressEvent],
    ) -> None:
        """Adds the point of an outcome if `events` contain the end of an epoch."""
        for event in events:
            if event.HasField("epoch_finished"):
                self._points.append(pareto_point(request, outcome, event.epoch_finished.record))
                self._is_saved = False

    def save(self) -> None:
        """Writes the file if it has changed. Raises FileError."""
        if not self._is_saved:
            write_file(self._path, to_csv(self._points))
            self._is_saved = True


def to_csv(points: Sequence[ParetoPoint]) -> str:
    """Returns the points as CSV: a header, then one line per point.

    None becomes an empty cell. Numbers have enough digits to be read back exactly.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for point in points:
        writer.writerow([_cell(value) for value in astuple(point)])
    return text.getvalue()


def read_points(path: Path) -> list[ParetoPoint]:
    """Reads the points in a file. Raises FileError."""
    text = read_file(path, limit=_MAX_BYTES).decode(errors="replace")
    head, *rows = [*csv.reader(io.StringIO(text))] or [[]]
    if head not in (_COLUMNS, _EARLIER_COLUMNS):
        raise _damaged(path, 1)
    points = []
    for line, row in enumerate(rows, start=2):
        try:
            cells = {name: cell or None for name, cell in zip(head, row, strict=True)}
            points.append(msgspec.convert(cells, ParetoPoint, strict=False))
        except ValueError as error:
            raise _damaged(path, line) from error
    return points


def _damaged(path: Path, line: int) -> FileError:
    return FileError(f"{path}: line {line} does not hold the columns {', '.join(_COLUMNS)}")


def _cell(value: object) -> str:
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
    return repr(value)
