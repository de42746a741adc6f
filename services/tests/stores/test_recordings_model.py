"""Whatever is brought, named, broken off and swept: a recording that is of use is there, whole."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from contextlib import suppress
from typing import Literal

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from remy_services.stores import recordings
from remy_services.stores.contract import StoreUnavailable
from remy_services.stores.recordings import (
    UnusedRecordings,
    claim_recording,
    entry_of,
    has_recording,
    put_recording,
    read_recording,
)
from services.tests.stores.conftest import NewStore
from services.tests.stores.failing_store import FailingStore

#: Of one part, of three, and of four, the last of them whole.
_CONTENTS = [b"01234567", b"89abcdef" * 2 + b"ghijklmn", b"opqrstuv" * 4]
_KEEP_SECONDS = 100.0
_contents = st.sampled_from(_CONTENTS)
_sweepers = st.sampled_from([0, 1])
_when = st.sampled_from(["before", "after"])


class _Machine(RuleBasedStateMachine):
    """People who bring recordings and name them in jobs, and two coordinators that sweep."""

    def __init__(self, new_store: NewStore) -> None:
        super().__init__()
        self.store = new_store()
        self.now = 0.0
        self.sweeps = [UnusedRecordings(self.store, _KEEP_SECONDS) for _ in range(2)]
        #: Until when a recording is certain to be there.
        self.kept_until: dict[bytes, float] = {}
        self.named: set[bytes] = set()

    def teardown(self) -> None:
        self.store.close()

    @rule(content=_contents)
    def put(self, content: bytes) -> None:
        assert put_recording(self.store, content) == _hash(content)
        self.kept_until[content] = self.now + _KEEP_SECONDS

    @rule(content=_contents, fail_at=st.integers(1, 7), when=_when)
    def break_off(self, content: bytes, fail_at: int, when: Literal["before", "after"]) -> None:
        """The store goes away in the middle of an upload."""
        failing = FailingStore(self.store, fail_at=fail_at, when=when, stays_down=True)
        with suppress(StoreUnavailable):
            put_recording(failing, content)
            self.kept_until[content] = self.now + _KEEP_SECONDS

    @rule(content=_contents, is_submitted=st.booleans())
    def name(self, content: bytes, *, is_submitted: bool) -> None:
        """A job is about to be submitted: as handlers do, the recording is claimed before."""
        is_there = claim_recording(self.store, _hash(content))
        if content in self.named or self.kept_until.get(content, -1.0) > self.now:
            assert is_there
        if is_there:
            self.kept_until[content] = self.now + _KEEP_SECONDS
            if is_submitted:
                self.named.add(content)

    @precondition(lambda self: self.named)
    @rule(data=st.data())
    def unname(self, data: st.DataObject) -> None:
        """The last job that named it is deleted."""
        content = data.draw(st.sampled_from(sorted(self.named)))
        self.named.remove(content)

    @rule(number=_sweepers, seconds=st.sampled_from([0.0, 60.0, 150.0]), times=st.integers(1, 3))
    def sweep(self, number: int, seconds: float, times: int = 1) -> None:
        self.now += seconds
        for _ in range(times):
            self.sweeps[number].sweep({_hash(each) for each in self.named}, self.now)

    @rule(number=_sweepers, fail_at=st.integers(1, 3), when=_when)
    def sweep_in_trouble(self, number: int, fail_at: int, when: Literal["before", "after"]) -> None:
        sweep = self.sweeps[number]
        sweep._store = FailingStore(self.store, fail_at=fail_at, when=when)
        with suppress(StoreUnavailable):
            sweep.sweep({_hash(each) for each in self.named}, self.now)
        sweep._store = self.store

    @rule(number=_sweepers)
    def coordinator_begins_anew(self, number: int) -> None:
        self.sweeps[number] = UnusedRecordings(self.store, _KEEP_SECONDS)

    @rule()
    def nothing_of_no_use_stays(self) -> None:
        """Two coordinators that are well, for long enough."""
        for _ in range(4):
            self.sweep(0, _KEEP_SECONDS)
            self.sweep(1, 0.0)
        assert {each.job_id for each in self.store.jobs()} == {
            entry_of(_hash(each)) for each in self.named
        }

    @invariant()
    def what_is_of_use_is_there(self) -> None:
        for content in _CONTENTS:
            found = read_recording(self.store, _hash(content))
            assert found in (None, content)
            assert has_recording(self.store, _hash(content)) == (found is not None)
            if content in self.named or self.kept_until.get(content, -1.0) > self.now:
                assert found == content


def _hash(content: bytes) -> bytes:
    return hashlib.sha256(content).digest()


def test_what_is_of_use_is_there_and_nothing_else_stays(
    new_store: NewStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recordings, "_PART_BYTES", 8)
    machine: Callable[[], _Machine] = lambda: _Machine(new_store)  # noqa: E731
    run_state_machine_as_test(
        machine,  # type: ignore[arg-type]
        settings=settings(max_examples=40, stateful_step_count=25),
    )
