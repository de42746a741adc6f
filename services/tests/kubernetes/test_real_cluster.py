"""Tests the launcher on a real API server; see control_plane.

Uses the cluster of `KUBECONFIG`, or else starts an API server. No worker runs, because the image
does not exist.
"""

from __future__ import annotations

import asyncio
import os
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from remy_services.kubernetes.launcher import Launcher, Report
from remy_services.kubernetes.manifest import Design, LauncherSettings, WorkersPhase, job_of
from services.tests.kubernetes.control_plane import ControlPlane
from services.tests.kubernetes.objects import design

pytest.importorskip(
    "kubernetes", reason="the extra remy-farm-services[kubernetes] is not installed"
)

from kubernetes import config, dynamic

from remy_services.kubernetes import cluster as cluster_module
from remy_services.kubernetes.cluster import Change, Changed, Gone, KubernetesCluster, Listed
from tests.waiting import TIMEOUT_SECONDS, wait_in_loop, wait_until

SETTINGS = LauncherSettings(
    instance="farm",
    minimum_workers=2,
    template={
        "spec": {
            "template": {
                "spec": {
                    "restartPolicy": "Never",
                    "containers": [
                        {
                            "name": "worker",
                            "image": "localhost/no-such-image:1",
                            "imagePullPolicy": "Never",
                        }
                    ],
                }
            }
        }
    },
)


@dataclass(frozen=True)
class Client:
    """A namespace, accessed as administrator."""

    api: Any
    namespace: str

    def kind(self, name: str) -> Any:
        versions = {"Job": "batch/v1", "Role": _RBAC, "RoleBinding": _RBAC}
        return self.api.resources.get(api_version=versions.get(name, "v1"), kind=name)

    def create(self, kind: str, name: str, **body: Any) -> None:
        body = {"metadata": {"name": name}, **body}
        self.kind(kind).create(body=body, namespace=self.namespace)

    def delete(self, kind: str, name: str) -> None:
        self.kind(kind).delete(name=name, namespace=self.namespace)

    def list(self, kind: str) -> list[Any]:
        return list(self.kind(kind).get(namespace=self.namespace).items)


_RBAC = "rbac.authorization.k8s.io/v1"


@pytest.fixture
def client(started: ControlPlane | None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Client]:
    """A client of a new namespace."""
    if started is not None:
        monkeypatch.setenv("KUBECONFIG", str(started.kubeconfig))
    with _namespace() as made:
        yield made


@pytest.fixture
def client_of_own(
    own_control_plane: ControlPlane, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Client]:
    """A client of a new namespace on an API server that the test may stop."""
    monkeypatch.setenv("KUBECONFIG", str(own_control_plane.kubeconfig))
    with _namespace() as made:
        yield made


@contextmanager
def _namespace() -> Iterator[Client]:
    name = f"launcher-{secrets.token_hex(4)}"
    with config.new_client_from_config(config_file=os.environ["KUBECONFIG"]) as connected:
        made = Client(dynamic.DynamicClient(connected), name)
        made.create("Namespace", name)
        yield made
        made.delete("Namespace", name)


class RunningLauncher:
    """A running launcher in a namespace, with its designs and last report."""

    def __init__(self, client: Client, *designs: Design) -> None:
        self.client = client
        self.designs = list(designs)
        self.report = Report()
        cluster = KubernetesCluster(SETTINGS.instance, client.namespace)
        self.launcher = Launcher(cluster, SETTINGS, lambda: self.designs, self._on_report)

    def _on_report(self, report: Report) -> None:
        self.report = report

    def set_designs(self, *designs: Design) -> None:
        self.designs = list(designs)
        self.launcher.notify_changed()

    def jobs(self) -> list[Any]:
        return self.client.list("Job")

    def pods(self) -> list[Any]:
        return [pod for pod in self.client.list("Pod") if not pod.metadata.deletionTimestamp]

    def has_sentence(self, text: str) -> bool:
        return text in self.report.sentences.get("0001", "")

    async def until(self, condition: Callable[[], bool]) -> None:
        # Runs in a thread, because the condition blocks on the cluster.
        await asyncio.to_thread(wait_until, condition, every_seconds=0.2)


@asynccontextmanager
async def running(scene: RunningLauncher) -> AsyncIterator[RunningLauncher]:
    task = asyncio.create_task(scene.launcher.run())
    try:
        yield scene
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


def run_scenario(scenario: Callable[[], Awaitable[Any]]) -> None:
    async def run() -> None:
        await scenario()

    asyncio.run(run())


def test_the_job_follows_its_design(client: Client) -> None:
    async def scenario() -> None:
        async with running(RunningLauncher(client, design())) as now:
            await now.until(lambda: len(now.pods()) == 2)
            await now.until(
                lambda: now.has_sentence("ErrImageNeverPull") or now.has_sentence("Unschedulable")
            )
            (job,) = now.jobs()
            managers = {each.manager for each in job.metadata.managedFields}
            assert "remy-farm-launcher" in managers
            now.set_designs(design(phase=WorkersPhase.PAUSED))
            await now.until(lambda: not now.pods())
            now.set_designs(design())
            await now.until(lambda: len(now.pods()) == 2)
        # Another launcher adopts the existing Job.
        async with running(RunningLauncher(client, design())) as now:
            await now.until(lambda: "0001" in now.report.sentences)
            assert [each.metadata.uid for each in now.jobs()] == [job.metadata.uid]
            now.set_designs()
            await now.until(lambda: not now.jobs() and not now.pods())

    run_scenario(scenario)


def test_quota_errors_are_reported(client: Client) -> None:
    async def scenario() -> None:
        client.create("ResourceQuota", "none", spec={"hard": {"count/jobs.batch": "0"}})
        async with running(RunningLauncher(client, design())) as now:
            await now.until(
                lambda: now.has_sentence("no workers can be started") and now.has_sentence("quota")
            )
            client.delete("ResourceQuota", "none")
            await now.until(lambda: len(now.pods()) == 2)

    run_scenario(scenario)


def test_missing_permissions_are_reported(
    client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        monkeypatch.setenv("KUBECONFIG", str(_read_only_kubeconfig(client, tmp_path)))
        async with running(RunningLauncher(client, design())) as now:
            await now.until(lambda: now.has_sentence("no workers can be started"))
            await now.until(lambda: now.has_sentence("forbidden"))
            assert not now.jobs()

    run_scenario(scenario)


def _read_only_kubeconfig(client: Client, folder: Path) -> Path:
    """Writes the kubeconfig of an account that may only read Jobs and pods."""
    client.create("ServiceAccount", "looks")
    rule = {
        "apiGroups": ["", "batch"],
        "resources": ["jobs", "pods"],
        "verbs": ["get", "list", "watch"],
    }
    client.create("Role", "looks", rules=[rule])
    client.create(
        "RoleBinding",
        "looks",
        roleRef={"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "looks"},
        subjects=[{"kind": "ServiceAccount", "name": "looks", "namespace": client.namespace}],
    )
    answer = (
        client.kind("ServiceAccount")
        .subresources["token"]
        .create(name="looks", namespace=client.namespace, body={"spec": {"expirationSeconds": 600}})
    )
    tree = yaml.safe_load(Path(os.environ["KUBECONFIG"]).read_text())
    for user in tree["users"]:
        user["user"] = {"token": answer.status.token}
    path = folder / "kubeconfig"
    path.write_text(yaml.safe_dump(tree))
    return path


# Tests of watches.


class WatchRecorder:
    """Records the changes of a watch of Jobs."""

    def __init__(self, client: Client) -> None:
        self.cluster = KubernetesCluster(SETTINGS.instance, client.namespace)
        self.changes: list[Change] = []

    @property
    def lists(self) -> int:
        return sum(isinstance(change, Listed) for change in self.changes)

    def names(self, kind: type[Changed | Gone]) -> set[str]:
        return {each.object["metadata"]["name"] for each in self.changes if isinstance(each, kind)}

    async def run(self) -> None:
        try:
            async for change in self.cluster.watch("Job"):
                self.changes.append(change)
        finally:
            await self.cluster.close()


@asynccontextmanager
async def watching(client: Client) -> AsyncIterator[WatchRecorder]:
    made = WatchRecorder(client)
    task = asyncio.create_task(made.run())
    try:
        await wait_in_loop(lambda: made.lists)
        yield made
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


def _some_job(job_id: str) -> Mapping[str, Any]:
    made = job_of(design(job_id), SETTINGS, None)
    return {**made, "spec": {**made["spec"], "suspend": True}}


def test_an_ended_watch_is_resumed(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_module, "_WATCH_SECONDS", 1)

    async def scenario() -> None:
        async with watching(client) as now:
            names = []
            for number in range(4):
                made = _some_job(f"{number:04}")
                names.append(made["metadata"]["name"])
                await now.cluster.apply(made)
                await wait_in_loop(lambda: set(names) <= now.names(Changed))
                # Longer than the duration of a watch.
                await asyncio.sleep(1.2)
            await now.cluster.remove(names[0])
            await wait_in_loop(lambda: now.names(Gone) == {names[0]})
            await now.cluster.remove(names[0])
            assert now.lists == 1

    run_scenario(scenario)


def test_objects_are_listed_again_periodically(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster_module, "_WATCH_SECONDS", 1)
    monkeypatch.setattr(cluster_module, "_RESYNC_SECONDS", 1.5)

    async def scenario() -> None:
        async with watching(client) as now:
            await wait_in_loop(lambda: now.lists > 2)

    run_scenario(scenario)


def test_an_expired_version_is_listed_again(
    client_of_own: Client, own_control_plane: ControlPlane
) -> None:
    # After a restart the API server drops older versions.
    own_control_plane.stop_api_server()
    own_control_plane.start_api_server()

    class Forgotten(KubernetesCluster):
        """Returns an expired resource version in its first list."""

        lists = 0

        async def _call(self, verb: str, kind: str, **parameters: Any) -> Any:
            found = await super()._call(verb, kind, **parameters)
            self.lists += 1
            if self.lists == 1:
                found["metadata"]["resourceVersion"] = "1"
            return found

    async def scenario() -> None:
        cluster = Forgotten(SETTINGS.instance, client_of_own.namespace)
        try:
            changes = cluster.watch("Job")
            assert isinstance(await anext(changes), Listed)
            async with asyncio.timeout(TIMEOUT_SECONDS):
                assert isinstance(await anext(changes), Listed)
            assert cluster.lists == 2
        finally:
            await cluster.close()

    run_scenario(scenario)


def test_watches_recover_from_an_api_server_outage(
    client_of_own: Client, own_control_plane: ControlPlane
) -> None:
    async def scenario() -> None:
        async with running(RunningLauncher(client_of_own, design())) as now:
            await now.until(lambda: len(now.pods()) == 2)
            own_control_plane.stop_api_server()
            await now.until(lambda: now.has_sentence("the number of workers is unknown"))
            now.set_designs(design(), design("0002"))
            await asyncio.to_thread(own_control_plane.start_api_server)
            await now.until(lambda: len(now.pods()) == 4)

    run_scenario(scenario)
