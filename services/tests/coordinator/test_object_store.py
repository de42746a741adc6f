"""Tests a mirror on S3, and recovery after the permanent loss of a store."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import boto3
import pytest

from library.tests.designer.small_joint_spec import small_joint_spec
from remy_proto.v1 import design_service_pb2 as messages
from remy_services.coordinator.instrumentation import Instrumentation
from remy_services.coordinator.server import ServerSettings
from remy_services.jobs.states import PAUSED, SUCCEEDED
from remy_services.stores.archive import unseal_archive
from services.tests.coordinator.embedded_design import embedded_design
from services.tests.coordinator.gates import Gate, GatedEvaluator
from services.tests.coordinator.running_server import RunningServer, settings_for
from services.tests.coordinator.test_transfer import import_archive
from services.tests.stores.local_redis import LocalRedis
from tests.waiting import wait_until

s3fs = pytest.importorskip("s3fs", reason="the extra remy-farm-services[s3] is not installed")

_SPEC = small_joint_spec()
_BUCKET = "farms"


@pytest.fixture(scope="module")
def bucket(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A client of a local S3 server, which the environment also configures for mirrors."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port = listening.getsockname()[1]
    log = tmp_path_factory.mktemp("s3") / "log"
    with ExitStack() as stack:
        change = stack.enter_context(pytest.MonkeyPatch.context())
        change.setenv("AWS_ENDPOINT_URL_S3", f"http://127.0.0.1:{port}")
        change.setenv("AWS_ACCESS_KEY_ID", "somebody")
        change.setenv("AWS_SECRET_ACCESS_KEY", "something")
        change.setenv("AWS_DEFAULT_REGION", "eu-central-1")
        written = stack.enter_context(log.open("wb"))
        program = Path(sys.executable).with_name("moto_server")
        server = subprocess.Popen([program, "-p", str(port)], stdout=written, stderr=written)
        stack.callback(server.wait)
        stack.callback(server.kill)
        wait_until(lambda: _answers(port) or server.poll() is not None, "an S3 server")
        assert server.poll() is None, log.read_text()
        client = boto3.client("s3")
        stack.callback(client.close)
        client.create_bucket(
            Bucket=_BUCKET, CreateBucketConfiguration={"LocationConstraint": "eu-central-1"}
        )
        yield client
        # Drops cached connections to this server.
        s3fs.S3FileSystem.clear_instance_cache()


def _answers(port: int) -> bool:
    with socket.socket() as calling:
        return calling.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture(params=["sqlite", "redis"])
def lost(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ServerSettings]:
    """Settings of a farm whose store will be lost."""
    (tmp_path / "first").mkdir()
    settings = settings_for(tmp_path / "first", mirror_url=f"s3://{_BUCKET}/{request.param}")
    if request.param == "sqlite":
        yield settings
        return
    with LocalRedis(tmp_path / "first") as redis:
        yield replace(settings, store_url=redis.url)


def _objects(bucket: Any, key: str) -> int:
    return int(bucket.list_objects_v2(Bucket=_BUCKET, Prefix=key)["KeyCount"])


def _archive(bucket: Any, key: str) -> bytes:
    content: bytes = bucket.get_object(Bucket=_BUCKET, Key=key)["Body"].read()
    return content


def test_a_job_recovered_from_the_mirror_has_the_same_result(
    bucket: Any, lost: ServerSettings, tmp_path: Path
) -> None:
    table, _ = embedded_design(_SPEC, tmp_path / "embedded")
    gate = Gate()
    around = Instrumentation(evaluator=lambda inner: GatedEvaluator(inner, gate))
    with RunningServer(lost, around) as server:
        job = server.client().submit(_SPEC)
        gate.let_pass(10)
        key = f"{(lost.mirror_url or '').removeprefix(f's3://{_BUCKET}/')}/{job.id}.remyjob"

        # The mirror is written at the end of an epoch.
        wait_until(lambda: _objects(bucket, key) == 1, "an epoch in the mirror")
        archive = _archive(bucket, key)
        gate.open()
    assert len(unseal_archive(archive).epochs) > 0

    (tmp_path / "second").mkdir()
    with RunningServer(settings_for(tmp_path / "second")) as server:
        client = server.client()
        assert import_archive(client, archive).state == PAUSED
        client.call("ResumeJob", messages.ResumeJobRequest(job=job.id))
        client.until_state(job.id, SUCCEEDED)
        assert client.remycc(job.id) == table


def test_deleted_jobs_are_removed_from_the_bucket(bucket: Any, tmp_path: Path) -> None:
    with RunningServer(settings_for(tmp_path, mirror_url=f"s3://{_BUCKET}/kept")) as server:
        client = server.client()
        job = client.until_final(client.submit(_SPEC).id)
        key = f"kept/{job.id}.remyjob"
        wait_until(lambda: _objects(bucket, key) == 1, "an archive")
        client.call("DeleteJob", messages.DeleteJobRequest(job=job.id))
        wait_until(lambda: _objects(bucket, key) == 0, "its end")
