"""Tests export and import of jobs between farms, and the mirror."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import grpc
import pytest

from library.tests.designer.small_joint_spec import small_joint_spec
from remy_proto.v1 import design_service_pb2 as messages
from remy_proto.v1 import job_pb2
from remy_rpc.settings import SettingsError
from remy_services.coordinator.instrumentation import Instrumentation
from remy_services.coordinator.server import ServerSettings
from remy_services.jobs.states import PAUSED, SUCCEEDED
from remy_services.stores.archive import seal_archive, unseal_archive
from services.tests.coordinator.embedded_design import embedded_design, without_clocks
from services.tests.coordinator.gates import Gate, GatedEvaluator
from services.tests.coordinator.running_server import (
    TIMEOUT_SECONDS,
    Client,
    RunningServer,
    refusal,
    settings_for,
)

_SPEC = small_joint_spec()


def export_archive(client: Client, job: str) -> bytes:
    parts = client.call("ExportJob", messages.ExportJobRequest(job=job))
    return b"".join(each.part for each in parts)


def import_archive(client: Client, archive: bytes) -> job_pb2.Job:
    """Imports an archive, in two parts."""
    half = len(archive) // 2
    parts = [messages.ImportJobRequest(part=part) for part in (archive[:half], archive[half:])]
    job: job_pb2.Job = client.stub.ImportJob(iter(parts), timeout=TIMEOUT_SECONDS).job
    return job


@pytest.fixture
def gate() -> Gate:
    """Gate of the first farm's evaluations."""
    return Gate()


@pytest.fixture
def first(tmp_path: Path, gate: Gate) -> Iterator[RunningServer]:
    """The exporting farm, which has a mirror."""
    (tmp_path / "first").mkdir()
    settings = settings_for(tmp_path / "first", mirror_url=f"file://{tmp_path}/mirror")
    around = Instrumentation(evaluator=lambda inner: GatedEvaluator(inner, gate))
    with RunningServer(settings, around) as server:
        yield server


@pytest.fixture
def second_settings(tmp_path: Path) -> ServerSettings:
    (tmp_path / "second").mkdir()
    return settings_for(tmp_path / "second")


@pytest.fixture
def second(second_settings: ServerSettings) -> Iterator[RunningServer]:
    """The importing farm."""
    with RunningServer(second_settings) as server:
        yield server


def test_an_imported_finished_job_is_identical(
    first: RunningServer, second: RunningServer, gate: Gate
) -> None:
    gate.open()
    here, there = first.client(), second.client()
    job = here.until_final(here.submit(_SPEC, name="moved").id)
    moved = import_archive(there, export_archive(here, job.id))
    assert moved == job
    assert there.history(job.id) == here.history(job.id)
    assert there.remycc(job.id) == here.remycc(job.id)
    assert there.remycc(job.id, epoch=1) == here.remycc(job.id, epoch=1)


def test_an_imported_running_job_is_paused(
    first: RunningServer, second: RunningServer, gate: Gate, tmp_path: Path
) -> None:
    table, events = embedded_design(_SPEC, tmp_path / "embedded")
    here, there = first.client(), second.client()
    job = here.submit(_SPEC)
    gate.let_pass(8)
    here.until(job.id, lambda shown: shown.progress.step == 8)
    moved = import_archive(there, export_archive(here, job.id))
    assert moved.state == PAUSED
    assert moved.status_message == "imported from another farm"

    there.call("ResumeJob", messages.ResumeJobRequest(job=job.id))
    there.until_state(job.id, SUCCEEDED)
    assert there.remycc(job.id) == table
    progress = [each.progress for each in there.history(job.id) if each.HasField("progress")]
    assert [without_clocks(event) for event in progress] == events


def test_a_lost_job_can_be_imported_from_the_mirror(
    first: RunningServer, second: RunningServer, gate: Gate, tmp_path: Path
) -> None:
    gate.open()
    here, there = first.client(), second.client()
    job = here.until_final(here.submit(_SPEC).id)
    path = tmp_path / "mirror" / f"{job.id}.remyjob"
    first.until(lambda: path.exists() and _final(path))
    assert import_archive(there, path.read_bytes()) == job

    here.call("DeleteJob", messages.DeleteJobRequest(job=job.id))
    first.until(lambda: not path.exists())


def _final(path: Path) -> bool:
    return unseal_archive(path.read_bytes()).record.job.state == SUCCEEDED


def _retire(server: RunningServer) -> None:
    """Runs the coordinator's periodic retirement of old jobs."""
    server.run(server.farm.retire_old_jobs())


def test_expired_jobs_move_from_the_store_to_the_mirror(tmp_path: Path) -> None:
    settings = settings_for(tmp_path, mirror_url=f"file://{tmp_path}/mirror")
    at_once = replace(settings, farm=replace(settings.farm, retention_seconds=0))
    with RunningServer(at_once) as server:
        client = server.client()
        job = client.until_final(client.submit(_SPEC).id)
        table = client.remycc(job.id)
        _retire(server)
        with pytest.raises(grpc.RpcError) as caught:
            client.remycc(job.id)
        path = tmp_path / "mirror" / f"{job.id}.remyjob"
        code, message = refusal(caught.value)
        assert code == grpc.StatusCode.NOT_FOUND
        assert f"file://{path} has an archive of it" in message
        assert not client.call("ListJobs", messages.ListJobsRequest()).jobs
    archive = unseal_archive(path.read_bytes())
    assert archive.record.job == job

    archive.record.job.end_time.seconds -= 2 * 86400
    after_a_day = replace(settings, farm=replace(settings.farm, retention_seconds=86400))
    with RunningServer(after_a_day) as server:
        client = server.client()
        # A job that was just imported is not retired again.
        import_archive(client, seal_archive(archive))
        _retire(server)
        assert client.remycc(job.id) == table
    with RunningServer(after_a_day) as server:
        client = server.client()
        new = client.until_final(client.submit(_SPEC).id)
        _retire(server)
        (left,) = client.call("ListJobs", messages.ListJobsRequest()).jobs
        assert left.id == new.id


def test_a_job_that_cannot_be_mirrored_stays_in_the_store(tmp_path: Path) -> None:
    (tmp_path / "mirror").write_text("in the way")
    settings = settings_for(tmp_path, mirror_url=f"file://{tmp_path}/mirror")
    with RunningServer(
        replace(settings, farm=replace(settings.farm, retention_seconds=0))
    ) as server:
        client = server.client()
        job = client.until_final(client.submit(_SPEC).id)
        _retire(server)
        assert client.remycc(job.id)


def test_retention_requires_a_mirror(tmp_path: Path) -> None:
    settings = settings_for(tmp_path)
    with pytest.raises(SettingsError, match="requires --mirror"):
        replace(settings, farm=replace(settings.farm, retention_seconds=0)).check()


def _code(client: Client, archive: bytes) -> tuple[grpc.StatusCode, str]:
    with pytest.raises(grpc.RpcError) as caught:
        import_archive(client, archive)
    return refusal(caught.value)


def test_importing_an_existing_job_is_refused(first: RunningServer, gate: Gate) -> None:
    gate.open()
    client = first.client()
    job = client.until_final(client.submit(_SPEC).id)
    code, message = _code(client, export_archive(client, job.id))
    assert code == grpc.StatusCode.ALREADY_EXISTS
    assert message == f"job {job.id} already exists on this farm"


def test_damaged_archives_are_refused(first: RunningServer, gate: Gate) -> None:
    gate.open()
    client, chance = first.client(), random.Random(1)
    job = client.until_final(client.submit(_SPEC).id)
    archive = export_archive(client, job.id)
    damaged = [b"", b"nonsense", archive[:-1], archive[: len(archive) // 2]]
    for _ in range(50):
        changed = bytearray(archive)
        changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
        damaged.append(bytes(changed))
    for each in damaged:
        assert _code(client, each)[0] == grpc.StatusCode.INVALID_ARGUMENT


def test_inconsistent_archives_are_refused(first: RunningServer, gate: Gate) -> None:
    """A forged archive can have a valid checksum, so its contents are checked too."""
    gate.open()
    client = first.client()
    job = client.until_final(client.submit(_SPEC).id)
    whole = unseal_archive(export_archive(client, job.id))

    def forged() -> job_pb2.JobArchive:
        archive = job_pb2.JobArchive()
        archive.CopyFrom(whole)
        archive.record.job.id = "forged"
        return archive

    state, revision, spec, path, weight, time = (forged() for _ in range(6))
    state.record.job.state = 77  # type: ignore[assignment]
    revision.record.job.revision += 1
    spec.record.job.spec.Clear()
    path.record.job.id = "../forged"
    weight.record.job.weight = -1
    time.record.job.create_time.nanos = -5
    table = forged()
    table.record.first_table.nodes.add()
    for archive in (state, revision, spec, path, weight, time, table):
        assert _code(client, seal_archive(archive))[0] == grpc.StatusCode.INVALID_ARGUMENT
    # The unchanged archive is accepted.
    assert import_archive(client, seal_archive(forged())).id == "forged"


def test_a_forged_snapshot_fails_only_its_job(first: RunningServer, gate: Gate) -> None:
    gate.open()
    client = first.client()
    job = client.until_final(client.submit(_SPEC).id)
    archive = unseal_archive(export_archive(client, job.id))
    archive.record.job.id = "forged"
    archive.record.job.state = PAUSED
    archive.snapshot = b"nonsense"
    import_archive(client, seal_archive(archive))
    client.call("ResumeJob", messages.ResumeJobRequest(job="forged"))
    failed = client.until_final("forged")
    assert failed.failure_reason == job_pb2.FAILURE_REASON_SNAPSHOTS_LOST
    assert client.until_final(client.submit(_SPEC).id).state == SUCCEEDED
