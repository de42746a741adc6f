"""What a design counts beside its strategy's state: steps, epochs, simulations, and its events."""

from __future__ import annotations

from remy_farm.v1 import checkpoint_pb2, evaluation_pb2, progress_pb2
from remy_services.designer.scoring import simulated_packets
from remy_services.designer.strategy import StepReport


def count_outcome(
    record: checkpoint_pb2.Checkpoint, outcome: evaluation_pb2.EvaluationOutcome
) -> int:
    """Adds what an outcome has cost. Returns its simulated packets."""
    packets = simulated_packets(outcome)
    record.evaluations += len(outcome.outcomes)
    record.simulated_packets += packets
    return packets


def count_step(
    record: checkpoint_pb2.Checkpoint,
    epoch: int,
    request: evaluation_pb2.EvaluationRequest,
    outcome: evaluation_pb2.EvaluationOutcome,
    report: StepReport,
) -> list[progress_pb2.ProgressEvent]:
    """Adds a step made in `epoch`, and the epoch that ended with it, if any. Returns the events
    that tell of them."""
    record.step += 1
    packets = count_outcome(record, outcome)
    finished = progress_pb2.StepFinished(
        purpose=report.purpose,
        rules=report.rules,
        candidates=len(request.candidates),
        specimens=len(request.specimens),
        simulated_packets=packets,
        score=report.score,
        gain=report.gain,
    )
    events = [progress_pb2.ProgressEvent(step_finished=finished), *report.events]
    if report.epoch is not None:
        ended = record.epochs.add()
        ended.CopyFrom(report.epoch)
        ended.step = record.step
        epoch_finished = progress_pb2.EpochFinished(record=ended)
        events.append(progress_pb2.ProgressEvent(epoch_finished=epoch_finished))
    return _numbered(record, epoch, events)


def count_end(
    record: checkpoint_pb2.Checkpoint, epoch: int, rules: int
) -> list[progress_pb2.ProgressEvent]:
    """Marks the design as finished, with a table of `rules` rules. Returns the event that tells of
    it."""
    closing = record.closing
    closing.finished = True
    finished = progress_pb2.DesignFinished(
        reason=closing.reason,
        epochs=len(record.epochs),
        rules=rules,
        evaluations=record.evaluations,
        simulated_packets=record.simulated_packets,
        closing=closing.comparison if closing.HasField("comparison") else None,
    )
    return _numbered(record, epoch, [progress_pb2.ProgressEvent(design_finished=finished)])


def _numbered(
    record: checkpoint_pb2.Checkpoint, epoch: int, events: list[progress_pb2.ProgressEvent]
) -> list[progress_pb2.ProgressEvent]:
    """The events with their numbers, and the step and epoch that they belong to."""
    for event in events:
        record.event_sequence += 1
        event.sequence = record.event_sequence
        event.step = record.step
        event.epoch = epoch
    return events
