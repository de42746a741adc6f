"""DesignJobs: the custom resource of design jobs, and its pure reconciler.

Reconciliation is level-triggered: it maps the present objects and jobs to actions, so it makes the
same decisions after a crash between any two actions.

* An object applied by a user has one job, whose id is derived from the object's uid, so that
  repeated submissions find it. A job submitted by gRPC has one object, its mirror.
* Pause, priority and budgets can be changed in the object or by gRPC. A generation that `status`
  has not observed is a user's change and is applied to the job; otherwise the job's settings are
  written to the object.
* The finalizer stays while the job may run: deleting an object cancels its job. The job, its
  history and its tables stay on the farm.
* A mirror is deleted with its job. A user's object without a job stays and reports that the job is
  missing.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, TypeAlias

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

from remy_farm.specification import MODES, to_yaml
from remy_farm.specification.reading import fill, plain_scalar, read_yaml
from remy_farm.specification.schema import (
    descriptor_of,
    enum_of,
    int_or_none,
    is_submessage,
    short_name,
    submessage_of,
)
from remy_proto.v1 import design_service_pb2 as messages
from remy_proto.v1 import job_pb2, progress_pb2, spec_pb2
from remy_services.jobs.requests import new_job_id
from remy_services.jobs.states import (
    ACTIVE,
    CANCELLING,
    FAILED,
    FINAL,
    PAUSED,
    PAUSING,
    PENDING,
    SUCCEEDED,
    TRANSITIONS,
    name_of,
)
from remy_services.kubernetes.manifest import label_of
from remy_services.kubernetes.observed import JOB_ID_LABEL

API_VERSION: Final = "remy-farm.dev/v1alpha1"
KIND: Final = "DesignJob"
#: Paths in `spec.design` that may change; the CRD's schema makes all others immutable.
MUTABLE: Final = (
    ("stop",),
    *(("search", mode.name, "steps") for mode in MODES if "steps" in mode.lengths),
)
#: Phase of an object that the farm refuses; `status.message` says why.
REFUSED: Final = "Refused"
#: Phase of an object whose job no longer exists.
MISSING: Final = "Missing"


def _phase(state: job_pb2.JobState) -> str:
    return name_of(state).capitalize()


PHASES: Final = (*(_phase(state) for state in TRANSITIONS), REFUSED, MISSING)
FINALIZER: Final = "remy-farm.dev/cancel"
#: Field managers of fields that the coordinator adds to objects, and of mirror objects.
MANAGER: Final = "remy-farm-coordinator"
MIRROR_MANAGER: Final = "remy-farm-mirror"

#: Largest integer of the API's JSON.
_LARGEST_INT64: Final = 2**63 - 1
#: Minimum interval between status writes that only change progress.
_PROGRESS_SECONDS: Final = 10.0
_PROGRESS: Final = frozenset(
    {"message", "epoch", "step", "rules", "score", "scoreError", "workers", "cpuSeconds"}
)
_NOT_IN_NAMES: Final = re.compile(r"[^a-z0-9]+")
#: Maximum length of names from which other names are derived.
_LONGEST: Final = 200
_GONE: Final = (
    "the farm no longer has this job: it was deleted or lost with its store; delete this object "
    "and "
    "apply it again to start a new design"
)


@dataclass(frozen=True)
class ObservedDesignJob:
    """Observed state of a DesignJob object."""

    name: str
    namespace: str
    uid: str
    version: str
    generation: int
    created_at: int
    label: str
    #: Whether the object is being deleted, and whether it has our finalizer.
    deleting: bool
    has_finalizer: bool
    #: Whether the object mirrors a job that was submitted by gRPC.
    mirror: bool
    spec: Mapping[str, Any]
    status: Mapping[str, Any]

    @property
    def job_id(self) -> str:
        """Id of the job of a user's object. Sorts by creation time, like all job ids."""
        return new_job_id(self.created_at, hashlib.sha256(self.uid.encode()).digest())

    @property
    def is_observed(self) -> bool:
        """Whether the status belongs to the present spec."""
        return bool(self.status.get("observedGeneration") == self.generation)

    @property
    def design(self) -> Mapping[str, Any]:
        """The specification, as applied."""
        design: Mapping[str, Any] = self.spec["design"]
        return design

    def condition(self, kind: str) -> Mapping[str, Any]:
        """Returns the status condition of this type, or an empty mapping."""
        conditions: Iterable[Mapping[str, Any]] = self.status.get("conditions") or ()
        return next((each for each in conditions if each["type"] == kind), {})

    def manifest(self, kind: str = KIND, **rest: Any) -> dict[str, Any]:
        """Builds a manifest for this object; the uid excludes a recreated object."""
        metadata = {"name": self.name, "uid": self.uid, **rest.pop("metadata", {})}
        return {"apiVersion": API_VERSION, "kind": kind, "metadata": metadata, **rest}

    def reference(self) -> dict[str, Any]:
        """Returns an owner reference to the object."""
        return {"apiVersion": API_VERSION, "kind": KIND, "name": self.name, "uid": self.uid}


def observed_design_job(found: Mapping[str, Any]) -> ObservedDesignJob:
    """Parses a DesignJob from the API's JSON."""
    metadata = found["metadata"]
    managers = {each.get("manager") for each in metadata.get("managedFields") or ()}
    created = datetime.fromisoformat(metadata["creationTimestamp"])
    return ObservedDesignJob(
        name=metadata["name"],
        namespace=metadata["namespace"],
        uid=metadata["uid"],
        version=metadata["resourceVersion"],
        generation=metadata["generation"],
        created_at=int(created.timestamp()),
        label=(metadata.get("labels") or {}).get(JOB_ID_LABEL, ""),
        deleting="deletionTimestamp" in metadata,
        has_finalizer=FINALIZER in (metadata.get("finalizers") or ()),
        mirror=MIRROR_MANAGER in managers,
        spec=found["spec"],
        status=found.get("status") or {},
    )


@dataclass(frozen=True)
class Known:
    """The coordinator's memory about an object, which may be lost in a restart."""

    #: Generation of the last refusal, and its reason.
    refused: int = 0
    refusal: str = ""
    #: Status field `result` of the published results.
    result: Mapping[str, Any] | None = None
    #: Unix time of the last status write.
    written_at: float = 0.0


@dataclass(frozen=True)
class ApplyObject:
    """Apply the coordinator's fields of an object. The kind `.../status` applies the status."""

    uid: str
    manifest: Mapping[str, Any]
    manager: str = MANAGER


@dataclass(frozen=True)
class ChangeSpec:
    """Patch an object unless it has changed, then set its status as observed."""

    uid: str
    name: str
    patch: Mapping[str, Any]
    status: Mapping[str, Any]


@dataclass(frozen=True)
class RemoveObject:
    """Delete the object."""

    uid: str
    name: str


@dataclass(frozen=True)
class Ask:
    """Send a request to the farm. `job_id` is the id of a job to be submitted."""

    uid: str
    generation: int
    request: Message
    job_id: str = ""
    paused: bool = False


@dataclass(frozen=True)
class Publish:
    """Write the job's table, scores and digest to a ConfigMap."""

    uid: str
    seen: ObservedDesignJob
    job: job_pb2.Job


ObjectAction: TypeAlias = ApplyObject | ChangeSpec | RemoveObject | Ask | Publish


def reconcile_objects(
    objects: Iterable[ObservedDesignJob],
    jobs: Mapping[str, job_pb2.Job | None],
    known: Mapping[str, Known],
    now: float,
) -> Iterator[ObjectAction]:
    """Yields the next actions in order; `now` is Unix time.

    `jobs` are all jobs of the farm by id; None marks a job that another coordinator holds. If an
    action fails or is refused, later actions for the same object must be skipped.
    """
    by_label = {label_of(job_id): job_id for job_id in jobs}
    mirrored = set()
    for seen in objects:
        job_id = by_label.get(seen.label, "") if seen.mirror else seen.job_id
        mirrored.add(job_id)
        if job_id in jobs and jobs[job_id] is None:
            continue
        pair = _Pair(seen, jobs.get(job_id), known.get(seen.uid, Known()), now)
        yield from pair.reconcile_deletion() if seen.deleting else pair.reconcile()
    for job_id, job in jobs.items():
        # Evaluation jobs have no specification that a DesignJob could hold.
        if job is None or job.HasField("evaluation"):
            continue
        if job_id not in mirrored and job.state not in FINAL:
            yield ApplyObject(job_id, mirror_of(job), MIRROR_MANAGER)


@dataclass(frozen=True)
class _Pair:
    """An object and its job."""

    seen: ObservedDesignJob
    job: job_pb2.Job | None
    known: Known
    now: float

    @property
    def refusal(self) -> str:
        """Why the present spec was refused; empty if it was accepted."""
        if self.known.refused == self.seen.generation:
            return self.known.refusal
        accepted = self.seen.condition("Accepted")
        is_told = self.seen.is_observed and accepted.get("reason") == REFUSED
        return str(accepted["message"]) if is_told else ""

    def reconcile_deletion(self) -> Iterator[ObjectAction]:
        """Cancels the job of an object that is being deleted, then removes the finalizer."""
        if self.job is None or self.job.state in FINAL:
            yield from self.set_finalizer(False)
            return
        if self.job.state != CANCELLING:
            yield self.ask(messages.CancelJobRequest(job=self.job.id))
        yield from self.write(self.status(self.seen.status.get("observedGeneration", 0)))

    def reconcile(self) -> Iterator[ObjectAction]:
        """Reconciles an object that is not being deleted."""
        if self.job is not None:
            yield from self.reconcile_job(self.job)
        elif self.seen.mirror:
            yield RemoveObject(self.seen.uid, self.seen.name)
        elif self.known.refused == self.seen.generation or self.seen.status.get("jobID"):
            yield from self.set_finalizer(False)
            yield from self.write(self.status(self.seen.generation))
        else:
            yield from self.set_finalizer(True)
            yield self.submission()

    def reconcile_job(self, job: job_pb2.Job) -> Iterator[ObjectAction]:
        seen, observed = self.seen, self.seen.status.get("observedGeneration", 0)
        if seen.has_finalizer != (job.state not in FINAL):
            # Further actions apply to the version that this write creates.
            yield from self.set_finalizer(not seen.has_finalizer)
            return
        if self.refusal:
            observed = seen.generation
        elif seen.is_observed:
            if patch := _patch_for_object(seen, job):
                version = {"resourceVersion": seen.version}
                patch = {"metadata": version, "spec": patch}
                yield ChangeSpec(seen.uid, seen.name, patch, self.status(observed))
                return
        elif job.state not in (PAUSING, CANCELLING):
            # The change counts as observed once it is requested, so later changes by clients are
            # not undone.
            yield from map(self.ask, _requests_for_job(seen, job))
            observed = seen.generation
        if job.state in FINAL and job.progress.step and self.result.get("revision") != job.revision:
            yield Publish(seen.uid, seen, job)
            return
        yield from self.write(self.status(observed))

    @property
    def result(self) -> Mapping[str, Any]:
        return self.known.result or self.seen.status.get("result") or {}

    def set_finalizer(self, wanted: bool) -> Iterator[ObjectAction]:
        """Adds or removes the finalizer."""
        seen = self.seen
        if wanted != seen.has_finalizer:
            job_id = seen.job_id if self.job is None else self.job.id
            metadata = {
                "labels": {JOB_ID_LABEL: label_of(job_id)},
                "finalizers": [FINALIZER] if wanted else [],
            }
            yield ApplyObject(seen.uid, seen.manifest(metadata=metadata))

    def ask(self, request: Message) -> ObjectAction:
        return Ask(self.seen.uid, self.seen.generation, request)

    def submission(self) -> ObjectAction:
        seen, spec = self.seen, self.seen.spec
        tree = {"name": seen.name, **with_numbers(seen.design, descriptor_of(spec_pb2.DesignSpec))}
        request = messages.SubmitJobRequest(
            spec_text=json.dumps(tree),
            name=seen.name,
            priority=spec.get("priority", 0),
            weight=float(spec.get("weight", 1)),
            queue_name=spec.get("queueName", ""),
        )
        return Ask(seen.uid, seen.generation, request, seen.job_id, spec.get("paused", False))

    def write(self, status: Mapping[str, Any]) -> Iterator[ObjectAction]:
        """Writes the status and emits events, unless the status is unchanged."""
        before = self.seen.status
        changed = {
            key for key in before.keys() | status.keys() if before.get(key) != status.get(key)
        }
        if not changed:
            return
        is_due = self.now >= self.known.written_at + _PROGRESS_SECONDS
        if changed <= _PROGRESS and not is_due:
            return
        yield from self.events(status)
        yield ApplyObject(self.seen.uid, self.seen.manifest(f"{KIND}/status", status=status))

    def status(self, observed: int) -> dict[str, Any]:
        """Builds the status, with `observed` as the observed generation."""
        job, seen = self.job, self.seen
        status: dict[str, Any] = {"observedGeneration": observed}
        if job is None:
            status["phase"] = MISSING if seen.status.get("jobID") else REFUSED
            status["message"] = self.refusal or _GONE
            if seen.status.get("jobID"):
                status = {**seen.status, **status}
        else:
            status |= _progress_fields(job)
            if self.result:
                status["result"] = dict(self.result)
        status["conditions"] = list(self.conditions(status["phase"]))
        return status

    def conditions(self, phase: str) -> Iterator[dict[str, Any]]:
        job = self.job
        state = job.state if job is not None else job_pb2.JOB_STATE_UNSPECIFIED
        if why := self.refusal or ("" if job is not None else _GONE):
            yield self.condition("Accepted", False, MISSING if phase == MISSING else REFUSED, why)
        else:
            yield self.condition("Accepted", True, "Accepted", "the farm accepted this spec")
        yield self.condition("Running", state in ACTIVE, phase)
        complete, failed = phase, phase
        message = ""
        if job is not None and state == SUCCEEDED:
            complete = _camel(progress_pb2.StopReason.Name(job.stop_reason), "STOP_REASON_")
        if job is not None and state == FAILED:
            failed = _camel(job_pb2.FailureReason.Name(job.failure_reason), "FAILURE_REASON_")
            message = job.status_message
        yield self.condition("Complete", state == SUCCEEDED, complete)
        yield self.condition("Failed", state == FAILED, failed, message)

    def condition(self, kind: str, is_true: bool, reason: str, message: str = "") -> dict[str, Any]:
        old = self.seen.condition(kind)
        value = "True" if is_true else "False"
        same = old.get("status") == value
        return {
            "type": kind,
            "status": value,
            "lastTransitionTime": old["lastTransitionTime"] if same else _stamp(self.now),
            "reason": reason,
            "message": message,
        }

    def events(self, status: Mapping[str, Any]) -> Iterator[ObjectAction]:
        """Emits Kubernetes events for a status change; repeated ones after a crash have the same
        name.
        """
        before, phase = self.seen.status, status["phase"]
        accepted = status["conditions"][0]
        was_accepted = self.seen.condition("Accepted").get("status", "True")
        message = status.get("message", "")
        if phase != before.get("phase"):
            warns = phase in ("Failed", REFUSED, MISSING)
            text = message or f"job {status.get('jobID', '')}: {phase.lower()}"
            yield self.event(phase, text, warns=warns)
        if accepted["status"] == "False" != was_accepted and self.job is not None:
            yield self.event("ChangeRefused", accepted["message"], warns=True)
        if status.get("epoch", 0) > before.get("epoch", 0):
            text = f"epochs done: {status['epoch']}, rules: {status['rules']}"
            score = f", score {status['score']}" if "score" in status else ""
            yield self.event("EpochFinished", text + score)

    def event(self, reason: str, message: str, *, warns: bool = False) -> ObjectAction:
        seen, stamp = self.seen, _stamp(self.now)
        digest = hashlib.sha256(f"{seen.uid}/{seen.version}/{reason}".encode()).hexdigest()[:16]
        event = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": f"{seen.name[:_LONGEST]}.{digest}"},
            "involvedObject": {
                **seen.reference(),
                "namespace": seen.namespace,
                "resourceVersion": seen.version,
            },
            "type": "Warning" if warns else "Normal",
            "reason": reason,
            "message": message[:1000],
            "source": {"component": MANAGER},
            "firstTimestamp": stamp,
            "lastTimestamp": stamp,
            "count": 1,
        }
        return ApplyObject(seen.uid, event)


def _progress_fields(job: job_pb2.Job) -> dict[str, Any]:
    """Returns the status fields of a job's progress, without floats."""
    progress = job.progress
    figures: dict[str, Any] = {
        "jobID": job.id,
        "owner": job.owner,
        "phase": _phase(job.state),
        "epoch": progress.epoch,
        "step": progress.step,
        "rules": progress.rules,
        "workers": progress.workers,
        "cpuSeconds": int(progress.cpu_seconds),
    }
    if job.status_message:
        figures["message"] = job.status_message
    validated = progress.HasField("validated_score")
    score = progress.validated_score if validated else progress.score
    if score.HasField("mean"):
        figures["score"] = f"{score.mean:.4f}"
        if score.HasField("standard_error"):
            figures["scoreError"] = f"{score.standard_error:.4f}"
    for name, time in (("startTime", job.start_time), ("completionTime", job.end_time)):
        if time.seconds:
            figures[name] = _stamp(time.seconds)
    return figures


def _requests_for_job(seen: ObservedDesignJob, job: job_pb2.Job) -> Iterator[Message]:
    """Yields the requests that apply the object's settings to the job.

    Budgets that the object omits stay unchanged.
    """
    spec, extend = seen.spec, messages.ExtendJobRequest()
    if spec.get("priority", 0) != job.priority:
        extend.priority = spec.get("priority", 0)
    if "stop" in seen.design and (stop := _stop(seen)) != job.spec.stop:
        extend.stop.CopyFrom(stop)
        extend.stop.SetInParent()
    given, present = _steps(seen, job)
    if given != present:
        extend.joint_steps = given
    if extend.ListFields():
        extend.job = job.id
        yield extend
    if not spec.get("paused", False):
        if job.state == PAUSED:
            yield messages.ResumeJobRequest(job=job.id)
    elif job.state in ACTIVE | {PENDING}:
        yield messages.PauseJobRequest(job=job.id)


def _patch_for_object(seen: ObservedDesignJob, job: job_pb2.Job) -> dict[str, Any]:
    """Returns the merge patch that writes the job's settings to the object's spec."""
    patch: dict[str, Any] = {}
    design: dict[str, Any] = {}
    is_paused = job.state in (PAUSED, PAUSING)
    if job.state not in FINAL | {CANCELLING} and is_paused != seen.spec.get("paused", False):
        patch["paused"] = is_paused
    if job.priority != seen.spec.get("priority", 0):
        patch["priority"] = job.priority
    if job.spec.stop != _stop(seen):
        removed = dict.fromkeys(seen.design.get("stop", {}))
        design["stop"] = {**removed, **tree_of(job.spec.stop)}
    given, present = _steps(seen, job)
    if given != present:
        design["search"] = {_mode(job): {"steps": present}}
    return {**patch, "design": design} if design else patch


def _stop(seen: ObservedDesignJob) -> spec_pb2.Stop:
    stop = spec_pb2.Stop()
    fill(stop, with_numbers(seen.design.get("stop", {}), descriptor_of(stop)))
    return stop


def _steps(seen: ObservedDesignJob, job: job_pb2.Job) -> tuple[int, int]:
    """Returns the schedule's steps in the object and in the job.

    If the object leaves the steps open, both are the job's.
    """
    mode = _mode(job)
    given: Mapping[str, Any] = seen.design.get("search", {}).get(mode, {})
    present = getattr(getattr(job.spec.search, mode), "steps", 0)
    is_open = "cpu_seconds" in given or "simulated_packets" in given
    return (present if is_open else given.get("steps", present)), present


def _mode(job: job_pb2.Job) -> str:
    modes = enum_of(descriptor_of(job.spec.search).fields_by_name["mode"])
    return short_name(modes.values_by_number[job.spec.search.mode])


def mirror_of(job: job_pb2.Job) -> dict[str, Any]:
    """Builds the mirror object of a job that was submitted by gRPC."""
    named_spec = spec_pb2.DesignSpec()
    fill(named_spec, read_yaml(to_yaml(job.spec), "the job's specification"))
    part = _NOT_IN_NAMES.sub("-", job.name.lower())[:_LONGEST].strip("-")
    spec: dict[str, Any] = {
        "design": tree_of(named_spec),
        "priority": job.priority,
        "weight": _decimal(job.weight),
        "queueName": job.queue_name,
        "paused": job.state in (PAUSED, PAUSING),
    }
    metadata = {
        "name": "-".join(filter(None, (part, label_of(job.id).lower()))),
        "labels": {JOB_ID_LABEL: label_of(job.id)},
    }
    return {"apiVersion": API_VERSION, "kind": KIND, "metadata": metadata, "spec": spec}


def tree_of(message: Message) -> dict[str, Any]:
    """Converts a message to a tree with explicit values and without floats."""

    def value_of(field: FieldDescriptor, value: Any) -> Any:
        if is_submessage(field):
            return tree_of(value)
        if field.cpp_type == FieldDescriptor.CPPTYPE_ENUM:
            return short_name(enum_of(field).values_by_number[value])
        is_number = isinstance(value, float | int) and not isinstance(value, bool)
        return _decimal(value) if is_number else value

    return {
        field.name: [value_of(field, each) for each in value]
        if field.is_repeated
        else value_of(field, value)
        for field, value in message.ListFields()
    }


def with_numbers(tree: Any, message: Descriptor) -> Any:
    """Converts quoted decimals in an object's tree to numbers, as in a specification file."""
    if not isinstance(tree, Mapping):
        return tree

    def value_of(field: FieldDescriptor | None, value: Any) -> Any:
        if field is None:
            return value
        if isinstance(value, list):
            return [value_of(field, each) for each in value]
        if is_submessage(field):
            return with_numbers(value, submessage_of(field))
        is_text = field.cpp_type in (FieldDescriptor.CPPTYPE_STRING, FieldDescriptor.CPPTYPE_ENUM)
        return plain_scalar(value) if isinstance(value, str) and not is_text else value

    return {key: value_of(message.fields_by_name.get(key), value) for key, value in tree.items()}


def _decimal(value: float) -> int | str:
    whole = int_or_none(value)
    return repr(value) if whole is None or whole > _LARGEST_INT64 else whole


def _camel(name: str, prefix: str) -> str:
    return name.removeprefix(prefix).title().replace("_", "")


def _stamp(seconds: float) -> str:
    return datetime.fromtimestamp(int(seconds), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
