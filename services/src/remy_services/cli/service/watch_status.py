"""Where a watched job stands, and the entries of its history in words."""

from __future__ import annotations

from collections import deque

from remy_farm.v1 import job_pb2
from remy_services.cli.event_wording import event_sentence
from remy_services.cli.service.job_words import state_name

_SCORES_KEPT = 2000


class WatchStatus:
    """The latest that is known of a job."""

    def __init__(self) -> None:
        self.job: job_pb2.Job | None = None
        #: Why there is no connection; None if there is one.
        self.trouble: str | None = None
        #: Means by step, oldest first.
        self.scores: deque[float] = deque(maxlen=_SCORES_KEPT)

    def observe(self, event: job_pb2.JobEvent) -> None:
        """Takes note of an entry of the history."""
        step = event.progress.step_finished
        if event.progress.HasField("step_finished") and step.HasField("score"):
            self.scores.append(step.score.mean)


def history_sentence(event: job_pb2.JobEvent) -> str | None:
    """An entry in words; None for one that only moves the status."""
    match event.WhichOneof("event"):
        case "progress":
            return event_sentence(event.progress)
        case "state_changed":
            changed = event.state_changed
            by = f" by {changed.by}" if changed.by else ""
            message = f": {changed.message}" if changed.message else ""
            return f"{state_name(changed.to)}{by}{message}"
        case "recovered":
            recovered = event.recovered
            return f"taken up after step {recovered.step} by {recovered.coordinator}"
        case "snapshot_refused":
            refused = event.snapshot_refused
            return (
                f"the snapshot of revision {refused.snapshot_revision} is not used: {refused.why}"
            )
        case "budget_changed":
            by = event.budget_changed.by
            return f"budget changed by {by}" if by else "budget changed"
    return None
