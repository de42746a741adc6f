"""The launcher on a real cluster: any that KUBECONFIG names, in a namespace made for the test.

What runs in the pods does not matter here: their image need not exist.
"""

from __future__ import annotations

import asyncio
import os
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import yaml

from remy_services.kubernetes.launcher import Launcher, Report
from remy_services.kubernetes.manifest import Design, LauncherSettings, WorkersPhase
from services.tests.kubernetes.objects import design

pytest.importorskip("lightkube", reason="the extra remy-farm[kubernetes] is not installed")

from lightkube import Client
from lightkube.models.authentication_v1 import TokenRequestSpec
from lightkube.models.core_v1 import ResourceQuotaSpec
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.models.rbac_v1 import PolicyRule, RoleRef, Subject
from lightkube.resources.batch_v1 import Job
from lightkube.resources.core_v1 import (
    Namespace,
    Pod,
    ResourceQuota,
    ServiceAccount,
    ServiceAccountToken,
)
from lightkube.resources.rbac_authorization_v1 import Role, RoleBinding

from remy_services.kubernetes.cluster import KubernetesCluster
from tests.waiting import wait_until

pytestmark = pytest.mark.skipif(
    "KUBECONFIG" not in os.environ, reason="KUBECONFIG names no cluster to test with"
)

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


@pytest.fixture
def client() -> Iterator[Client]:
    """A client of a namespace of the test's own."""
    namespace = f"launcher-{secrets.token_hex(4)}"
    with Client(namespace=namespace) as made:
        made.create(Namespace(metadata=ObjectMeta(name=namespace)))
        yield made
        made.delete(Namespace, namespace)


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

    def jobs(self) -> list[Job]:
        return list(self.client.list(Job))

    def pods(self) -> list[Pod]:
        return [pod for pod in self.client.list(Pod) if _of(pod).deletionTimestamp is None]

    def said(self, words: str) -> bool:
        return words in self.report.sentences.get("0001", "")

    async def until(self, condition: Callable[[], bool]) -> None:
        # It asks the cluster, which must not hold up the launcher's loop.
        await asyncio.to_thread(wait_until, condition, every_seconds=0.2)


def _of(found: Job | Pod) -> ObjectMeta:
    assert found.metadata is not None
    return found.metadata


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
            managers = {each.manager for each in _of(job).managedFields or ()}
            assert "remy-farm-launcher" in managers
            now.want(design(phase=WorkersPhase.PAUSED))
            await now.until(lambda: not now.pods())
            now.want(design())
            await now.until(lambda: len(now.pods()) == 2)
        # Another launcher takes over what it finds.
        async with running(Scene(client, design())) as now:
            await now.until(lambda: "0001" in now.report.sentences)
            assert [_of(each).uid for each in now.jobs()] == [_of(job).uid]
            now.want()
            await now.until(lambda: not now.jobs() and not now.pods())

    tell(story)


def test_a_quota_is_a_sentence(client: Client) -> None:
    async def story() -> None:
        quota = ResourceQuota(
            metadata=ObjectMeta(name="none"), spec=ResourceQuotaSpec(hard={"count/jobs.batch": "0"})
        )
        client.create(quota)
        async with running(Scene(client, design())) as now:
            await now.until(lambda: now.said("no workers can be started") and now.said("quota"))
            client.delete(ResourceQuota, "none")
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
    named = ObjectMeta(name="looks")
    client.create(ServiceAccount(metadata=named))
    rule = PolicyRule(
        apiGroups=["", "batch"], resources=["jobs", "pods"], verbs=["get", "list", "watch"]
    )
    client.create(Role(metadata=named, rules=[rule]))
    client.create(
        RoleBinding(
            metadata=named,
            roleRef=RoleRef(apiGroup="rbac.authorization.k8s.io", kind="Role", name="looks"),
            subjects=[Subject(kind="ServiceAccount", name="looks", namespace=client.namespace)],
        )
    )
    request = ServiceAccountToken(
        metadata=ObjectMeta(), spec=TokenRequestSpec(audiences=[], expirationSeconds=600)
    )
    answer = client.create(request, "looks")
    assert answer.status is not None
    config = yaml.safe_load(Path(os.environ["KUBECONFIG"]).read_text())
    for user in config["users"]:
        user["user"] = {"token": answer.status.token}
    path = folder / "kubeconfig"
    path.write_text(yaml.safe_dump(config))
    return path
