"""Where a design stands, put together from what its run tells, and told in words."""

from __future__ import annotations

from dataclasses import dataclass

from remy_farm.v1 import progress_pb2
from remy_services.embedded import RunStarted, StepProgress
from remy_services.report.wording import count, duration, several, with_error


@dataclass(slots=True)
class DesignStatus:
    """The latest that is known."""

    progress: StepProgress | None = None
    score: progress_pb2.Estimate | None = None
    """Of the table being worked on, on the last step's specimens."""

    def observe(self, event: progress_pb2.ProgressEvent) -> None:
        """Takes note of an event."""
        if event.HasField("step_finished") and event.step_finished.HasField("score"):
            self.score = event.step_finished.score

    def place(self) -> str:
        """Epoch, rules and step."""
        if self.progress is None:
            return "starting"
        now = self.progress
        return f"epoch {now.epoch}, {several(now.rules, 'rule')}, step {now.step}"

    def candidates(self) -> str:
        """Candidates done of those of the step."""
        if self.progress is None:
            return ""
        now = self.progress
        return f"{now.candidates_done} of {several(now.candidates, 'candidate')}"

    def measures(self) -> str:
        """Score with its error, packets a second, time used and left."""
        parts = []
        if self.score is not None:
            parts.append(f"score {with_error(self.score)}")
        if self.progress is not None:
            now = self.progress
            parts.append(f"{count(now.packets_per_second)} packets/s")
            parts.append(f"{duration(now.cpu_seconds)} CPU")
            if now.eta_seconds is not None:
                parts.append(f"ETA {duration(now.eta_seconds)}")
        return ", ".join(parts)


def start_sentence(start: RunStarted) -> str | None:
    """What to say of a run that goes on; None for a new design."""
    return f"resumed after step {start.steps}" if start.resumed else None
