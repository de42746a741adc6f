"""What is said of a design's workers, in one sentence for people."""

from __future__ import annotations

from remy_services.kubernetes.census import Census
from remy_services.kubernetes.observed import ObservedJob

_MOST_WORDS = 200


def of_workers(job: ObservedJob, census: Census, seconds_since_made: float) -> str:
    """How many workers there are, and what keeps the others away."""
    parts = [_running(census)]
    for reason, count in census.waiting.items():
        words = _shortened(census.waiting_words.get(reason, ""))
        parts.append(f"{count} waiting: {reason}" + (f" ({words})" if words else ""))
    if census.lost:
        parts.append(f"{census.lost} on nodes that do not answer, replaced")
    missing = census.asked_for - census.running - sum(census.waiting.values())
    if missing > 0 and not census.waiting and seconds_since_made > _PATIENCE_SECONDS:
        parts.append(
            f"{missing} not made by Kubernetes, perhaps for a resource quota or an admission "
            f"policy: `kubectl describe job {job.name}` says why"
        )
    if census.preempted:
        parts.append(f"{census.preempted} preempted so far, replaced")
    if census.failed:
        parts.append(f"{census.failed} failed so far" + _last_failure(census))
    return "; ".join(parts)


#: How long the Job controller may take to make pods before something must be in its way.
_PATIENCE_SECONDS = 20.0


def of_starting(workers: int) -> str:
    """The Job was not there and is being made."""
    return f"{_workers(workers)} asked for"


def of_failed(job: ObservedJob, census: Census, retry_seconds: float | None) -> str:
    """The Job failed for good or, with `retry_seconds`, for now."""
    then = (
        "it is not tried again until the design is paused and resumed, or the farm is upgraded"
        if retry_seconds is None
        else f"it is tried again in {max(0, round(retry_seconds))} s"
    )
    words = _shortened(job.failure_message)
    why = f"{job.failure}: {words}" if words else f"{job.failure}"
    return f"no workers: their Job {job.name} failed ({why}{_last_failure(census)}); {then}"


def of_complete(job: ObservedJob) -> str:
    """All workers ended as if the design had."""
    return f"no workers: those of Job {job.name} ended early, and are started anew"


def of_leaving(job: ObservedJob) -> str:
    """The Job is being deleted."""
    return f"no workers: Job {job.name} is being removed and is then made anew"


def of_refusal(why: str) -> str:
    """Kubernetes, or a limit of the farm, refuses the Job."""
    return f"no workers can be started: {_shortened(why)}"


def of_unreachable(why: str) -> str:
    """There is no word from the cluster."""
    return (
        f"the number of workers is not known ({_shortened(why)}); those that are there go on, and "
        "the farm asks again"
    )


def _running(census: Census) -> str:
    if census.running >= census.asked_for:
        return f"{_workers(census.running)} running"
    return f"{census.running} of {_workers(census.asked_for)} running"


def _workers(count: int) -> str:
    return "1 worker" if count == 1 else f"{count} workers"


def _last_failure(census: Census) -> str:
    if census.last_failure is None:
        return ""
    code, reason = census.last_failure
    ended = "without an exit code" if code is None else f"with exit code {code}"
    return f", the last {ended}" + (f" ({reason})" if reason and reason != "Error" else "")


def _shortened(words: str) -> str:
    line = " ".join(words.split()).rstrip(".;")
    return line if len(line) <= _MOST_WORDS else line[: _MOST_WORDS - 3].rstrip() + "..."
