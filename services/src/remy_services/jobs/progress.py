"""How far a job is, from what its designer says."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from remy_farm.v1 import job_pb2, progress_pb2
from remy_services.designer import Designer

_SECONDS_PER_HOUR = 3600


def measure(progress: job_pb2.JobProgress, designer: Designer) -> None:
    """Sets what a designer between two steps can tell: steps, epochs, work, share done."""
    progress.step = designer.steps
    progress.epoch = designer.epoch
    progress.evaluations = designer.evaluations
    progress.simulated_packets = designer.simulated_packets
    progress.epochs_without_gain = epochs_without_gain(designer.epochs)
    share = designer.share_done
    if share is None:
        progress.ClearField("share_done")
    else:
        progress.share_done = share


def follow(progress: job_pb2.JobProgress, events: Iterable[progress_pb2.ProgressEvent]) -> None:
    """Sets what only the events tell: scores, and the sizes of steps and tables."""
    for event in events:
        match event.WhichOneof("event"):
            case "step_finished":
                step = event.step_finished
                progress.rules = step.rules
                progress.candidates = progress.candidates_done = step.candidates
                if step.HasField("score"):
                    progress.score.CopyFrom(step.score)
            case "epoch_finished":
                comparison = event.epoch_finished.record.comparison
                if comparison.HasField("gain"):
                    progress.epoch_gain.CopyFrom(comparison.gain)
            case "rule_split":
                progress.rules = event.rule_split.rules
            case "design_finished":
                progress.rules = event.design_finished.rules


def come_to_rest(progress: job_pb2.JobProgress) -> None:
    """Clears what is only true of a job that is being worked on: its pace, its workers, and the
    time left at that pace."""
    for field in ("evaluations_per_second", "packets_per_second", "workers", "eta_seconds"):
        progress.ClearField(field)


def epochs_without_gain(epochs: Sequence[progress_pb2.EpochRecord]) -> int:
    """How many of the last epochs in a row brought no gain; short climbs do not count."""
    count = 0
    for record in reversed(epochs):
        if record.HasField("start"):
            continue
        if record.comparison.accepted:
            break
        count += 1
    return count


def cost(cpu_seconds: float, price_per_cpu_hour: float) -> float:
    """CPU time in money."""
    return cpu_seconds / _SECONDS_PER_HOUR * price_per_cpu_hour
