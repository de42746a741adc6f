"""How far jobs are, how fast they go, and whose turn it is."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass

from remy_farm.designer import Designer
from remy_proto.v1 import job_pb2, progress_pb2

_SECONDS_PER_HOUR = 3600


def measure(progress: progress_pb2.JobProgress, designer: Designer) -> None:
    """Sets what a designer between two steps can tell: steps, epochs, work, rests, share done."""
    progress.step = designer.steps
    progress.epoch = designer.epoch
    progress.evaluations = designer.evaluations
    progress.simulated_packets = designer.simulated_packets
    progress.epochs_without_gain = epochs_without_gain(designer.epochs)
    progress.resting_steps = designer.resting_steps
    share = designer.share_done
    if share is None:
        progress.ClearField("share_done")
    else:
        progress.share_done = share


def follow(
    progress: progress_pb2.JobProgress, events: Iterable[progress_pb2.ProgressEvent]
) -> None:
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
                _follow_validation(progress, comparison)
            case "rule_split":
                progress.rules = event.rule_split.rules
            case "rules_merged":
                progress.rules = event.rules_merged.rules
            case "design_finished":
                progress.rules = event.design_finished.rules
                _follow_validation(progress, event.design_finished.closing)


def _follow_validation(
    progress: progress_pb2.JobProgress, comparison: progress_pb2.Comparison
) -> None:
    published = comparison.after if comparison.accepted else comparison.before
    if published.HasField("mean"):
        progress.validated_score.CopyFrom(published)


def come_to_rest(progress: progress_pb2.JobProgress) -> None:
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


WINDOW_SECONDS = 60.0
# Closer samples take the place of one another.
_SECONDS_BETWEEN_SAMPLES = 1.0


@dataclass(frozen=True)
class Rates:
    """By second."""

    evaluations: float = 0.0
    packets: float = 0.0


@dataclass(frozen=True)
class _Sample:
    seconds: float
    evaluations: int
    packets: int


class RateMeter:
    """Takes running totals and the time of a clock that never goes back, in seconds."""

    def __init__(self, seconds: float, evaluations: int = 0, packets: int = 0) -> None:
        self._samples = deque([_Sample(seconds, evaluations, packets)])
        self._workers: dict[str, float] = {}

    def reached(self, seconds: float, evaluations: int, packets: int) -> None:
        """The totals at a time. What was in an abandoned step counts no more: totals may fall."""
        sample = _Sample(seconds, evaluations, packets)
        before = self._samples[-2].seconds if len(self._samples) > 1 else None
        if before is not None and seconds - before < _SECONDS_BETWEEN_SAMPLES:
            self._samples[-1] = sample
        else:
            self._samples.append(sample)
        while len(self._samples) > 2 and seconds - self._samples[1].seconds >= WINDOW_SECONDS:
            self._samples.popleft()

    def worked(self, seconds: float, workers: frozenset[str]) -> None:
        """These workers returned something."""
        self._workers.update(dict.fromkeys(workers, seconds))

    def rates(self, seconds: float) -> Rates:
        """What was done in the window before `seconds`."""
        first, last = self._samples[0], self._samples[-1]
        took = max(seconds, last.seconds) - first.seconds
        if took <= 0:
            return Rates()
        return Rates(
            evaluations=max(last.evaluations - first.evaluations, 0) / took,
            packets=max(last.packets - first.packets, 0) / took,
        )

    def workers(self, seconds: float) -> int:
        """How many workers returned something in the window before `seconds`."""
        self._workers = {
            worker: at for worker, at in self._workers.items() if seconds - at <= WINDOW_SECONDS
        }
        return len(self._workers)


@dataclass(frozen=True)
class QueueLimits:
    """How many jobs run at once."""

    running_jobs: int
    running_jobs_per_owner: int


def whose_turn(
    jobs: Iterable[job_pb2.Job], running: Container[str], limits: QueueLimits
) -> frozenset[str]:
    """The ids of those, out of the jobs that run or could, that should run now.

    By priority, higher first; among equals those in `running`, then first come, first served.
    A job that only its owner's limit holds back lets others pass.
    """
    chosen: set[str] = set()
    by_owner: Counter[str] = Counter()

    def precedence(job: job_pb2.Job) -> tuple[int, bool, int, str]:
        return (-job.priority, job.id not in running, job.create_time.ToNanoseconds(), job.id)

    for job in sorted(jobs, key=precedence):
        if len(chosen) == limits.running_jobs:
            break
        if by_owner[job.owner] < limits.running_jobs_per_owner:
            chosen.add(job.id)
            by_owner[job.owner] += 1
    return frozenset(chosen)
