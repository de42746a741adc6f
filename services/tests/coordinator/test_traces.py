"""Tests jobs whose links use uploaded traces."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest

from remy_farm.specification import load_spec
from remy_farm.specification.referenced_files import link_traces
from remy_proto.v1 import design_service_pb2 as messages
from remy_proto.v1 import spec_pb2
from remy_services.stores import open_store
from remy_services.stores.recordings import (
    MAX_RECORDING_BYTES,
    UnusedRecordings,
    entry_of,
    has_recording,
)
from services.tests.coordinator.embedded_design import embedded_design
from services.tests.coordinator.running_server import (
    TIMEOUT_SECONDS,
    Client,
    RunningServer,
    refusal,
    settings_for,
)
from services.tests.coordinator.test_transfer import import_archive

_SPEC = """\
name: on-a-trace
network:
  links:
    - trace: {path: link.trace, semantics: ns2}
      buffer: {packets: 100}
  rtt_ms: {uniform: [40, 80]}
  senders: {integer_uniform: [1, 2]}
  traffic:
    exponential_time: {mean_ms: 500}
    mean_off_ms: 500
signals: [rtt_ratio]
search:
  mode: joint
  simulated_seconds: 2
  joint: {steps: 3, first_split: 1, steps_per_split: 1, steps_per_epoch: 2, validation_specimens: 8}
"""


@pytest.fixture
def spec(tmp_path: Path) -> spec_pb2.DesignSpec:
    times_ms = (each * 7 % 13 + 10 * (each // 6) for each in range(0, 60_000, 6))
    (tmp_path / "link.trace").write_text("".join(f"{each}\n" for each in sorted(times_ms)))
    path = tmp_path / "spec.yaml"
    path.write_text(_SPEC)
    return load_spec(path)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RunningServer]:
    with RunningServer(settings_for(tmp_path)) as running:
        yield running


def upload(client: Client, content: bytes) -> bytes:
    """Uploads a trace in parts and returns the hash from the coordinator."""
    parts = (content[start : start + 10_000] for start in range(0, len(content), 10_000))
    requests = (messages.UploadTraceRequest(part=part) for part in parts)
    sha256: bytes = client.stub.UploadTrace(requests, timeout=TIMEOUT_SECONDS).sha256
    return sha256


def _is_kept(server: RunningServer, sha256: bytes) -> bool:
    return bool(server.run(_has(server, sha256)))


async def _has(server: RunningServer, sha256: bytes) -> bool:
    environment = server.farm.environment
    return await environment.threads.store(has_recording, environment.store, sha256)


def _sweep(server: RunningServer, *, keep_seconds: float) -> None:
    """Sweeps often enough that expired traces are deleted."""
    farm = server.farm
    farm._sweep = UnusedRecordings(farm.environment.store, keep_seconds)
    for _ in range(2):
        server.run(farm.sweep_traces())


def test_a_job_uses_an_uploaded_trace(
    server: RunningServer, spec: spec_pb2.DesignSpec, tmp_path: Path
) -> None:
    table, _ = embedded_design(spec, tmp_path / "embedded")
    client = server.client()
    (recording,) = link_traces(spec)
    with pytest.raises(grpc.RpcError) as caught:
        client.submit(spec)
    code, sentence = refusal(caught.value)
    assert code == grpc.StatusCode.INVALID_ARGUMENT
    assert f"names the trace {recording.sha256.hex()}, which is not on this farm" in sentence

    assert upload(client, recording.opportunities_us) == recording.sha256
    assert upload(client, recording.opportunities_us) == recording.sha256
    first, second = (client.until_final(client.submit(spec, name=name).id) for name in "ab")
    assert client.remycc(first.id) == client.remycc(second.id) == table
    # The trace is not listed as a job.
    assert {each.id for each in client.call("ListJobs", messages.ListJobsRequest()).jobs} == {
        first.id,
        second.id,
    }

    # The trace is kept while a job references it, and for the retention time afterwards.
    client.call("DeleteJob", messages.DeleteJobRequest(job=first.id))
    _sweep(server, keep_seconds=0)
    assert _is_kept(server, recording.sha256)
    client.call("DeleteJob", messages.DeleteJobRequest(job=second.id))
    _sweep(server, keep_seconds=60)
    assert _is_kept(server, recording.sha256)
    _sweep(server, keep_seconds=0)
    assert not _is_kept(server, recording.sha256)


def test_forks_and_imported_jobs_have_the_trace(
    server: RunningServer, spec: spec_pb2.DesignSpec, tmp_path: Path
) -> None:
    client = server.client()
    (recording,) = link_traces(spec)
    upload(client, recording.opportunities_us)
    job = client.until_final(client.submit(spec).id)
    fork = client.call(
        "ForkJob", messages.ForkJobRequest(job=job.id, settings=["objective.delta=2"])
    ).job
    forked = client.until_final(fork.id)
    assert forked.spec.network.links[0].trace.sha256 == recording.sha256.hex()

    parts = client.call("ExportJob", messages.ExportJobRequest(job=job.id))
    archive = b"".join(each.part for each in parts)
    (tmp_path / "other").mkdir()
    with RunningServer(settings_for(tmp_path / "other")) as other:
        there = other.client()
        assert import_archive(there, archive).id == job.id
        assert _is_kept(other, recording.sha256)
        assert there.remycc(job.id) == client.remycc(job.id)


def test_jobs_continue_with_their_traces_after_a_restart(
    spec: spec_pb2.DesignSpec, tmp_path: Path
) -> None:
    table, _ = embedded_design(spec, tmp_path / "embedded")
    settings = settings_for(tmp_path)
    with RunningServer(settings) as server:
        client = server.client()
        upload(client, link_traces(spec)[0].opportunities_us)
        job = client.submit(spec)
        client.call("PauseJob", messages.PauseJobRequest(job=job.id))
    store = open_store(settings.store_url)
    entries = {each.job_id for each in store.jobs()}
    store.close()
    assert entries == {job.id, entry_of(link_traces(spec)[0].sha256)}
    with RunningServer(settings) as server:
        client = server.client()
        client.call("ResumeJob", messages.ResumeJobRequest(job=job.id))
        client.until_final(job.id)
        assert client.remycc(job.id) == table


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "opportunit"),
        (b"1234567", "must have 8 for each opportunity"),
        ((3000).to_bytes(8, "little") + (2000).to_bytes(8, "little"), "times must not decrease"),
        (bytes(MAX_RECORDING_BYTES + 8), f"longer than {MAX_RECORDING_BYTES} bytes"),
    ],
    ids=["empty", "cut", "unsorted", "long"],
)
def test_invalid_traces_are_refused(server: RunningServer, content: bytes, problem: str) -> None:
    client = server.client()
    parts = [content[start : start + (1 << 20)] for start in range(0, len(content), 1 << 20)]
    requests = (messages.UploadTraceRequest(part=part) for part in parts or [b""])
    with pytest.raises(grpc.RpcError) as caught:
        client.stub.UploadTrace(requests, timeout=TIMEOUT_SECONDS)
    code, sentence = refusal(caught.value)
    assert code == grpc.StatusCode.INVALID_ARGUMENT
    assert problem in sentence
    assert not _is_kept(server, hashlib.sha256(content).digest())
