"""Formats jobs as text and as JSON-like values, for terminals, `--json` and the web page."""

from __future__ import annotations

import math
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp

from remy_farm.analysis.wording import (
    enum_name,
    finished_sentence,
    format_estimate,
    plural,
    stall_sentence,
    stop_reason,
)
from remy_farm.specification import to_yaml
from remy_farm.specification.reading import read_yaml
from remy_farm.specification.schema import convert_value, enum_of, fields_of, is_unset
from remy_proto.v1 import job_pb2, progress_pb2


def message_dict(message: Message) -> Any:
    """Converts a message to a dict with all its fields, in declaration order.

    Enum values become lower-case names without the enum's prefix, timestamps RFC 3339 in UTC, and
    unset fields None.
    """
    if isinstance(message, Timestamp):
        return message.ToJsonString()
    return {field.name: _field(message, field) for field in fields_of(message)}


def job_dict(job: job_pb2.Job) -> dict[str, Any]:
    """A job; its specification as docs/reference/spec.md has it, and None where it was not sent; of
    an evaluation the number of its parts."""
    tree = {field.name: _field(job, field) for field in fields_of(job) if field.name != "spec"}
    if job.HasField("evaluation"):
        tree["evaluation"] = {"parts": len(job.evaluation.parts)}
    has_spec = job.HasField("spec")
    tree["spec"] = read_yaml(to_yaml(job.spec), "the specification") if has_spec else None
    return tree


def _field(message: Message, field: FieldDescriptor) -> Any:
    return None if is_unset(message, field) else convert_value(message, field, _value)


def _value(field: FieldDescriptor, value: Any) -> Any:
    if field.message_type is not None:
        return message_dict(value)
    if field.enum_type is not None:
        return enum_name(enum_of(field), value)
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


_FAILURES = {
    job_pb2.FAILURE_REASON_INTERNAL: "of a defect of the coordinator",
    job_pb2.FAILURE_REASON_SNAPSHOTS_LOST: "none of its snapshots can be read",
    job_pb2.FAILURE_REASON_OTHER_VERSION: "its snapshot was made with another simulator version",
    job_pb2.FAILURE_REASON_TASK_QUARANTINED: "one of its tasks kept ending its workers",
    job_pb2.FAILURE_REASON_REQUEST_REFUSED: "the simulator refused one of its requests",
    job_pb2.FAILURE_REASON_RESULTS_DIFFER: "workers gave different results for one of its tasks",
    job_pb2.FAILURE_REASON_WORK_LIMIT: "it simulated as many packets as one job may",
}


def state_name(state: job_pb2.JobState) -> str:
    """As in "running"."""
    return enum_name(job_pb2.JobState.DESCRIPTOR, state) or "unknown"


def why(job: job_pb2.Job) -> str:
    """Returns the reason for the job's state as a sentence; may be empty."""
    if job.status_message:
        return job.status_message
    if job.state == job_pb2.JOB_STATE_SUCCEEDED:
        return stop_reason(job.stop_reason)
    if job.state == job_pb2.JOB_STATE_FAILED:
        return _FAILURES.get(job.failure_reason, "for a reason unknown to this client")
    return ""


def describe_state(job: job_pb2.Job) -> str:
    """Returns the job's state with its reason, such as "failed: ..."."""
    reason = why(job)
    name = state_name(job.state)
    return f"{name}: {reason}" if reason else name


def describe_event(event: progress_pb2.ProgressEvent) -> str | None:
    """Describes a milestone of a design; returns None for events that only update progress."""
    match event.WhichOneof("event"):
        case "rule_split":
            split = event.rule_split
            return f"rule {split.rule} was divided: {plural(split.rules, 'rule')}"
        case "rules_merged":
            merged = event.rules_merged
            pairs = "a pair" if merged.pairs == 1 else f"{merged.pairs} pairs"
            return f"{pairs} of rules merged: {plural(merged.rules, 'rule')}"
        case "climb_rested":
            return stall_sentence(event.climb_rested.steps)
        case "epoch_finished":
            return _epoch_sentence(event.epoch_finished.record)
        case "design_finished":
            return finished_sentence(event.design_finished)
    return None


def describe_history(event: job_pb2.JobEvent) -> str | None:
    """Describes a history event; returns None for events that only update progress."""
    match event.WhichOneof("event"):
        case "progress":
            return describe_event(event.progress)
        case "state_changed":
            changed = event.state_changed
            by = f" by {changed.by}" if changed.by else ""
            message = f": {changed.message}" if changed.message else ""
            return f"{state_name(changed.to)}{by}{message}"
        case "recovered":
            recovered = event.recovered
            return f"recovered after step {recovered.step} by {recovered.coordinator}"
        case "snapshot_refused":
            refused = event.snapshot_refused
            return f"snapshot of revision {refused.snapshot_revision} skipped: {refused.why}"
        case "budget_changed":
            budget = event.budget_changed
            what = (
                f"priority {budget.priority}" if budget.HasField("priority") else "budget changed"
            )
            return f"{what} by {budget.by}" if budget.by else what
    return None


def _epoch_sentence(record: progress_pb2.EpochRecord) -> str:
    comparison = record.comparison
    gain = (
        f"score {format_estimate(comparison.before)} -> {format_estimate(comparison.after)} on the "
        f"validation specimens (gain {format_estimate(comparison.gain, signed=True)})"
    )
    if record.rules_changed == 0:
        return f"epoch {record.epoch}: nothing to improve"
    if record.HasField("start"):
        return f"start {record.start}: {gain}"
    verdict = "kept" if comparison.accepted else "rolled back"
    return (
        f"epoch {record.epoch}: {plural(record.rules_changed, 'rule')} changed, {gain}, {verdict}"
    )
