"""Tests that MeasuredStore passes results through and measures operations."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from remy_services.stores.contract import CheckpointStore, Commit, Conflict, Fenced, JobMissing
from remy_services.stores.sqlite import SqliteStore
from remy_services.telemetry.telemetry import Telemetry
from services.tests.telemetry.exported import value


@pytest.fixture
def telemetry() -> Telemetry:
    return Telemetry()


@pytest.fixture
def store(tmp_path: Path, telemetry: Telemetry) -> Iterator[CheckpointStore]:
    measured = telemetry.store(SqliteStore(tmp_path / "jobs.sqlite"))
    yield measured
    measured.close()


def commit(snapshot: bytes | None = None) -> Commit:
    return Commit(b"record", [b"event"], snapshot, 1)


def operations(telemetry: Telemetry, operation: str) -> float:
    name = "remy_farm_store_operation_duration_seconds_count"
    return value(telemetry.registry, name, operation=operation)


def test_results_pass_through(store: CheckpointStore) -> None:
    assert store.create("j", commit()) == "j"
    token = store.acquire("j", "me")
    assert store.commit("j", token, 1, commit(b"state")) == 2
    assert store.job("j").record == b"record"
    assert [job.job_id for job in store.jobs()] == ["j"]
    assert [snapshot.data for snapshot in store.snapshots("j")] == [b"state"]
    assert store.events("j", after=1) == [(2, b"event")]
    assert store.epochs("j") == {}
    assert store.epoch("j", 0) is None
    store.prune_snapshots("j", token, keep=1)
    store.check()
    store.delete("j", token)
    with pytest.raises(JobMissing):
        store.job("j")


def test_operations_and_checkpoints_are_measured(
    store: CheckpointStore, telemetry: Telemetry
) -> None:
    store.create("j", commit())
    token = store.acquire("j", "me")
    store.commit("j", token, 1, commit())
    store.commit("j", token, 2, commit(b"x" * 3000))
    registry = telemetry.registry
    assert operations(telemetry, "commit") == 2
    assert operations(telemetry, "acquire") == 1
    assert value(registry, "remy_farm_checkpoint_duration_seconds_count") == 1
    assert value(registry, "remy_farm_checkpoint_size_bytes_sum") == 3000
    assert value(registry, "remy_farm_store_durable") == 1
    assert value(registry, "remy_farm_store_available") == 1
    assert telemetry.step_times.seconds()["store"] > 0
    kept = telemetry.activity.last_checkpoint("j")
    assert kept is not None
    assert kept.size_bytes == 3000


def test_fenced_commits_are_counted(store: CheckpointStore, telemetry: Telemetry) -> None:
    store.create("j", commit())
    old = store.acquire("j", "me")
    store.acquire("j", "another")
    with pytest.raises(Fenced):
        store.commit("j", old, 1, commit(b"state"))
    registry = telemetry.registry
    assert value(registry, "remy_farm_fencing_conflicts_total") == 1
    assert value(registry, "remy_farm_checkpoint_failures_total", reason="fenced") == 1
    assert value(registry, "remy_farm_store_errors_total", operation="commit") == 1
    assert value(registry, "remy_farm_store_available") == 1


def test_repeated_commits_count_as_conflicts(store: CheckpointStore, telemetry: Telemetry) -> None:
    store.create("j", commit())
    token = store.acquire("j", "me")
    store.commit("j", token, 1, commit(b"state"))
    with pytest.raises(Conflict):
        store.commit("j", token, 1, commit(b"state"))
    reasons = ("fenced", "conflict", "unavailable", "other")
    name = "remy_farm_checkpoint_failures_total"
    counted = {reason: value(telemetry.registry, name, reason=reason) for reason in reasons}
    assert counted == {"fenced": 0, "conflict": 1, "unavailable": 0, "other": 0}
