"""Tests a coordinator with the Kubernetes launcher while the cluster is unreachable."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest

from library.tests.designer.small_joint_spec import small_joint_spec
from remy_proto.v1 import design_service_pb2 as messages
from remy_rpc.settings import SettingsError
from remy_services.jobs.states import CANCELLED
from services.tests.coordinator.running_server import Client, RunningServer, settings_for

pytest.importorskip(
    "kubernetes", reason="the extra remy-farm-services[kubernetes] is not installed"
)

LAUNCHER = """
instance: farm
template: {spec: {template: {spec: {containers: [{name: worker, image: "localhost/worker:1"}]}}}}
limits: {images: ["localhost/*"], cpus: 4}
"""
#: Kubeconfig of an address without server.
NOWHERE = {
    "apiVersion": "v1",
    "kind": "Config",
    "current-context": "nowhere",
    "clusters": [{"name": "nowhere", "cluster": {"server": "http://127.0.0.1:9"}}],
    "users": [{"name": "nobody", "user": {}}],
    "contexts": [{"name": "nowhere", "context": {"cluster": "nowhere", "user": "nobody"}}],
}


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RunningServer]:
    kubeconfig, launcher = tmp_path / "kubeconfig", tmp_path / "launcher.yaml"
    kubeconfig.write_text(json.dumps(NOWHERE), encoding="utf-8")
    launcher.write_text(LAUNCHER, encoding="utf-8")
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig))
    with RunningServer(settings_for(tmp_path, kubernetes_workers=launcher)) as server:
        yield server


def test_the_worker_status_is_shown_in_the_job(client: Client) -> None:
    endless = small_joint_spec(steps=1_000_000)
    job = client.submit(endless)
    message = client.until(job.id, lambda shown: "workers" in shown.status_message).status_message
    assert message.startswith("the number of workers is unknown (the Kubernetes API cannot be")
    # The design continues anyway.
    client.until(job.id, lambda shown: shown.progress.step > 2)
    client.call("CancelJob", messages.CancelJobRequest(job=job.id))
    assert client.until_final(job.id).state == CANCELLED


def test_a_specification_over_the_limits_is_refused(client: Client) -> None:
    greedy = small_joint_spec()
    greedy.workers.cpus = 5
    with pytest.raises(grpc.RpcError) as caught:
        client.submit(greedy)
    assert caught.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert "spec.workers.cpus is 5, but this farm allows at most 4" in (
        caught.value.details() or ""
    )


def test_invalid_launcher_settings_are_settings_errors(tmp_path: Path) -> None:
    path = tmp_path / "launcher.yaml"
    path.write_text("instance: farm\n", encoding="utf-8")
    server = RunningServer(settings_for(tmp_path, kubernetes_workers=path))
    with pytest.raises(SettingsError, match="template"), server:
        pass
