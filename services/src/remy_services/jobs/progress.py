"""Job progress, throughput rates, and the queue policy."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass

from remy_farm.designer import Designer
from remy_proto.v1 import job_pb2, progress_pb2

_SECONDS_PER_HOUR = 3600


def update_from_designer(progress: progress_pb2.JobProgress, designer: Designer) -> None:
    """Fills in the fields that a designer knows between two steps: steps, epochs, work done."""
    progress.step = designer.steps
    progress.epoch = designer.epoch
    progress.evaluations = designer.evaluations
    progress.simulated_packets = designer.simulated_packets
    progress.epochs_without_gain = epochs_without_gain(designer.epochs)
    progress.resting_steps = designer.stalled_steps
    share = designer.share_done
    if share is None:
        progress.ClearField("share_done")
    else:
        progress.share_done = share


def update_from_events(
    progress: progress_pb2.JobProgress, events: Iterable[progress_pb2.ProgressEvent]
) -> None:
    """Fills in the fields that only events carry: scores, and sizes of steps and tables."""
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
                _update_validated_score(progress, comparison)
            case "rule_split":
                progress.rules = event.rule_split.rules
            case "rules_merged":
                progress.rules = event.rules_merged.rules
            case "design_finished":
                progress.rules = event.design_finished.rules
                _update_validated_score(progress, event.design_finished.closing)


def _update_validated_score(
    progress: progress_pb2.JobProgress, comparison: progress_pb2.Comparison
) -> None:
    published = comparison.after if comparison.accepted else comparison.before
    if published.HasField("mean"):
        progress.validated_score.CopyFrom(published)


def clear_live_fields(progress: progress_pb2.JobProgress) -> None:
    """Clears the fields that only apply to a running job: rates, workers and time left."""
    for field in ("evaluations_per_second", "packets_per_second", "workers", "eta_seconds"):
        progress.ClearField(field)


def epochs_without_gain(epochs: Sequence[progress_pb2.EpochRecord]) -> int:
    """Counts the latest consecutive epochs without gain.

    Epochs that end a short climb (`start` is its number) are left out.
    """
    count = 0
    for record in reversed(epochs):
        if record.HasField("start"):
            continue
        if record.comparison.accepted:
            break
        count += 1
    return count


def cost(cpu_seconds: float, price_per_cpu_hour: float) -> float:
    """Returns the price of some CPU time."""
    return cpu_seconds / _SECONDS_PER_HOUR * price_per_cpu_hour


WINDOW_SECONDS = 60.0
# The last sample is replaced until it is this long after the one before it.
_SECONDS_BETWEEN_SAMPLES = 1.0


@dataclass(frozen=True)
class Rates:
    """Throughput per second."""

    evaluations: float = 0.0
    packets: float = 0.0


@dataclass(frozen=True)
class _Sample:
    seconds: float
    evaluations: int
    packets: int


class RateMeter:
    """Computes rates over a sliding window from running totals and monotonic times in seconds."""

    def __init__(self, seconds: float, evaluations: int = 0, packets: int = 0) -> None:
        self._samples = deque([_Sample(seconds, evaluations, packets)])
        self._workers: dict[str, float] = {}

    def record_totals(self, seconds: float, evaluations: int, packets: int) -> None:
        """Records the totals at a time. Totals may fall when a step is abandoned."""
        sample = _Sample(seconds, evaluations, packets)
        before = self._samples[-2].seconds if len(self._samples) > 1 else None
        if before is not None and seconds - before < _SECONDS_BETWEEN_SAMPLES:
            self._samples[-1] = sample
        else:
            self._samples.append(sample)
        while len(self._samples) > 2 and seconds - self._samples[1].seconds >= WINDOW_SECONDS:
            self._samples.popleft()

    def record_workers(self, seconds: float, workers: frozenset[str]) -> None:
        """Records that these workers returned results."""
        self._workers.update(dict.fromkeys(workers, seconds))

    def rates(self, seconds: float) -> Rates:
        """Returns the rates in the window that ends at `seconds`."""
        first, last = self._samples[0], self._samples[-1]
        elapsed = max(seconds, last.seconds) - first.seconds
        if elapsed <= 0:
            return Rates()
        return Rates(
            evaluations=max(last.evaluations - first.evaluations, 0) / elapsed,
            packets=max(last.packets - first.packets, 0) / elapsed,
        )

    def workers(self, seconds: float) -> int:
        """Counts the workers that returned results in the window that ends at `seconds`."""
        self._workers = {
            worker: at for worker, at in self._workers.items() if seconds - at <= WINDOW_SECONDS
        }
        return len(self._workers)


@dataclass(frozen=True)
class QueueLimits:
    """Maximum numbers of running jobs, in total and per owner."""

    running_jobs: int
    running_jobs_per_owner: int


def select_running_jobs(
    jobs: Iterable[job_pb2.Job], running: Container[str], limits: QueueLimits
) -> frozenset[str]:
    """Returns the ids of the jobs that should run now, out of running and queued jobs.

    Higher priority first; among equals running jobs first, then first come, first served. A job
    that is blocked by its owner's limit does not block jobs of other owners.
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
