"""Pure reconciler of worker Jobs: maps designs and observed state to actions."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from remy_proto.v1 import spec_pb2
from remy_services.kubernetes.manifest import (
    ClusterRefused,
    Design,
    LauncherSettings,
    Load,
    Owner,
    WorkersPhase,
    is_queued,
    job_of,
    label_of,
    threads_of,
)
from remy_services.kubernetes.observed import (
    WORKERS_ANNOTATION,
    ObservedJob,
    ObservedPod,
    Past,
    PodPhaseCounts,
    count_pods,
    has_crashed,
    remember,
)

_MIN_BACKOFF_SECONDS: Final = 2.0
_MAX_BACKOFF_SECONDS: Final = 60.0


@dataclass(frozen=True)
class Backoff:
    """Exponential backoff after consecutive refusals, with the reason of the last."""

    why: str
    times: int
    until: float

    @classmethod
    def after(cls, before: Backoff | None, why: str, now: float) -> Backoff:
        """Returns the backoff after another refusal at time `now`."""
        times = 1 if before is None else before.times + 1
        wait = min(_MAX_BACKOFF_SECONDS, _MIN_BACKOFF_SECONDS * 2.0 ** (times - 1))
        return cls(why, times, now + wait)


#: Target saturation. Above it, more workers would shorten a step; below it, workers mostly wait for
#: the #: last tasks of a step and for the designer.
_SATURATED_SHARE: Final = 0.5
#: Minimum remaining CPU time per thread that justifies starting a worker.
_BUDGET_SECONDS_PER_THREAD: Final = 60.0


def bounds(workers: spec_pb2.Workers, settings: LauncherSettings) -> tuple[int, int]:
    """Returns minimum and maximum workers from specification or settings, within the limits."""
    limit = settings.limits.maximum_workers
    if workers.HasField("maximum"):
        maximum = min(workers.maximum, limit)
    elif workers.HasField("minimum"):
        maximum = min(max(workers.minimum, settings.maximum_workers), limit)
    else:
        maximum = min(settings.maximum_workers, limit)
    minimum = workers.minimum if workers.HasField("minimum") else settings.minimum_workers
    return min(minimum, maximum), maximum


def desired_workers(
    workers: spec_pb2.Workers,
    load: Load,
    threads_per_worker: int,
    present: int | None,
    running: int,
    settings: LauncherSettings,
) -> int:
    """Returns the desired number of workers, given `present` desired and `running` ones.

    It is limited by measured saturation, the simulations of a step, and the remaining budget.
    Scaling up is immediate; scaling down waits until half of the workers suffice, because starting
    a worker costs more than keeping one idle.
    """
    minimum, maximum = bounds(workers, settings)
    useful: list[float] = [minimum if present is None else present]
    if load.saturated_share is not None and running:
        busy = running * load.saturated_share / _SATURATED_SHARE
        # Saturated running workers do not reduce the number of pending ones.
        useful = [busy if busy < running else max(busy, *useful)]
    if load.step_simulations is not None:
        useful.append(load.step_simulations / threads_per_worker)
    if load.cpu_seconds_left is not None:
        useful.append(load.cpu_seconds_left / (_BUDGET_SECONDS_PER_THREAD * threads_per_worker))
    desired = max(minimum, min(maximum, math.ceil(min(useful))))
    if present is not None and present / 2 < desired < present <= maximum:
        return present
    return desired


_MAX_MESSAGE_LENGTH = 200


def describe_workers(
    job: ObservedJob, counts: PodPhaseCounts, seconds_since_made: float, *, held_back: bool
) -> str:
    """Describes running workers, and why others are missing."""
    parts = [_running(counts)]
    for reason, count in counts.waiting.items():
        message = _shortened(counts.waiting_messages.get(reason, ""))
        parts.append(f"{count} waiting: {reason}" + (f" ({message})" if message else ""))
    if counts.lost:
        parts.append(f"{counts.lost} on unresponsive nodes, replaced")
    missing = counts.desired - counts.running - sum(counts.waiting.values())
    if missing > 0 and held_back:
        parts.append(f"{missing} pending: Kubernetes' backoff grows with each lost worker")
    elif missing > 0 and not counts.waiting and seconds_since_made > _PATIENCE_SECONDS:
        parts.append(
            f"{missing} not created by Kubernetes, possibly because of a resource quota or an "
            f"admission policy: see `kubectl describe job {job.name}`"
        )
    if counts.preempted:
        parts.append(f"{counts.preempted} preempted so far, replaced")
    if counts.failed:
        parts.append(f"{counts.failed} failed so far" + _last_failure(counts))
    return "; ".join(parts)


#: Time for the Job controller to create pods, after which something probably blocks it.
_PATIENCE_SECONDS = 20.0


def describe_starting(workers: int, *, queued: bool = False) -> str:
    """Describes a Job that is being created, or waits for admission by Kueue."""
    return f"{_workers(workers)} requested" + (", waiting for admission by Kueue" if queued else "")


def describe_recreation(job: ObservedJob, counts: PodPhaseCounts) -> str:
    """Describes a Job that is recreated to reset its controller's backoff."""
    return (
        f"{_running(counts)}; Job {job.name} is recreated, because Kubernetes would wait minutes "
        "before it replaces lost workers"
    )


def describe_failure(job: ObservedJob, counts: PodPhaseCounts, retry_seconds: float | None) -> str:
    """Describes a failed Job, which is retried after `retry_seconds` (None: not automatically)."""
    then = (
        "it is not retried until the design is paused and resumed, or the farm is upgraded"
        if retry_seconds is None
        else f"it is retried in {max(0, round(retry_seconds))} s"
    )
    message = _shortened(job.failure_message)
    why = f"{job.failure}: {message}" if message else f"{job.failure}"
    return f"no workers: their Job {job.name} failed ({why}{_last_failure(counts)}); {then}"


def describe_refusal(why: str) -> str:
    """Describes a Job that Kubernetes or a limit of the farm refuses."""
    return f"no workers can be started: {_shortened(why)}"


def describe_unreachable(why: str) -> str:
    """Describes an unreachable cluster."""
    return (
        f"the number of workers is unknown ({_shortened(why)}); running workers continue, and the "
        "farm retries"
    )


def _running(counts: PodPhaseCounts) -> str:
    if counts.running >= counts.desired:
        return f"{_workers(counts.running)} running"
    return f"{counts.running} of {_workers(counts.desired)} running"


def _workers(count: int) -> str:
    return "1 worker" if count == 1 else f"{count} workers"


def _last_failure(counts: PodPhaseCounts) -> str:
    if counts.last_failure is None:
        return ""
    code, reason = counts.last_failure
    ended = "without an exit code" if code is None else f"with exit code {code}"
    return f", the last {ended}" + (f" ({reason})" if reason and reason != "Error" else "")


def _shortened(message: str) -> str:
    line = " ".join(message.split()).rstrip(".;")
    return (
        line
        if len(line) <= _MAX_MESSAGE_LENGTH
        else line[: _MAX_MESSAGE_LENGTH - 3].rstrip() + "..."
    )


_BACKOFF_LIMIT_EXCEEDED: Final = "BackoffLimitExceeded"
#: Cost of restarting a worker: its start-up time and its unfinished tasks.
_RESTART_SECONDS: Final = 15.0
#: Delay before a Job that completed before its design is recreated, to avoid a tight loop.
_COMPLETE_SECONDS: Final = 10.0


@dataclass(frozen=True)
class Apply:
    """Create or update this Job."""

    job_id: str
    manifest: Mapping[str, Any]


@dataclass(frozen=True)
class Remove:
    """Delete the Job with this name, and its pods."""

    job_id: str
    name: str


Action: TypeAlias = Apply | Remove


@dataclass(frozen=True)
class Plan:
    """Actions, status sentences, and state for the next reconciliation."""

    actions: tuple[Action, ...] = ()
    #: Status sentence of each running design.
    sentences: Mapping[str, str] = field(default_factory=dict)
    #: Pod counts of each running design.
    counted: Mapping[str, PodPhaseCounts] = field(default_factory=dict)
    #: Ended pods by job id, for the next call.
    past: Mapping[str, Past] = field(default_factory=dict)
    #: Names of pods whose worker crashed.
    crashed: frozenset[str] = frozenset()


def reconcile(
    designs: Iterable[Design],
    jobs: Sequence[ObservedJob],
    pods: Sequence[ObservedPod],
    settings: LauncherSettings,
    owner: Owner | None,
    past: Mapping[str, Past],
    now: float,
) -> Plan:
    """Returns the plan for the present state.

    `past` is from the previous plan, `now` is Unix time.

    * A running design has one Job, whose name contains a digest of its template. Jobs with another
      template are deleted once this one exists, so an upgrade replaces the workers.
    * A paused design keeps its Job suspended. A Job in a Kueue queue is deleted instead.
    * Workers of an ended design exit by themselves; remaining Jobs are deleted after a while.
    * A Job is recreated if its controller's backoff after lost pods would withhold most workers for
    long. * A Job without design is deleted. * A Job that exceeded its backoff limit is recreated
    after a while. A Job that failed with the exit
      code of a defect stays until the design is paused or the template changes.
    """
    actions: list[Action] = []
    sentences: dict[str, str] = {}
    counted: dict[str, PodPhaseCounts] = {}
    remembered: dict[str, Past] = {}
    owned: set[str] = set()
    for design in designs:
        label = label_of(design.job_id)
        owned.add(label)
        view = _View(
            design,
            [job for job in jobs if job.job_id == label],
            [pod for pod in pods if pod.job_id == label],
            settings,
            owner,
            now,
        )
        remembered[design.job_id] = remember(
            past.get(design.job_id, Past()), view.jobs, view.pods, now
        )
        if design.phase is WorkersPhase.RUNNING:
            more, sentence, counts = _run(view, remembered[design.job_id])
            actions += more
            sentences[design.job_id], counted[design.job_id] = sentence, counts
        elif design.phase is WorkersPhase.PAUSED:
            actions += _pause(view)
        else:
            actions += _end(view)
    actions += [
        Remove(job.job_id, job.name) for job in jobs if job.job_id not in owned and not job.deleting
    ]
    crashed = frozenset(pod.name for pod in pods if has_crashed(pod))
    return Plan(tuple(actions), sentences, counted, remembered, crashed)


@dataclass(frozen=True)
class _View:
    """A design with its observed Jobs and pods."""

    design: Design
    jobs: Sequence[ObservedJob]
    pods: Sequence[ObservedPod]
    settings: LauncherSettings
    owner: Owner | None
    now: float

    def remove(self, jobs: Iterable[ObservedJob]) -> list[Action]:
        return [Remove(self.design.job_id, job.name) for job in jobs if not job.deleting]

    def apply(
        self, manifest: Mapping[str, Any], workers: int, *, lost: int = 0, suspend: bool = False
    ) -> Apply:
        metadata = manifest["metadata"]
        annotations = {**metadata.get("annotations", {}), WORKERS_ANNOTATION: str(workers)}
        spec = {**manifest["spec"], "parallelism": workers + lost}
        if not is_queued(manifest):
            spec["suspend"] = suspend
        changed = {"metadata": {**metadata, "annotations": annotations}, "spec": spec}
        return Apply(self.design.job_id, {**manifest, **changed})

    def desired(self, manifest: Mapping[str, Any], present: int | None, running: int = 0) -> int:
        workers, load, threads = self.design.workers, self.design.load, threads_of(manifest)
        return desired_workers(workers, load, threads, present, running, self.settings)


def _run(view: _View, past: Past) -> tuple[list[Action], str, PodPhaseCounts]:
    try:
        manifest = job_of(view.design, view.settings, view.owner)
    except ClusterRefused as refusal:
        return view.remove(view.jobs), describe_refusal(str(refusal)), PodPhaseCounts()
    name = manifest["metadata"]["name"]
    job = next((job for job in view.jobs if job.name == name), None)
    pods = [pod for pod in view.pods if pod.job_name == name]
    others = view.remove(each for each in view.jobs if each.name != name)
    queued = is_queued(manifest)
    if job is None:
        workers = view.desired(manifest, None)
        counts = count_pods(workers, pods, past, view.now)
        starting = describe_starting(workers, queued=queued)
        return [view.apply(manifest, workers), *others], starting, counts
    counts = count_pods(job.parallelism, pods, past, view.now)
    if job.deleting:
        removed = f"no workers: Job {job.name} is being deleted and will be recreated"
        return others, removed, counts
    if job.finished:
        again, sentence = _finished_early(view, job, counts)
        return [*again, *others], sentence, counts
    waits = past.losses[job.uid].seconds_to_wait(view.now)
    if not queued and not job.suspended and _is_held_back(job, pods, waits):
        return [*view.remove([job]), *others], describe_recreation(job, counts), counts
    workers, lost = job.parallelism, 0
    if not queued:
        # A pod on a lost node counts towards parallelism until the node is removed, so one more is
        # requested.
        workers, lost = view.desired(manifest, job.workers, counts.running), counts.lost
        if job.suspended or workers + lost != job.parallelism:
            others = [view.apply(manifest, workers, lost=lost), *others]
    if job.suspended:
        return others, describe_starting(workers, queued=queued), counts
    return (
        others,
        describe_workers(job, counts, view.now - job.created_at, held_back=waits > 0),
        counts,
    )


def _is_held_back(job: ObservedJob, pods: Sequence[ObservedPod], waits: float) -> bool:
    """Returns whether recreating the Job costs less worker time than waiting for its controller."""
    pods_of_job = [pod for pod in pods if pod.job_uid == job.uid]
    present = sum(pod.phase not in ("Succeeded", "Failed") for pod in pods_of_job)
    missing = job.parallelism - present
    return waits > _PATIENCE_SECONDS and missing * waits > present * _RESTART_SECONDS


def _finished_early(
    view: _View, job: ObservedJob, counts: PodPhaseCounts
) -> tuple[list[Action], str]:
    finished_at = job.finished_at if job.finished_at is not None else view.now
    if job.complete:
        due = view.now >= finished_at + _COMPLETE_SECONDS
        early = f"no workers: the workers of Job {job.name} exited early and will be restarted"
        return view.remove([job] if due else []), early
    if job.failure != _BACKOFF_LIMIT_EXCEEDED:
        return [], describe_failure(job, counts, None)
    left = finished_at + view.settings.retry_seconds - view.now
    return view.remove([job] if left <= 0 else []), describe_failure(job, counts, left)


def _pause(view: _View) -> list[Action]:
    try:
        manifest = job_of(view.design, view.settings, view.owner)
    except ClusterRefused:
        return view.remove(view.jobs)
    actions: list[Action] = []
    for job in view.jobs:
        keeps = (
            job.name == manifest["metadata"]["name"]
            and not job.finished
            and not is_queued(manifest)
        )
        if not keeps:
            actions += view.remove([job])
        elif not job.suspended and not job.deleting:
            workers = job.workers or job.parallelism
            actions.append(view.apply(manifest, workers, suspend=True))
    return actions


def _end(view: _View) -> list[Action]:
    ended_at = view.design.ended_at
    overdue = ended_at is not None and view.now > ended_at + view.settings.finish_seconds
    return view.remove(job for job in view.jobs if not job.finished and (job.suspended or overdue))
