"""Kubernetes controller that synchronizes DesignJob objects with the farm's jobs."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import time
from base64 import b64encode
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any, Final

import grpc
import structlog
from google.protobuf.json_format import MessageToDict

from remy_farm.specification import parse_spec
from remy_farm.specification.reading import fill
from remy_farm.specification.referenced_files import named_files
from remy_farm.specification.traces import LinkTrace
from remy_proto.v1 import design_service_pb2 as messages
from remy_proto.v1 import job_pb2, spec_pb2
from remy_services.coordinator.access import Caller, Role, set_caller
from remy_services.coordinator.farm import Farm
from remy_services.coordinator.handlers import changes, queries
from remy_services.coordinator.job_handle import JobHandle
from remy_services.coordinator.maintenance import BackgroundTask
from remy_services.coordinator.middleware import refusal_of
from remy_services.coordinator.refusals import CallRefused, invalid_field
from remy_services.jobs.states import FINAL
from remy_services.kubernetes.cluster import Cluster, Gone, KubernetesCluster, Listed
from remy_services.kubernetes.design_jobs import (
    KIND,
    MANAGER,
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
from remy_services.kubernetes.manifest import KubernetesError
from remy_services.kubernetes.reconciliation import Backoff
from remy_services.stores.recordings import put_recording

_log = structlog.get_logger()

#: Interval between reconciliations when no object has changed.
_LOOK_SECONDS: Final = 1.0
#: Timeout of a call to the farm; a healthy store is much faster.
_CALL_SECONDS: Final = 10.0
_RETRY_SECONDS: Final = 5.0
#: Limit of a result ConfigMap's contents; the rest of a MiB is left for its metadata.
_MOST_BYTES: Final = 1_000_000
_LONGEST_REFUSAL: Final = 1000
#: Limit of all files that a specification names; each ConfigMap has at most 1 MiB.
_MOST_FILES_BYTES: Final = 8 << 20
#: Form of a file name in a specification: CONFIGMAP/KEY.
_FILE: Final = re.compile(
    r"(?P<config_map>[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?)/(?P<key>[-._a-zA-Z0-9]{1,253})"
)
#: Prefix of job owners. Token names have no slash, so it cannot be a user.
_OWNER: Final = "kubernetes/"

_CALLS: Final[Mapping[type, Callable[[Farm, Any], Awaitable[Any]]]] = {
    messages.PauseJobRequest: changes.pause_job,
    messages.ResumeJobRequest: changes.resume_job,
    messages.CancelJobRequest: changes.cancel_job,
    messages.ExtendJobRequest: changes.extend_job,
}


class DesignJobController(BackgroundTask):
    """Executes the actions of `reconcile_objects`. Runs in the farm's event loop."""

    def __init__(self, farm: Farm, cluster: Cluster | None = None) -> None:
        self._farm = farm
        self._cluster = cluster or KubernetesCluster(None)
        #: Observed objects by uid; None before the first list.
        self._objects: dict[str, Mapping[str, Any]] | None = None
        #: Resource versions that this controller wrote and has not yet observed, by uid. The
        #: observed #: object is older until then.
        self._written: dict[str, str] = {}
        self._known: dict[str, Known] = {}
        self._backoffs: dict[str, Backoff] = {}
        self._changed = asyncio.Event()

    async def _run(self) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._run_forever(self._watch))
                group.create_task(self._run_forever(self._work))
        finally:
            await self._cluster.close()

    async def _run_forever(self, loop: Callable[[], Awaitable[None]]) -> None:
        last_error = ""
        while True:
            try:
                await loop()
            except KubernetesError as trouble:
                if last_error != (last_error := str(trouble)):
                    _log.warning(
                        "the design-job controller lost the Kubernetes API", why=last_error
                    )
            except Exception as error:
                _log.error("the design-job controller failed and is restarted", exc_info=error)
            await asyncio.sleep(_RETRY_SECONDS)

    async def _watch(self) -> None:
        async for change in self._cluster.watch(KIND):
            if isinstance(change, Listed):
                self._objects = {each["metadata"]["uid"]: each for each in change.objects}
                self._written.clear()
            elif self._objects is not None:
                uid, version = map(change.object["metadata"].get, ("uid", "resourceVersion"))
                self._objects.pop(uid, None)
                if not isinstance(change, Gone):
                    self._objects[uid] = change.object
                if isinstance(change, Gone) or self._written.get(uid) == version:
                    self._written.pop(uid, None)
            self._changed.set()

    async def _work(self) -> None:
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_LOOK_SECONDS):
                    await self._changed.wait()
            self._changed.clear()
            if self._objects is not None and not self._farm.closing:
                await self._step(self._objects)

    async def _step(self, objects: Mapping[str, Mapping[str, Any]]) -> None:
        farm, now = self._farm, time.time()
        self._known = {uid: each for uid, each in self._known.items() if uid in objects}
        self._backoffs = {
            uid: each for uid, each in self._backoffs.items() if now < each.until + 60
        }
        jobs = {handle.job_id: self._shown(handle) for handle in farm.catalogue}
        seen = [observed_design_job(each) for each in objects.values()]
        blocked = set(self._written)
        for action in reconcile_objects(seen, jobs, self._known, now):
            wait = self._backoffs.get(action.uid)
            if action.uid in blocked or (wait is not None and now < wait.until):
                continue
            try:
                if not await self._act(action):
                    blocked.add(action.uid)
                self._backoffs.pop(action.uid, None)
            except (KubernetesError, CallRefused) as trouble:
                blocked.add(action.uid)
                self._backoffs[action.uid] = Backoff.after(wait, str(trouble), now)
                if wait is None or wait.why != str(trouble):
                    _log.warning(
                        "an action on a design job failed and will be retried",
                        uid=action.uid,
                        why=str(trouble),
                    )

    def _shown(self, handle: JobHandle) -> job_pb2.Job | None:
        if handle.job.state in FINAL:
            return handle.job
        return None if handle.token is None else self._farm.shown(handle)

    async def _act(self, action: ObjectAction) -> bool:
        """Executes an action; returns False if it was refused permanently.

        Raises retryable errors.
        """
        match action:
            case ApplyObject():
                self._record_written(await self._cluster.apply(action.manifest, action.manager))
                if "status" in action.manifest:
                    self._remember(action.uid, written_at=time.time())
            case ChangeSpec():
                changed = await self._cluster.change(KIND, action.name, action.patch)
                seen = observed_design_job(changed)
                status = {**action.status, "observedGeneration": seen.generation}
                manifest = seen.manifest(f"{KIND}/status", status=status)
                self._record_written(await self._cluster.apply(manifest, MANAGER))
            case RemoveObject():
                await self._cluster.remove(action.name, KIND)
            case Ask():
                self._changed.set()
                return await self._ask(action)
            case Publish():
                self._remember(action.uid, result=await self._publish(action))
                self._changed.set()
        return True

    def _record_written(self, found: Mapping[str, Any]) -> None:
        uid, version = found["metadata"]["uid"], found["metadata"]["resourceVersion"]
        observed = (self._objects or {}).get(uid)
        if observed is not None and observed["metadata"]["resourceVersion"] != version:
            self._written[uid] = version

    def _remember(self, uid: str, **changes: Any) -> None:
        self._known[uid] = replace(self._known.get(uid, Known()), **changes)

    async def _ask(self, action: Ask) -> bool:
        """Sends a request to the farm.

        Returns False, and remembers why, if the farm refuses it permanently.
        """
        farm, request = self._farm, action.request
        assert self._objects is not None
        namespace = self._objects[action.uid]["metadata"]["namespace"]
        set_caller(Caller(_OWNER + namespace, Role.ADMIN))
        try:
            async with asyncio.timeout(_CALL_SECONDS):
                if isinstance(request, messages.SubmitJobRequest):
                    await self._enclose(request, namespace)
                    await changes.submit_job(
                        farm, request, job_id=action.job_id, paused=action.paused
                    )
                else:
                    await _CALLS[type(request)](farm, request)
        except TimeoutError as late:
            raise CallRefused(grpc.StatusCode.UNAVAILABLE, "the store is not available") from late
        except KubernetesError:
            raise
        except Exception as error:
            refusal = refusal_of(error, type(request).__name__)
            if refusal.code in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.INTERNAL):
                raise refusal from error
            self._remember(
                action.uid, refused=action.generation, refusal=str(refusal)[:_LONGEST_REFUSAL]
            )
            return False
        return True

    async def _enclose(self, request: messages.SubmitJobRequest, namespace: str) -> None:
        """Replaces the file names in a specification by the contents of ConfigMap keys.

        Stores the link traces among them. Raises CallRefused, SpecError, KubernetesError or
        StoreError.
        """
        named_spec = spec_pb2.DesignSpec()
        # Errors are ignored here, because the submission reports all of them.
        fill(named_spec, json.loads(request.spec_text))
        contents: dict[str, bytes] = {}
        for name in named_files(named_spec):
            if not (parts := _FILE.fullmatch(name)):
                raise invalid_field(
                    "design", f"names the file {name!r}, but must name CONFIGMAP/KEY"
                )
            config_map, key = parts["config_map"], parts["key"]
            found = await self._cluster.config_map(config_map) or {}
            if key not in found:
                problem = f"the namespace {namespace} has no ConfigMap {config_map} with that key"
                raise invalid_field("design", f"names the file {name!r}, but {problem}")
            contents[name] = found[key]
            if sum(map(len, contents.values())) > _MOST_FILES_BYTES:
                most = (
                    f"{_MOST_FILES_BYTES} bytes are allowed; use `remy-farm submit`, which allows "
                    "more"
                )
                raise invalid_field("design", f"names files that are too large: at most {most}")
        if not contents:
            return
        recordings: list[LinkTrace] = []
        environment = self._farm.environment
        spec = await environment.threads.compute(
            lambda: parse_spec(request.spec_text, files=contents, keep=recordings.append)
        )
        for recording in recordings:
            await environment.threads.store(
                put_recording, environment.store, recording.opportunities_us
            )
        request.spec.CopyFrom(spec)

    async def _publish(self, action: Publish) -> Mapping[str, Any]:
        """Publishes an ended job's results in a ConfigMap; returns the status field `result`."""
        farm, job, seen = self._farm, action.job, action.seen
        result: dict[str, Any] = {"revision": job.revision}
        try:
            table = await queries.get_remycc(
                farm, messages.GetRemyCCRequest(job=job.id, format=messages.REMY_CC_FORMAT_JSON)
            )
            epochs = await queries.list_epochs(farm, messages.ListEpochsRequest(job=job.id))
        except Exception as error:
            return {**result, "message": str(refusal_of(error, "Publish"))}
        binary = {}
        with contextlib.suppress(CallRefused):  # Not every table has a .dna form.
            dna = await queries.get_remycc(
                farm, messages.GetRemyCCRequest(job=job.id, format=messages.REMY_CC_FORMAT_DNA)
            )
            binary["remycc.dna"] = b64encode(dna.content).decode()
        scores = json.dumps([MessageToDict(each.record) for each in epochs.epochs], indent=2)
        data = {"remycc.json": table.content.decode(), "scores.json": scores}
        size = sum(len(each) for each in (*data.values(), *binary.values()))
        if size > _MOST_BYTES:
            why = (
                f"{size} bytes exceed the size of a ConfigMap; download the table with `remy-farm "
                "fetch`"
            )
            return {**result, "message": why}
        name = f"{seen.name[:240]}-result"
        await self._cluster.apply(
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": name, "ownerReferences": [seen.reference()]},
                "data": data,
                "binaryData": binary,
            },
            MANAGER,
        )
        return {**result, "configMapName": name, "sha256": table.sha256.hex()}
