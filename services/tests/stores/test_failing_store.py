"""Tests FailingStore."""

from typing import Literal

import pytest

from remy_services.stores.contract import Commit, Conflict, StoreUnavailable
from services.tests.stores.failing_store import READS, FailingStore
from services.tests.stores.model_store import ModelStore


def _two_writes(when: Literal["before", "after"], fail_at: int) -> tuple[FailingStore, ModelStore]:
    inner = ModelStore()
    inner.create("job", Commit(b"", [b"one"]))
    store = FailingStore(inner, fail_at=fail_at, when=when)
    token = store.acquire("job", "me")
    store.commit("job", token, 1, Commit(b"", [b"two"]))
    return store, inner


def test_fail_at_zero_counts_and_never_fails() -> None:
    store, inner = _two_writes("before", 0)

    assert store.calls == ["acquire", "commit"]
    assert inner.job("job").revision == 2


@pytest.mark.parametrize("fail_at", [1, 2])
def test_fails_once(fail_at: int) -> None:
    with pytest.raises(StoreUnavailable):
        _two_writes("before", fail_at)


def test_before_has_no_effect_and_after_has_the_full_effect() -> None:
    inner = ModelStore()
    inner.create("job", Commit(b"", [b"one"]))
    token = inner.acquire("job", "me")
    commit = Commit(b"", [b"two"])

    before = FailingStore(inner, fail_at=1, when="before")
    with pytest.raises(StoreUnavailable):
        before.commit("job", token, 1, commit)
    assert inner.job("job").revision == 1

    after = FailingStore(inner, fail_at=1, when="after")
    with pytest.raises(StoreUnavailable):
        after.commit("job", token, 1, commit)
    assert inner.job("job").revision == 2
    with pytest.raises(Conflict):
        after.commit("job", token, 1, commit)


def test_can_stay_down_and_count_reads() -> None:
    store = FailingStore(
        ModelStore(), fail_at=2, when="before", counts=READS, stays_down=True, error=SystemExit
    )
    store.create("job", Commit(b"", [b"one"]))
    store.job("job")
    with pytest.raises(SystemExit):
        store.jobs()
    with pytest.raises(SystemExit):
        store.create("other", Commit(b"", [b"one"]))
    assert store.calls == ["job", "jobs"]
