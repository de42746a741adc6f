"""Tests with random uploads, references and sweeps that needed recordings stay complete."""

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

#: Contents with one, three, and four parts.
_CONTENTS = [b"01234567", b"89abcdef" * 2 + b"ghijklmn", b"opqrstuv" * 4]
_KEEP_SECONDS = 100.0
_contents = st.sampled_from(_CONTENTS)
_sweepers = st.sampled_from([0, 1])
_when = st.sampled_from(["before", "after"])


class _Machine(RuleBasedStateMachine):
    """Clients that upload and reference recordings, and two coordinators that sweep."""

    def __init__(self, new_store: NewStore) -> None:
        super().__init__()
        self.store = new_store()
        self.now = 0.0
        self.sweeps = [UnusedRecordings(self.store, _KEEP_SECONDS) for _ in range(2)]
        #: Time until which a recording must exist.
        self.kept_until: dict[bytes, float] = {}
        self.referenced: set[bytes] = set()

    def teardown(self) -> None:
        self.store.close()

    @rule(content=_contents)
    def put(self, content: bytes) -> None:
        assert put_recording(self.store, content) == _hash(content)
        self.kept_until[content] = self.now + _KEEP_SECONDS

    @rule(content=_contents, fail_at=st.integers(1, 7), when=_when)
    def interrupt_upload(
        self, content: bytes, fail_at: int, when: Literal["before", "after"]
    ) -> None:
        """The store becomes unavailable in the middle of an upload."""
        failing = FailingStore(self.store, fail_at=fail_at, when=when, stays_down=True)
        with suppress(StoreUnavailable):
            put_recording(failing, content)
            self.kept_until[content] = self.now + _KEEP_SECONDS

    @rule(content=_contents, is_submitted=st.booleans())
    def submit_job(self, content: bytes, *, is_submitted: bool) -> None:
        """Claims a recording, as handlers do before they store a job, and maybe stores the job."""
        exists = claim_recording(self.store, _hash(content))
        if content in self.referenced or self.kept_until.get(content, -1.0) > self.now:
            assert exists
        if exists:
            self.kept_until[content] = self.now + _KEEP_SECONDS
            if is_submitted:
                self.referenced.add(content)

    @precondition(lambda self: self.referenced)
    @rule(data=st.data())
    def delete_job(self, data: st.DataObject) -> None:
        """Deletes the last job that references a recording."""
        content = data.draw(st.sampled_from(sorted(self.referenced)))
        self.referenced.remove(content)

    @rule(number=_sweepers, seconds=st.sampled_from([0.0, 60.0, 150.0]), times=st.integers(1, 3))
    def sweep(self, number: int, seconds: float, times: int = 1) -> None:
        self.now += seconds
        for _ in range(times):
            self.sweeps[number].sweep({_hash(each) for each in self.referenced}, self.now)

    @rule(number=_sweepers, fail_at=st.integers(1, 3), when=_when)
    def sweep_with_failure(
        self, number: int, fail_at: int, when: Literal["before", "after"]
    ) -> None:
        sweep = self.sweeps[number]
        sweep._store = FailingStore(self.store, fail_at=fail_at, when=when)
        with suppress(StoreUnavailable):
            sweep.sweep({_hash(each) for each in self.referenced}, self.now)
        sweep._store = self.store

    @rule(number=_sweepers)
    def restart_coordinator(self, number: int) -> None:
        self.sweeps[number] = UnusedRecordings(self.store, _KEEP_SECONDS)

    @rule()
    def unreferenced_recordings_expire(self) -> None:
        """Sweeps by both coordinators for long enough delete all unreferenced recordings."""
        for _ in range(4):
            self.sweep(0, _KEEP_SECONDS)
            self.sweep(1, 0.0)
        assert {each.job_id for each in self.store.jobs()} == {
            entry_of(_hash(each)) for each in self.referenced
        }

    @invariant()
    def needed_recordings_are_complete(self) -> None:
        for content in _CONTENTS:
            found = read_recording(self.store, _hash(content))
            assert found in (None, content)
            assert has_recording(self.store, _hash(content)) == (found is not None)
            if content in self.referenced or self.kept_until.get(content, -1.0) > self.now:
                assert found == content


def _hash(content: bytes) -> bytes:
    return hashlib.sha256(content).digest()


def test_needed_recordings_stay_and_others_expire(
    new_store: NewStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recordings, "_PART_BYTES", 8)
    machine: Callable[[], _Machine] = lambda: _Machine(new_store)  # noqa: E731
    run_state_machine_as_test(
        machine,  # type: ignore[arg-type]
        settings=settings(max_examples=40, stateful_step_count=25),
    )
