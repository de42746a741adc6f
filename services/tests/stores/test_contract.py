"""Tests the store contract by examples."""

import hashlib

import pytest

from remy_services.stores.contract import (
    CheckpointStore,
    Commit,
    Conflict,
    Fenced,
    JobExists,
    JobMissing,
    Snapshot,
)

FIRST = Commit(b"record", [b"submitted"])


def test_a_new_job_has_the_committed_contents(store: CheckpointStore) -> None:
    commit = Commit(
        b"record", [b"one", b"two"], b"state", schema_version=7, epochs={0: b"zero", 12: b"twelve"}
    )

    assert store.create("job", commit) == "job"

    job = store.job("job")
    assert (job.job_id, job.record, job.revision, job.token) == ("job", b"record", 2, 0)
    assert store.jobs() == [job]
    assert store.events("job") == [(1, b"one"), (2, b"two")]
    assert store.epochs("job") == {0: b"zero", 12: b"twelve"}
    assert store.epoch("job", 12) == b"twelve"
    assert store.epoch("job", 1) is None
    digest = hashlib.sha256(b"state").digest()
    assert store.snapshots("job") == [Snapshot(2, 7, b"state", digest)]


def test_a_commit_changes_record_events_epochs_and_snapshot(store: CheckpointStore) -> None:
    store.create("job", Commit(b"old", [b"one"], b"first", 1, epochs={0: b"old"}))
    token = store.acquire("job", "me")

    revision = store.commit(
        "job", token, 1, Commit(b"new", [b"two", b"three"], b"second", 2, epochs={0: b"new"})
    )

    assert revision == 3
    assert store.job("job").record == b"new"
    assert store.events("job") == [(1, b"one"), (2, b"two"), (3, b"three")]
    assert store.epochs("job") == {0: b"new"}
    assert [(each.revision, each.data) for each in store.snapshots("job")] == [
        (3, b"second"),
        (1, b"first"),
    ]


def test_a_commit_without_snapshot_keeps_the_previous_one(store: CheckpointStore) -> None:
    store.create("job", Commit(b"", [b"one"], b"state", 1))
    token = store.acquire("job", "me")

    store.commit("job", token, 1, Commit(b"", [b"two"]))

    assert [each.revision for each in store.snapshots("job")] == [1]


def test_an_imported_snapshot_keeps_its_revision(store: CheckpointStore) -> None:
    store.create("job", Commit(b"", [b"one", b"two"], b"state", 1, snapshot_revision=1))

    assert [each.revision for each in store.snapshots("job")] == [1]


def test_empty_values_are_stored(store: CheckpointStore) -> None:
    store.create("job", Commit(b"", [b""], b"", 1, epochs={0: b""}))

    assert [each.data for each in store.snapshots("job")] == [b""]
    assert store.epoch("job", 0) == b""
    assert store.events("job") == [(1, b"")]


def test_an_outdated_token_is_fenced_and_changes_nothing(store: CheckpointStore) -> None:
    store.create("job", FIRST)
    older = store.acquire("job", "one")
    newer = store.acquire("job", "two")
    before = store.job("job")

    assert newer > older
    with pytest.raises(Fenced):
        store.commit("job", older, 1, Commit(b"stolen", [b"no"], b"no", 1, epochs={0: b"no"}))
    with pytest.raises(Fenced):
        store.prune_snapshots("job", older, keep=1)
    with pytest.raises(Fenced):
        store.delete("job", older)
    assert store.job("job") == before
    assert store.events("job") == [(1, b"submitted")]
    assert (store.snapshots("job"), store.epochs("job")) == ([], {})


def test_token_zero_is_fenced(store: CheckpointStore) -> None:
    store.create("job", FIRST)

    with pytest.raises(Fenced):
        store.commit("job", 0, 1, Commit(b"", [b"no"]))


def test_a_commit_on_another_revision_conflicts_and_changes_nothing(store: CheckpointStore) -> None:
    store.create("job", FIRST)
    token = store.acquire("job", "me")
    before = store.job("job")

    for revision in (0, 2):
        with pytest.raises(Conflict) as raised:
            store.commit("job", token, revision, Commit(b"no", [b"no"], b"no", 1, epochs={0: b""}))
        assert raised.value.revision == 1
    assert store.job("job") == before
    assert (store.snapshots("job"), store.epochs("job")) == ([], {})


def test_a_repeated_commit_reports_the_new_revision(store: CheckpointStore) -> None:
    store.create("job", FIRST)
    token = store.acquire("job", "me")
    commit = Commit(b"new", [b"two", b"three"])
    store.commit("job", token, 1, commit)

    with pytest.raises(Conflict) as raised:
        store.commit("job", token, 1, commit)

    assert raised.value.revision == 1 + len(commit.events)


def test_a_request_key_creates_one_job(store: CheckpointStore) -> None:
    assert store.create("a", FIRST, request_key="key") == "a"

    assert store.create("b", FIRST, request_key="key") == "a"
    assert store.create("c", FIRST, request_key="") == "c"
    assert store.create("d", FIRST, request_key="") == "c"
    assert sorted(job.job_id for job in store.jobs()) == ["a", "c"]


def test_an_existing_id_is_refused(store: CheckpointStore) -> None:
    store.create("job", FIRST)

    with pytest.raises(JobExists):
        store.create("job", Commit(b"other", [b"other"]))
    with pytest.raises(JobExists):
        store.create("job", Commit(b"other", [b"other"]), request_key="key")
    assert store.job("job").record == b"record"
    assert store.create("other", FIRST, request_key="key") == "other"


def test_pruning_keeps_the_newest_snapshots(store: CheckpointStore) -> None:
    store.create("job", Commit(b"", [b"1"], b"1", 1))
    token = store.acquire("job", "me")
    for revision in range(1, 12):
        store.commit("job", token, revision, Commit(b"", [b"e"], b"%d" % (revision + 1), 1))

    store.prune_snapshots("job", token, keep=3)

    assert [each.revision for each in store.snapshots("job")] == [12, 11, 10]
    store.prune_snapshots("job", token, keep=5)
    assert [each.data for each in store.snapshots("job")] == [b"12", b"11", b"10"]


def test_events_are_paginated(store: CheckpointStore) -> None:
    store.create("job", Commit(b"", [b"%d" % number for number in range(1, 8)]))

    assert store.events("job", after=2, limit=3) == [(3, b"3"), (4, b"4"), (5, b"5")]
    assert store.events("job", after=6, limit=3) == [(7, b"7")]
    assert store.events("job", after=7) == []
    assert store.events("job", after=99) == []


def test_deleting_removes_all_data_and_frees_the_request_key(store: CheckpointStore) -> None:
    store.create("job", Commit(b"r", [b"e"], b"s", 1, epochs={0: b"t"}), request_key="key")
    store.create("other", FIRST)
    token = store.acquire("job", "me")

    store.delete("job", token)

    assert [job.job_id for job in store.jobs()] == ["other"]
    assert store.create("job", FIRST, request_key="key") == "job"
    assert store.events("job") == [(1, b"submitted")]
    assert (store.snapshots("job"), store.epochs("job")) == ([], {})


def test_a_recreated_job_fences_its_old_holder(store: CheckpointStore) -> None:
    store.create("job", FIRST)
    old = store.acquire("job", "me")
    store.delete("job", old)
    store.create("job", FIRST)

    assert store.acquire("job", "another") > old
    with pytest.raises(Fenced):
        store.commit("job", old, 1, Commit(b"", [b"no"]))


def test_every_call_on_a_missing_job_raises_job_missing(store: CheckpointStore) -> None:
    calls = (
        lambda: store.acquire("job", "me"),
        lambda: store.commit("job", 1, 1, FIRST),
        lambda: store.job("job"),
        lambda: store.snapshots("job"),
        lambda: store.prune_snapshots("job", 1, keep=1),
        lambda: store.events("job"),
        lambda: store.epochs("job"),
        lambda: store.epoch("job", 0),
        lambda: store.delete("job", 1),
    )
    for call in calls:
        with pytest.raises(JobMissing, match="there is no job job in the store"):
            call()
    assert store.jobs() == []


def test_invalid_arguments_are_refused(store: CheckpointStore) -> None:
    store.create("job", FIRST)
    token = store.acquire("job", "me")

    with pytest.raises(ValueError, match="at least 1"):
        store.commit("job", token, 1, Commit(b"", []))
    with pytest.raises(ValueError, match="at least 1"):
        store.create("empty", Commit(b"", []))
    with pytest.raises(ValueError, match="no snapshot"):
        store.create("empty", Commit(b"", [b""], snapshot_revision=1))
    with pytest.raises(ValueError, match="keep is 0"):
        store.prune_snapshots("job", token, keep=0)
    for after, limit in ((-1, 1), (0, 0)):
        with pytest.raises(ValueError, match=f"after is {after} and limit is {limit}"):
            store.events("job", after=after, limit=limit)
    assert [job.job_id for job in store.jobs()] == ["job"]


def test_durability_is_described(store: CheckpointStore) -> None:
    store.check()

    durability = store.durability()
    assert durability.kind in ("sqlite", "redis")
    assert durability.durable
    assert "disk" in durability.description


def test_usage_reports_sizes(store: CheckpointStore) -> None:
    store.create("job", FIRST)
    usage = store.usage()
    assert usage.keys() & {"memory", "disk"}
    assert usage.keys() <= {"memory", "memory_limit", "disk", "disk_free"}
    assert all(size > 0 for size in usage.values())
