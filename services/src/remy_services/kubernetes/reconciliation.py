"""The reconciler: what to do so that the cluster's Jobs are those that the designs want. Pure."""

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

_FIRST_SECONDS: Final = 2.0
_MOST_SECONDS: Final = 60.0


@dataclass(frozen=True)
class Backoff:
    """Something was refused so many times in a row, the last time for this reason."""

    why: str
    times: int
    until: float

    @classmethod
    def after(cls, before: Backoff | None, why: str, now: float) -> Backoff:
        """The refusal that follows `before`, at the time `now` in seconds."""
        times = 1 if before is None else before.times + 1
        wait = min(_MOST_SECONDS, _FIRST_SECONDS * 2.0 ** (times - 1))
        return cls(why, times, now + wait)


#: Workers that are all busy for more of the time than this would have others shorten a step; for
#: less, they mostly wait for its last tasks, and for the designer.
_SATURATED_SHARE: Final = 0.5
#: A worker with less work than this ahead of it is not worth the time that its start takes.
_BUDGET_SECONDS_PER_THREAD: Final = 60.0


def bounds(workers: spec_pb2.Workers, settings: LauncherSettings) -> tuple[int, int]:
    """Fewest and most workers: of the specification, else of the settings, within the limits."""
    limit = settings.limits.maximum_workers
    if workers.HasField("maximum"):
        most = min(workers.maximum, limit)
    elif workers.HasField("minimum"):
        most = min(max(workers.minimum, settings.maximum_workers), limit)
    else:
        most = min(settings.maximum_workers, limit)
    fewest = workers.minimum if workers.HasField("minimum") else settings.minimum_workers
    return min(fewest, most), most


def workers_wanted(
    workers: spec_pb2.Workers,
    load: Load,
    threads_per_worker: int,
    present: int | None,
    running: int,
    settings: LauncherSettings,
) -> int:
    """How many workers the design should have, with `present` asked for and `running` so far.

    As many as are found to be busy, and a step and what is left of the budget can employ. They
    become more at once, but fewer only when half of them would do: starting a worker costs more
    than letting it wait.
    """
    fewest, most = bounds(workers, settings)
    useful: list[float] = [fewest if present is None else present]
    if load.saturated_share is not None and running:
        busy = running * load.saturated_share / _SATURATED_SHARE
        # That few run says nothing against those that are still to come.
        useful = [busy if busy < running else max(busy, *useful)]
    if load.step_simulations is not None:
        useful.append(load.step_simulations / threads_per_worker)
    if load.cpu_seconds_left is not None:
        useful.append(load.cpu_seconds_left / (_BUDGET_SECONDS_PER_THREAD * threads_per_worker))
    wanted = max(fewest, min(most, math.ceil(min(useful))))
    if present is not None and present / 2 < wanted < present <= most:
        return present
    return wanted


_MOST_WORDS = 200


def of_workers(
    job: ObservedJob, counts: PodPhaseCounts, seconds_since_made: float, *, held_back: bool
) -> str:
    """How many workers there are, and what keeps the others away."""
    parts = [_running(counts)]
    for reason, count in counts.waiting.items():
        words = _shortened(counts.waiting_words.get(reason, ""))
        parts.append(f"{count} waiting: {reason}" + (f" ({words})" if words else ""))
    if counts.lost:
        parts.append(f"{counts.lost} on nodes that do not answer, replaced")
    missing = counts.asked_for - counts.running - sum(counts.waiting.values())
    if missing > 0 and held_back:
        parts.append(f"{missing} to come: Kubernetes waits longer with each worker that was lost")
    elif missing > 0 and not counts.waiting and seconds_since_made > _PATIENCE_SECONDS:
        parts.append(
            f"{missing} not made by Kubernetes, perhaps for a resource quota or an admission "
            f"policy: `kubectl describe job {job.name}` says why"
        )
    if counts.preempted:
        parts.append(f"{counts.preempted} preempted so far, replaced")
    if counts.failed:
        parts.append(f"{counts.failed} failed so far" + _last_failure(counts))
    return "; ".join(parts)


#: How long the Job controller may take to make pods before something must be in its way.
_PATIENCE_SECONDS = 20.0


def of_starting(workers: int, *, queued: bool = False) -> str:
    """The Job is being made, or is held back by Kueue."""
    return f"{_workers(workers)} asked for" + (", when Kueue admits their Job" if queued else "")


def of_anew(job: ObservedJob, counts: PodPhaseCounts) -> str:
    """The Job is replaced by one that its controller does not hold back."""
    return (
        f"{_running(counts)}; Job {job.name} is made anew, since Kubernetes would wait for minutes "
        "before it replaces those that were lost"
    )


def of_failed(job: ObservedJob, counts: PodPhaseCounts, retry_seconds: float | None) -> str:
    """The Job failed for good or, with `retry_seconds`, for now."""
    then = (
        "it is not tried again until the design is paused and resumed, or the farm is upgraded"
        if retry_seconds is None
        else f"it is tried again in {max(0, round(retry_seconds))} s"
    )
    words = _shortened(job.failure_message)
    why = f"{job.failure}: {words}" if words else f"{job.failure}"
    return f"no workers: their Job {job.name} failed ({why}{_last_failure(counts)}); {then}"


def of_refusal(why: str) -> str:
    """Kubernetes, or a limit of the farm, refuses the Job."""
    return f"no workers can be started: {_shortened(why)}"


def of_unreachable(why: str) -> str:
    """There is no word from the cluster."""
    return (
        f"the number of workers is not known ({_shortened(why)}); those that are there go on, and "
        "the farm asks again"
    )


def _running(counts: PodPhaseCounts) -> str:
    if counts.running >= counts.asked_for:
        return f"{_workers(counts.running)} running"
    return f"{counts.running} of {_workers(counts.asked_for)} running"


def _workers(count: int) -> str:
    return "1 worker" if count == 1 else f"{count} workers"


def _last_failure(counts: PodPhaseCounts) -> str:
    if counts.last_failure is None:
        return ""
    code, reason = counts.last_failure
    ended = "without an exit code" if code is None else f"with exit code {code}"
    return f", the last {ended}" + (f" ({reason})" if reason and reason != "Error" else "")


def _shortened(words: str) -> str:
    line = " ".join(words.split()).rstrip(".;")
    return line if len(line) <= _MOST_WORDS else line[: _MOST_WORDS - 3].rstrip() + "..."


# What to do so that the cluster's Jobs are those that the designs want. Pure: time is passed in.
#
# The whole is level-triggered: a decision needs only what is there now, so that a launcher that
# starts anew adopts the Jobs it finds, and one that missed something makes up for it.
#
# * A running design has one Job, by a name that holds a digest of its pods' template. Jobs of
# another template are removed once this one is made, so that an upgrade replaces workers.
# * A paused design keeps its Job, suspended; one that waits in a Kueue queue loses it.
# * The workers of a design that ended end by themselves; what remains is removed after a while.
# * A Job whose controller would leave it without most of its workers for long, since it waits twice
# as long after each pod that was lost with its node, is made anew.
# * A Job of no design is removed.
# * A Job that failed too often is made anew after a while. One that failed by the exit code of a
# defect stays as it is until the design is paused, or the template changes.


_TOO_OFTEN: Final = "BackoffLimitExceeded"
#: What a worker costs that is ended and made anew: its start, and its tasks under way.
_RESTART_SECONDS: Final = 15.0
#: How long a Job stays that was complete before its design, lest it is made in a tight loop.
_COMPLETE_SECONDS: Final = 10.0


@dataclass(frozen=True)
class Apply:
    """Make this Job, or make it so."""

    job_id: str
    manifest: Mapping[str, Any]


@dataclass(frozen=True)
class Remove:
    """Remove the Job of this name, and its pods."""

    job_id: str
    name: str


Action: TypeAlias = Apply | Remove


@dataclass(frozen=True)
class Plan:
    """What to do, what to say, and what to remember."""

    actions: tuple[Action, ...] = ()
    #: One sentence about the workers of each running design.
    sentences: Mapping[str, str] = field(default_factory=dict)
    #: The workers of each running design, counted.
    counted: Mapping[str, PodPhaseCounts] = field(default_factory=dict)
    #: Pods that have ended, by design.
    past: Mapping[str, Past] = field(default_factory=dict)
    #: Pods whose workers ended in themselves.
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
    """The plan for what is there now; `past` is that of the plan before, `now` in seconds."""
    actions: list[Action] = []
    said: dict[str, str] = {}
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
            said[design.job_id], counted[design.job_id] = sentence, counts
        elif design.phase is WorkersPhase.PAUSED:
            actions += _pause(view)
        else:
            actions += _end(view)
    actions += [
        Remove(job.job_id, job.name) for job in jobs if job.job_id not in owned and not job.leaving
    ]
    crashed = frozenset(pod.name for pod in pods if has_crashed(pod))
    return Plan(tuple(actions), said, counted, remembered, crashed)


@dataclass(frozen=True)
class _View:
    """A design beside what there is of it."""

    design: Design
    jobs: Sequence[ObservedJob]
    pods: Sequence[ObservedPod]
    settings: LauncherSettings
    owner: Owner | None
    now: float

    def remove(self, jobs: Iterable[ObservedJob]) -> list[Action]:
        return [Remove(self.design.job_id, job.name) for job in jobs if not job.leaving]

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

    def wanted(self, manifest: Mapping[str, Any], present: int | None, running: int = 0) -> int:
        workers, load, threads = self.design.workers, self.design.load, threads_of(manifest)
        return workers_wanted(workers, load, threads, present, running, self.settings)


def _run(view: _View, past: Past) -> tuple[list[Action], str, PodPhaseCounts]:
    try:
        manifest = job_of(view.design, view.settings, view.owner)
    except ClusterRefused as refusal:
        return view.remove(view.jobs), of_refusal(str(refusal)), PodPhaseCounts()
    name = manifest["metadata"]["name"]
    job = next((job for job in view.jobs if job.name == name), None)
    pods = [pod for pod in view.pods if pod.job_name == name]
    others = view.remove(each for each in view.jobs if each.name != name)
    queued = is_queued(manifest)
    if job is None:
        workers = view.wanted(manifest, None)
        counts = count_pods(workers, pods, past, view.now)
        starting = of_starting(workers, queued=queued)
        return [view.apply(manifest, workers), *others], starting, counts
    counts = count_pods(job.parallelism, pods, past, view.now)
    if job.leaving:
        removed = f"no workers: Job {job.name} is being removed and is then made anew"
        return others, removed, counts
    if job.finished:
        again, sentence = _finished_early(view, job, counts)
        return [*again, *others], sentence, counts
    waits = past.losses[job.uid].seconds_to_wait(view.now)
    if not queued and not job.suspended and _is_held_back(job, pods, waits):
        return [*view.remove([job]), *others], of_anew(job, counts), counts
    workers, lost = job.parallelism, 0
    if not queued:
        # A pod on a node that is gone holds its place in the Job until the node is given up.
        workers, lost = view.wanted(manifest, job.workers, counts.running), counts.lost
        if job.suspended or workers + lost != job.parallelism:
            others = [view.apply(manifest, workers, lost=lost), *others]
    if job.suspended:
        return others, of_starting(workers, queued=queued), counts
    return others, of_workers(job, counts, view.now - job.created_at, held_back=waits > 0), counts


def _is_held_back(job: ObservedJob, pods: Sequence[ObservedPod], waits: float) -> bool:
    """Whether another Job costs the workers that are there less than waiting costs the others."""
    own = [pod for pod in pods if pod.job_uid == job.uid]
    there = sum(pod.phase not in ("Succeeded", "Failed") for pod in own)
    missing = job.parallelism - there
    return waits > _PATIENCE_SECONDS and missing * waits > there * _RESTART_SECONDS


def _finished_early(
    view: _View, job: ObservedJob, counts: PodPhaseCounts
) -> tuple[list[Action], str]:
    finished_at = job.finished_at if job.finished_at is not None else view.now
    if job.complete:
        due = view.now >= finished_at + _COMPLETE_SECONDS
        early = f"no workers: those of Job {job.name} ended early, and are started anew"
        return view.remove([job] if due else []), early
    if job.failure != _TOO_OFTEN:
        return [], of_failed(job, counts, None)
    left = finished_at + view.settings.retry_seconds - view.now
    return view.remove([job] if left <= 0 else []), of_failed(job, counts, left)


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
        elif not job.suspended and not job.leaving:
            workers = job.workers or job.parallelism
            actions.append(view.apply(manifest, workers, suspend=True))
    return actions


def _end(view: _View) -> list[Action]:
    ended_at = view.design.ended_at
    overdue = ended_at is not None and view.now > ended_at + view.settings.finish_seconds
    return view.remove(job for job in view.jobs if not job.finished and (job.suspended or overdue))
