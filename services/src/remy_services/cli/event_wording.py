"""The milestones of a design in words."""

from __future__ import annotations

from remy_farm.v1 import progress_pb2
from remy_services.report.wording import finished_sentence, several, with_error


def event_sentence(event: progress_pb2.ProgressEvent) -> str | None:
    """A milestone in words; None for an event that only moves the status."""
    match event.WhichOneof("event"):
        case "rule_split":
            split = event.rule_split
            return f"rule {split.rule} was divided: {several(split.rules, 'rule')}"
        case "epoch_finished":
            return _epoch_sentence(event.epoch_finished.record)
        case "design_finished":
            return finished_sentence(event.design_finished)
    return None


def _epoch_sentence(record: progress_pb2.EpochRecord) -> str:
    comparison = record.comparison
    if record.rules_changed == 0:
        return f"epoch {record.epoch}: nothing to improve"
    if record.HasField("start"):
        return f"start {record.start}: {_gain(comparison)}"
    verdict = "kept" if comparison.accepted else "rolled back"
    return (
        f"epoch {record.epoch}: {several(record.rules_changed, 'rule')} changed, "
        f"{_gain(comparison)}, {verdict}"
    )


def _gain(comparison: progress_pb2.Comparison) -> str:
    return (
        f"score {with_error(comparison.before)} -> {with_error(comparison.after)} on fresh "
        f"specimens (gain {with_error(comparison.gain, signed=True)})"
    )
