"""Tests damaged snapshots and the pruning of old ones."""

from typing import Literal

import pytest

from remy_services.stores.contract import (
    CheckpointStore,
    Commit,
    Fenced,
    RefusedSnapshot,
    StoreUnavailable,
    newest_snapshot,
    retire_snapshots,
)
from services.tests.stores.damage import damage_snapshot
from services.tests.stores.failing_store import READS, WRITES, FailingStore


@pytest.fixture
def token(store: CheckpointStore) -> int:
    """Token of a job with snapshots at revisions 1 to 5."""
    store.create("job", Commit(b"", [b"1"], b"state 1", 3))
    token = store.acquire("job", "me")
    for revision in range(1, 5):
        store.commit("job", token, revision, Commit(b"", [b"e"], b"state %d" % (revision + 1), 3))
    return token


def _kept(store: CheckpointStore) -> list[int]:
    return [each.revision for each in store.snapshots("job")]


def test_the_newest_snapshot_is_used(store: CheckpointStore, token: int) -> None:
    snapshot, refused = newest_snapshot(store, "job")

    assert snapshot is not None
    assert (snapshot.revision, snapshot.schema_version, snapshot.data) == (5, 3, b"state 5")
    assert refused == []


def test_damaged_snapshots_are_skipped(store: CheckpointStore, token: int) -> None:
    damage_snapshot(store, "job", 5)
    damage_snapshot(store, "job", 4)

    snapshot, refused = newest_snapshot(store, "job")

    assert snapshot is not None
    assert (snapshot.revision, snapshot.data) == (3, b"state 3")
    assert refused == [
        RefusedSnapshot(
            revision,
            f"the snapshot of revision {revision} (7 bytes) is damaged: its content does not match "
            "its hash",
        )
        for revision in (5, 4)
    ]


def test_no_intact_snapshot_returns_none(store: CheckpointStore, token: int) -> None:
    store.create("new", Commit(b"", [b"1"]))
    assert newest_snapshot(store, "new") == (None, [])

    retire_snapshots(store, "job", token, keep=1)
    damage_snapshot(store, "job", 5)
    snapshot, refused = newest_snapshot(store, "job")
    assert snapshot is None
    assert [each.revision for each in refused] == [5]


@pytest.mark.parametrize(("keep", "kept"), [(1, [5]), (2, [5, 4]), (9, [5, 4, 3, 2, 1])])
def test_pruning_keeps_the_newest(
    store: CheckpointStore, token: int, keep: int, kept: list[int]
) -> None:
    assert retire_snapshots(store, "job", token, keep=keep) == []

    assert _kept(store) == kept


def test_nothing_is_pruned_while_the_newest_is_damaged(store: CheckpointStore, token: int) -> None:
    damage_snapshot(store, "job", 5)

    refused = retire_snapshots(store, "job", token, keep=1)

    assert [each.revision for each in refused] == [5]
    assert _kept(store) == [5, 4, 3, 2, 1]


def test_damaged_snapshots_do_not_count_as_kept(store: CheckpointStore, token: int) -> None:
    damage_snapshot(store, "job", 4)

    refused = retire_snapshots(store, "job", token, keep=2)

    assert [each.revision for each in refused] == [4]
    assert _kept(store) == [5, 4, 3]


def test_only_the_holder_prunes(store: CheckpointStore, token: int) -> None:
    store.acquire("job", "another")

    with pytest.raises(Fenced):
        retire_snapshots(store, "job", token)
    assert _kept(store) == [5, 4, 3, 2, 1]


@pytest.mark.parametrize("when", ["before", "after"])
def test_failures_during_pruning_leave_an_intact_snapshot(
    store: CheckpointStore, token: int, when: Literal["before", "after"]
) -> None:
    for fail_at in (1, 2):
        failing = FailingStore(store, fail_at=fail_at, when=when, counts=READS | WRITES)
        with pytest.raises(StoreUnavailable):
            retire_snapshots(failing, "job", token, keep=1)

        snapshot, _ = newest_snapshot(store, "job")
        assert snapshot is not None
        assert snapshot.revision == 5
