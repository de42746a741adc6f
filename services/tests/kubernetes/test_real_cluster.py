"""The launcher against a real API server; see control_plane.

It is that of the cluster that `KUBECONFIG` names, or else one that is started here. No worker runs:
the image does not exist.
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
    """A namespace, seen with all rights."""

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
    """A client of a namespace of the test's own."""
    if started is not None:
        monkeypatch.setenv("KUBECONFIG", str(started.kubeconfig))
    with _namespace() as made:
        yield made


@pytest.fixture
def client_of_own(own: ControlPlane, monkeypatch: pytest.MonkeyPatch) -> Iterator[Client]:
    """The same of the API server that a test may stop."""
    monkeypatch.setenv("KUBECONFIG", str(own.kubeconfig))
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


class Scene:
    """A launcher at work in the namespace."""

    def __init__(self, client: Client, *designs: Design) -> None:
        self.client = client
        self.designs = list(designs)
        self.report = Report()
        cluster = KubernetesCluster(SETTINGS.instance, client.namespace)
        self.launcher = Launcher(cluster, SETTINGS, lambda: self.designs, self._hear)

    def _hear(self, report: Report) -> None:
        self.report = report

    def want(self, *designs: Design) -> None:
        self.designs = list(designs)
        self.launcher.look()

    def jobs(self) -> list[Any]:
        return self.client.list("Job")

    def pods(self) -> list[Any]:
        return [pod for pod in self.client.list("Pod") if not pod.metadata.deletionTimestamp]

    def said(self, words: str) -> bool:
        return words in self.report.sentences.get("0001", "")

    async def until(self, condition: Callable[[], bool]) -> None:
        # It asks the cluster, which must not hold up the launcher's loop.
        await asyncio.to_thread(wait_until, condition, every_seconds=0.2)


@asynccontextmanager
async def running(scene: Scene) -> AsyncIterator[Scene]:
    task = asyncio.create_task(scene.launcher.run())
    try:
        yield scene
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


def tell(story: Callable[[], Awaitable[Any]]) -> None:
    async def run() -> None:
        await story()

    asyncio.run(run())


def test_a_job_lives_with_its_design(client: Client) -> None:
    async def story() -> None:
        async with running(Scene(client, design())) as now:
            await now.until(lambda: len(now.pods()) == 2)
            await now.until(lambda: now.said("ErrImageNeverPull") or now.said("Unschedulable"))
            (job,) = now.jobs()
            managers = {each.manager for each in job.metadata.managedFields}
            assert "remy-farm-launcher" in managers
            now.want(design(phase=WorkersPhase.PAUSED))
            await now.until(lambda: not now.pods())
            now.want(design())
            await now.until(lambda: len(now.pods()) == 2)
        # Another launcher takes over what it finds.
        async with running(Scene(client, design())) as now:
            await now.until(lambda: "0001" in now.report.sentences)
            assert [each.metadata.uid for each in now.jobs()] == [job.metadata.uid]
            now.want()
            await now.until(lambda: not now.jobs() and not now.pods())

    tell(story)


def test_a_quota_is_a_sentence(client: Client) -> None:
    async def story() -> None:
        client.create("ResourceQuota", "none", spec={"hard": {"count/jobs.batch": "0"}})
        async with running(Scene(client, design())) as now:
            await now.until(lambda: now.said("no workers can be started") and now.said("quota"))
            client.delete("ResourceQuota", "none")
            await now.until(lambda: len(now.pods()) == 2)

    tell(story)


def test_missing_rights_are_a_sentence(
    client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        monkeypatch.setenv("KUBECONFIG", str(_who_may_only_look(client, tmp_path)))
        async with running(Scene(client, design())) as now:
            await now.until(lambda: now.said("no workers can be started"))
            await now.until(lambda: now.said("forbidden"))
            assert not now.jobs()

    tell(story)


def _who_may_only_look(client: Client, folder: Path) -> Path:
    """A KUBECONFIG of somebody who may see Jobs and pods, but make none."""
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


# The watch.


class Watching:
    """What a watch of Jobs has said, and how often all of them were listed."""

    def __init__(self, client: Client) -> None:
        self.cluster = KubernetesCluster(SETTINGS.instance, client.namespace)
        self.heard: list[Change] = []

    @property
    def lists(self) -> int:
        return sum(isinstance(change, Listed) for change in self.heard)

    def names(self, kind: type[Changed | Gone]) -> set[str]:
        return {each.object["metadata"]["name"] for each in self.heard if isinstance(each, kind)}

    async def run(self) -> None:
        try:
            async for change in self.cluster.watch("Job"):
                self.heard.append(change)
        finally:
            await self.cluster.close()


@asynccontextmanager
async def watching(client: Client) -> AsyncIterator[Watching]:
    made = Watching(client)
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


def test_a_watch_that_ends_goes_on_where_it_was(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster_module, "_WATCH_SECONDS", 1)

    async def story() -> None:
        async with watching(client) as now:
            names = []
            for number in range(4):
                made = _some_job(f"{number:04}")
                names.append(made["metadata"]["name"])
                await now.cluster.apply(made)
                await wait_in_loop(lambda: set(names) <= now.names(Changed))
                # Longer than a watch lasts.
                await asyncio.sleep(1.2)
            await now.cluster.remove(names[0])
            await wait_in_loop(lambda: now.names(Gone) == {names[0]})
            await now.cluster.remove(names[0])
            assert now.lists == 1

    tell(story)


def test_what_there_is_is_listed_anew_after_a_while(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster_module, "_WATCH_SECONDS", 1)
    monkeypatch.setattr(cluster_module, "_RESYNC_SECONDS", 1.5)

    async def story() -> None:
        async with watching(client) as now:
            await wait_in_loop(lambda: now.lists > 2)

    tell(story)


def test_a_version_that_is_forgotten_is_no_end(client_of_own: Client, own: ControlPlane) -> None:
    # What was before its start it forgets by and by.
    own.stop_api_server()
    own.start_api_server()

    class Forgotten(KubernetesCluster):
        """Its first list says that it is older than anything the API server still knows."""

        lists = 0

        async def _call(self, verb: str, kind: str, **parameters: Any) -> Any:
            found = await super()._call(verb, kind, **parameters)
            self.lists += 1
            if self.lists == 1:
                found["metadata"]["resourceVersion"] = "1"
            return found

    async def story() -> None:
        cluster = Forgotten(SETTINGS.instance, client_of_own.namespace)
        try:
            changes = cluster.watch("Job")
            assert isinstance(await anext(changes), Listed)
            async with asyncio.timeout(TIMEOUT_SECONDS):
                assert isinstance(await anext(changes), Listed)
            assert cluster.lists == 2
        finally:
            await cluster.close()

    tell(story)


def test_an_api_server_that_was_away_is_heard_again(
    client_of_own: Client, own: ControlPlane
) -> None:
    async def story() -> None:
        async with running(Scene(client_of_own, design())) as now:
            await now.until(lambda: len(now.pods()) == 2)
            own.stop_api_server()
            await now.until(lambda: now.said("the number of workers is not known"))
            now.want(design(), design("0002"))
            await asyncio.to_thread(own.start_api_server)
            await now.until(lambda: len(now.pods()) == 4)

    tell(story)
