"""Model of an API server and a farm for tests of the DesignJob reconciler."""

from __future__ import annotations

import copy
import functools
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from remy_farm.specification import parse_spec
from remy_proto.v1 import design_service_pb2 as messages
from remy_proto.v1 import job_pb2
from remy_services.jobs.states import (
    CANCELLED,
    CANCELLING,
    FINAL,
    PAUSED,
    PAUSING,
    PENDING,
    RUNNING,
    SUCCEEDED,
    Operation,
    WrongState,
    state_after,
)
from remy_services.kubernetes.design_jobs import (
    FINALIZER,
    ApplyObject,
    Ask,
    ChangeSpec,
    Known,
    ObjectAction,
    Publish,
    RemoveObject,
    observed_design_job,
    reconcile_objects,
)

NOW = 1_700_000_000.0
DESIGN: Mapping[str, Any] = {
    "network": {
        "rate_mbps": {"uniform": {"low": 10, "high": 20}},
        "rtt_ms": {"exact": "150.5"},
        "senders": {"exact": 2},
        "traffic": {
            "exponential_time": {"mean_ms": {"exact": 5000}},
            "mean_off_ms": {"exact": 5000},
        },
    },
    "search": {"joint": {"steps": 100}},
    "stop": {"epochs": 7},
}


class Crash(Exception):
    """The coordinator crashed before its next action."""


@dataclass
class Model:
    """Objects by name, jobs by id, and the coordinator's memory."""

    now: float = NOW
    objects: dict[str, dict[str, Any]] = field(default_factory=dict)
    jobs: dict[str, job_pb2.Job] = field(default_factory=dict)
    known: dict[str, Known] = field(default_factory=dict)
    events: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    #: Job ids in order of creation.
    created: list[str] = field(default_factory=list)
    published: list[str] = field(default_factory=list)
    versions: int = 0

    # Actions of the coordinator.

    def plan(self) -> list[ObjectAction]:
        seen = [observed_design_job(each) for each in copy.deepcopy(list(self.objects.values()))]
        jobs = {job_id: copy.deepcopy(job) for job_id, job in self.jobs.items()}
        return list(reconcile_objects(seen, jobs, self.known, self.now))

    def step(self, actions_before_crash: int | None = None) -> int:
        """Executes a plan, up to a crash; returns its number of actions."""
        plan = self.plan()
        refused: set[str] = set()
        for number, action in enumerate(plan):
            if number == actions_before_crash:
                self.known = {}
                raise Crash
            if action.uid not in refused and not self.act(action):
                refused.add(action.uid)
        return len(plan)

    def act(self, action: ObjectAction) -> bool:
        match action:
            case ApplyObject():
                self._apply(action)
            case ChangeSpec():
                found = self.objects[action.name]
                assert action.patch["metadata"]["resourceVersion"] == _version(found)
                self.change(action.name, action.patch["spec"])
                status = {**action.status, "observedGeneration": found["metadata"]["generation"]}
                found["status"] = copy.deepcopy(status)
            case RemoveObject():
                self.delete(action.name)
            case Ask():
                return self._ask(action)
            case Publish():
                self.published.append(action.job.id)
                self._remember(action.uid, result={"revision": action.job.revision})
        return True

    def _apply(self, action: ApplyObject) -> None:
        manifest = action.manifest
        name, kind = manifest["metadata"]["name"], manifest["kind"]
        if kind == "Event":
            self.events[name] = manifest
        elif kind.endswith("/status"):
            assert self.objects[name]["metadata"]["uid"] == manifest["metadata"]["uid"]
            self.objects[name]["status"] = copy.deepcopy(manifest["status"])
            self._touch(name)
            self._remember(action.uid, written_at=self.now)
        elif "spec" in manifest:
            if name not in self.objects:
                self.create(name, manifest["spec"], manager=action.manager)
                self.objects[name]["metadata"]["labels"] = dict(manifest["metadata"]["labels"])
        else:
            metadata = self.objects[name]["metadata"]
            metadata["labels"] = dict(manifest["metadata"]["labels"])
            metadata["finalizers"] = list(manifest["metadata"]["finalizers"])
            self._touch(name)
            if "deletionTimestamp" in metadata and not metadata["finalizers"]:
                del self.objects[name]

    def _ask(self, action: Ask) -> bool:
        request: Any = action.request
        try:
            if isinstance(request, messages.SubmitJobRequest):
                self._submit(request, action)
                return True
            job = self.jobs[request.job]
            if isinstance(request, messages.ExtendJobRequest):
                if request.HasField("priority"):
                    job.priority = request.priority
                if request.HasField("stop") or request.joint_steps:
                    self._move(job, state_after(Operation.EXTEND, job.state))
                    if request.HasField("stop"):
                        job.spec.stop.CopyFrom(request.stop)
                    if request.joint_steps:
                        job.spec.search.joint.steps = request.joint_steps
            else:
                operation = {
                    messages.PauseJobRequest: Operation.PAUSE,
                    messages.ResumeJobRequest: Operation.RESUME,
                    messages.CancelJobRequest: Operation.CANCEL,
                }[type(request)]
                self._move(job, state_after(operation, job.state))
        except WrongState as error:
            self._remember(action.uid, refused=action.generation, refusal=str(error))
            return False
        return True

    def _submit(self, request: messages.SubmitJobRequest, action: Ask) -> None:
        assert action.job_id not in self.created, "a second job"
        job = job_pb2.Job(
            id=action.job_id,
            name=request.name,
            owner="kubernetes/research",
            priority=request.priority,
            weight=request.weight,
            queue_name=request.queue_name,
            spec=_parsed(request.spec_text),
            state=PAUSED if action.paused else PENDING,
            revision=1,
        )
        self.jobs[job.id] = job
        self.created.append(job.id)

    def _remember(self, uid: str, **changes: Any) -> None:
        self.known[uid] = replace(self.known.get(uid, Known()), **changes)

    # Actions of users, clients and jobs.

    def create(self, name: str, spec: Mapping[str, Any], *, manager: str = "kubectl") -> None:
        """Creates an object, like a user or the coordinator."""
        self.versions += 1
        self.objects[name] = {
            "metadata": {
                "name": name,
                "namespace": "research",
                "uid": f"uid-{self.versions}",
                "generation": 1,
                "creationTimestamp": "2026-01-01T00:00:00Z",
                "managedFields": [{"manager": manager}],
            },
            "spec": copy.deepcopy(dict(spec)),
        }
        self._touch(name)

    def change(self, name: str, patch: Mapping[str, Any]) -> None:
        """Merges a patch into the spec."""
        found = self.objects[name]
        before = copy.deepcopy(found["spec"])
        _merge(found["spec"], patch)
        if found["spec"] != before:
            found["metadata"]["generation"] += 1
        self._touch(name)

    def delete(self, name: str) -> None:
        """Deletes an object; with a finalizer, only marks it for deletion."""
        metadata = self.objects[name]["metadata"]
        if FINALIZER in metadata.get("finalizers", ()):
            if "deletionTimestamp" not in metadata:
                metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
                metadata["generation"] += 1
                self._touch(name)
        else:
            del self.objects[name]

    def call(self, job_id: str, operation: Operation) -> None:
        """Executes a client's operation if the job's state allows it."""
        job = self.jobs[job_id]
        try:
            following = state_after(operation, job.state)
        except WrongState:
            return
        if operation is Operation.DELETE:
            del self.jobs[job_id]
        else:
            if operation is Operation.EXTEND:
                job.spec.stop.epochs += 1
            self._move(job, following)

    def run(self, job_id: str) -> None:
        """Moves a job to its next state."""
        job = self.jobs[job_id]
        following = {PENDING: RUNNING, RUNNING: SUCCEEDED, PAUSING: PAUSED, CANCELLING: CANCELLED}
        if job.state == RUNNING:
            job.progress.step += 1
        self._move(job, following.get(job.state, job.state))

    def settle(self) -> None:
        """Runs the coordinator until it has nothing left to do."""
        for _ in range(50):
            self.now += 100
            for job in self.jobs.values():
                if job.state in (PAUSING, CANCELLING):
                    self.run(job.id)
            if not self.step():
                return
        raise AssertionError(f"the plan does not settle: {self.plan()}")

    def job_of_object(self, name: str) -> job_pb2.Job:
        """Returns the job of a user's object."""
        return self.jobs[observed_design_job(self.objects[name]).job_id]

    def accepted(self, name: str) -> Mapping[str, Any]:
        return observed_design_job(self.objects[name]).condition("Accepted")

    def check(self) -> None:
        """Asserts the invariants of a settled state."""
        assert len(set(self.created)) == len(self.created)
        seen = [observed_design_job(each) for each in self.objects.values()]
        labels = [each.label for each in seen]
        assert len(set(labels)) == len(labels)
        for each in seen:
            assert not each.deleting
            assert each.status["observedGeneration"] == each.generation
            job = self.jobs.get(each.label)
            assert each.has_finalizer == (job is not None and job.state not in FINAL)
            if job is None:
                assert not each.mirror
                assert each.status["phase"] == "Missing"
            elif each.condition("Accepted")["status"] == "True":
                assert each.spec.get("priority", 0) == job.priority
                assert each.design["stop"]["epochs"] == job.spec.stop.epochs
                if job.state not in FINAL:
                    assert each.spec.get("paused", False) == (job.state == PAUSED)
        assert {job.id for job in self.jobs.values() if job.state not in FINAL} <= set(labels)

    def _move(self, job: job_pb2.Job, state: job_pb2.JobState) -> None:
        if state == job.state:
            return
        job.state = state
        job.revision += 1

    def _touch(self, name: str) -> None:
        self.versions += 1
        self.objects[name]["metadata"]["resourceVersion"] = str(self.versions)


_parsed = functools.cache(parse_spec)


def _version(found: Mapping[str, Any]) -> str:
    return str(found["metadata"]["resourceVersion"])


def _merge(into: dict[str, Any], patch: Mapping[str, Any]) -> None:
    for key, value in patch.items():
        if value is None:
            into.pop(key, None)
        elif isinstance(value, Mapping):
            _merge(into.setdefault(key, {}), value)
        else:
            into[key] = value
