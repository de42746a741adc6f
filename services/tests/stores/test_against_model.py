"""Tests that random sequences of calls give the same results as on ModelStore."""

from collections.abc import Callable
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    rule,
    run_state_machine_as_test,
)

from remy_services.stores.contract import CheckpointStore, Commit, Conflict, StoreError
from services.tests.stores.conftest import NewStore
from services.tests.stores.contents import contents
from services.tests.stores.model_store import ModelStore

_jobs = st.sampled_from(["a", "b", "c-1", "ü}:{"])
_holders = st.sampled_from(["one", "two"])
_bytes = st.binary(max_size=6) | st.sampled_from([b"\x00", b"\xff\r\n", b"x" * 5000])
_commits = st.builds(
    Commit,
    record=_bytes,
    events=st.lists(_bytes, min_size=1, max_size=3),
    snapshot=st.none() | _bytes,
    schema_version=st.integers(0, 2**32 - 1),
    epochs=st.dictionaries(st.sampled_from([0, 1, 9, 10, 4_000_000_000]), _bytes, max_size=3),
)


class _Machine(RuleBasedStateMachine):
    """Two holders that acquire jobs from each other, and make valid and invalid changes."""

    def __init__(self, new_store: NewStore) -> None:
        super().__init__()
        self.real = new_store()
        self.model = ModelStore()
        self.tokens: dict[tuple[str, str], int] = {}

    def teardown(self) -> None:
        self.real.close()

    def same(self, call: Callable[[CheckpointStore], Any]) -> Any:
        """Returns the result of a call, and asserts that it is the same on both stores."""
        expected = _outcome(call, self.model)
        assert _outcome(call, self.real) == expected
        return expected

    @rule(job=_jobs, commit=_commits, key=st.none() | st.sampled_from(["", "k", "l"]))
    def create(self, job: str, commit: Commit, key: str | None) -> None:
        self.same(lambda store: store.create(job, commit, request_key=key))

    @rule(job=_jobs, holder=_holders)
    def acquire(self, job: str, holder: str) -> None:
        kind, token = self.same(lambda store: store.acquire(job, holder))
        if kind == "returned":
            self.tokens[job, holder] = token

    @rule(
        job=_jobs,
        holder=_holders,
        commit=_commits,
        off_by=st.sampled_from([0, 0, 0, 0, -1, 1]),
    )
    def commit(self, job: str, holder: str, commit: Commit, off_by: int) -> None:
        _, stored = _outcome(lambda store: store.job(job), self.model)
        revision = getattr(stored, "revision", 0) + off_by
        self.same(lambda store: store.commit(job, self.token(job, holder), revision, commit))

    @rule(job=_jobs, holder=_holders, keep=st.integers(1, 3))
    def prune(self, job: str, holder: str, keep: int) -> None:
        self.same(lambda store: store.prune_snapshots(job, self.token(job, holder), keep=keep))

    @rule(job=_jobs, holder=_holders)
    def delete(self, job: str, holder: str) -> None:
        self.same(lambda store: store.delete(job, self.token(job, holder)))

    @rule(job=_jobs, after=st.integers(0, 8), limit=st.integers(1, 5))
    def events(self, job: str, after: int, limit: int) -> None:
        self.same(lambda store: store.events(job, after=after, limit=limit))

    @rule(job=_jobs, number=st.sampled_from([0, 9, 10, 11]))
    def epoch(self, job: str, number: int) -> None:
        self.same(lambda store: store.epoch(job, number))

    @invariant()
    def equal(self) -> None:
        self.same(contents)

    def token(self, job: str, holder: str) -> int:
        return self.tokens.get((job, holder), 0)


def _outcome(call: Callable[[CheckpointStore], Any], store: CheckpointStore) -> tuple[str, Any]:
    try:
        return "returned", call(store)
    except Conflict as conflict:
        return "conflict", conflict.revision
    except StoreError as error:
        return "raised", type(error)


def test_any_calls_match_the_model(new_store: NewStore) -> None:
    def machine() -> _Machine:
        return _Machine(new_store)

    run_state_machine_as_test(
        machine,  # type: ignore[arg-type]
        settings=settings(max_examples=25, stateful_step_count=30),
    )
