"""What to do so that the cluster's Jobs are those that the designs want. Pure: time is passed in.

The whole is level-triggered: a decision needs only what is there now, so that a launcher that
starts anew adopts the Jobs it finds, and one that missed something makes up for it.

* A running design has one Job, by a name that holds a digest of its pods' template. Jobs of
  another template are removed once this one is made, so that an upgrade replaces workers.
* A paused design keeps its Job, suspended; one that waits in a Kueue queue loses it.
* The workers of a design that ended end by themselves; what remains is removed after a while.
* A Job of no design is removed.
* A Job that failed too often is made anew after a while. One that failed by the exit code of a
  defect stays as it is until the design is paused, or the template changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from remy_services.kubernetes import sentences
from remy_services.kubernetes.census import Census, Past, remember, take_census
from remy_services.kubernetes.designs import Design, Phase
from remy_services.kubernetes.errors import Refused
from remy_services.kubernetes.manifest import is_queued, job_of, label_of, threads_of
from remy_services.kubernetes.observed import (
    WORKERS_ANNOTATION,
    ObservedJob,
    ObservedPod,
)
from remy_services.kubernetes.settings import LauncherSettings, Owner
from remy_services.kubernetes.sizing import workers_wanted

_TOO_OFTEN: Final = "BackoffLimitExceeded"
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
    censuses: Mapping[str, Census] = field(default_factory=dict)
    #: Pods that have ended, by design.
    past: Mapping[str, Past] = field(default_factory=dict)


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
    censuses: dict[str, Census] = {}
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
        remembered[design.job_id] = remember(past.get(design.job_id, Past()), view.pods, now)
        if design.phase is Phase.RUNNING:
            more, sentence, census = _run(view, remembered[design.job_id])
            actions += more
            said[design.job_id], censuses[design.job_id] = sentence, census
        elif design.phase is Phase.PAUSED:
            actions += _pause(view)
        else:
            actions += _end(view)
    actions += [
        Remove(job.job_id, job.name) for job in jobs if job.job_id not in owned and not job.leaving
    ]
    return Plan(tuple(actions), said, censuses, remembered)


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
        if not is_queued(self.settings.template):
            spec["suspend"] = suspend
        changed = {"metadata": {**metadata, "annotations": annotations}, "spec": spec}
        return Apply(self.design.job_id, {**manifest, **changed})

    def wanted(self, manifest: Mapping[str, Any], present: int | None) -> int:
        design = self.design
        return workers_wanted(
            design.workers, design.load, threads_of(manifest), present, self.settings
        )


def _run(view: _View, past: Past) -> tuple[list[Action], str, Census]:
    try:
        manifest = job_of(view.design, view.settings, view.owner)
    except Refused as refusal:
        return view.remove(view.jobs), sentences.of_refusal(str(refusal)), Census()
    name = manifest["metadata"]["name"]
    job = next((job for job in view.jobs if job.name == name), None)
    pods = [pod for pod in view.pods if pod.job_name == name]
    others = view.remove(each for each in view.jobs if each.name != name)
    if job is None:
        workers = view.wanted(manifest, None)
        census = take_census(workers, pods, past, view.now)
        return [view.apply(manifest, workers), *others], sentences.of_starting(workers), census
    census = take_census(job.parallelism, pods, past, view.now)
    if job.leaving:
        return others, sentences.of_leaving(job), census
    if job.finished:
        again, sentence = _finished_early(view, job, census)
        return [*again, *others], sentence, census
    workers, lost = job.parallelism, 0
    if not is_queued(view.settings.template):
        # A pod on a node that is gone holds its place in the Job until the node is given up.
        workers, lost = view.wanted(manifest, job.workers), census.lost
        if job.suspended or workers + lost != job.parallelism:
            others = [view.apply(manifest, workers, lost=lost), *others]
    if job.suspended:
        return others, sentences.of_starting(workers), census
    return others, sentences.of_workers(job, census, view.now - job.created_at), census


def _finished_early(view: _View, job: ObservedJob, census: Census) -> tuple[list[Action], str]:
    finished_at = job.finished_at if job.finished_at is not None else view.now
    if job.complete:
        due = view.now >= finished_at + _COMPLETE_SECONDS
        return view.remove([job] if due else []), sentences.of_complete(job)
    if job.failure != _TOO_OFTEN:
        return [], sentences.of_failed(job, census, None)
    left = finished_at + view.settings.retry_seconds - view.now
    return view.remove([job] if left <= 0 else []), sentences.of_failed(job, census, left)


def _pause(view: _View) -> list[Action]:
    try:
        manifest = job_of(view.design, view.settings, view.owner)
    except Refused:
        return view.remove(view.jobs)
    actions: list[Action] = []
    for job in view.jobs:
        keeps = (
            job.name == manifest["metadata"]["name"]
            and not job.finished
            and not is_queued(view.settings.template)
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
