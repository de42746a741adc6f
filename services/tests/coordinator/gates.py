"""Wrappers that let tests block a coordinator's evaluator and store."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

from remy_farm.evaluation.interface import (
    Evaluation,
    EvaluatorStatus,
    OnProgress,
    Share,
    SharedEvaluator,
    WorkerLine,
)
from remy_proto.v1 import evaluation_pb2
from remy_services.stores.contract import CheckpointStore, Snapshot, StoreUnavailable
from services.tests.coordinator.running_server import TIMEOUT_SECONDS
from services.tests.stores.failing_store import READS, WRITES


class Gate:
    """Blocks evaluation requests until the test lets them pass. Thread-safe."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._passes = 0
        self._is_open = False
        self._waiting = 0
        #: Errors to raise instead of the next evaluations.
        self.errors: list[Exception] = []
        #: Job ids in the order in which their requests passed.
        self.passed: list[str] = []

    def let_pass(self, requests: int) -> None:
        """Lets this many more requests pass."""
        with self._changed:
            self._passes += requests

    def open(self) -> None:
        """Lets all requests pass from now on."""
        with self._changed:
            self._is_open = True

    def wait_for(self, waiting: int = 1) -> None:
        """Waits until this many requests are blocked."""
        with self._changed:
            found = self._changed.wait_for(lambda: self._waiting >= waiting, TIMEOUT_SECONDS)
        assert found, f"{self._waiting} requests are blocked, not {waiting}"

    def add_waiting(self, count: int) -> None:
        """Changes the number of blocked requests by `count`."""
        with self._changed:
            self._waiting += count
            self._changed.notify_all()

    def may_pass(self, job_id: str) -> bool:
        """Returns whether a request of this job may pass now."""
        with self._changed:
            if not self._is_open and self._passes == 0:
                return False
            self._passes = max(self._passes - 1, 0)
            self.passed.append(job_id)
            return True


class GatedEvaluator:
    """A SharedEvaluator whose requests wait at a gate."""

    def __init__(self, inner: SharedEvaluator, gate: Gate) -> None:
        self._inner = inner
        self._gate = gate

    async def evaluate(
        self,
        share: Share,
        request: evaluation_pb2.EvaluationRequest,
        on_progress: OnProgress | None = None,
    ) -> Evaluation:
        self._gate.add_waiting(1)
        try:
            while not self._gate.may_pass(share.job_id):
                await asyncio.sleep(0.002)
        finally:
            self._gate.add_waiting(-1)
        if self._gate.errors:
            raise self._gate.errors.pop(0)
        return await self._inner.evaluate(share, request, on_progress)

    def status(self) -> EvaluatorStatus:
        return self._inner.status()

    def worker_lines(self, job_id: str) -> list[WorkerLine]:
        return self._inner.worker_lines(job_id)

    async def close(self) -> None:
        await self._inner.close()


class Switch:
    """Switch that makes a store unavailable."""

    def __init__(self) -> None:
        self.is_cut = False


def with_switch(switch: Switch) -> Callable[[CheckpointStore], CheckpointStore]:
    """Returns a wrapper that makes a store unavailable while the switch is cut."""

    def wrap(inner: CheckpointStore) -> CheckpointStore:
        return _Switched(inner, switch)  # type: ignore[return-value]

    return wrap


class _Switched:
    def __init__(self, inner: CheckpointStore, switch: Switch) -> None:
        self._inner = inner
        self._switch = switch

    def __getattr__(self, name: str) -> object:
        call = getattr(self._inner, name)
        if name not in WRITES | READS:
            return call

        def checked(*args: object, **kwargs: object) -> object:
            if self._switch.is_cut:
                raise StoreUnavailable("the connection is cut")
            return call(*args, **kwargs)

        return checked


def with_blocked_snapshots(
    may_read: threading.Event,
) -> Callable[[CheckpointStore], CheckpointStore]:
    """Returns a wrapper that blocks reads of snapshots until the event is set."""

    def wrap(inner: CheckpointStore) -> CheckpointStore:
        return _BlockedSnapshots(inner, may_read)  # type: ignore[return-value]

    return wrap


class _BlockedSnapshots:
    def __init__(self, inner: CheckpointStore, may_read: threading.Event) -> None:
        self._inner = inner
        self._may_read = may_read

    def __getattr__(self, name: str) -> object:
        return getattr(self._inner, name)

    def snapshots(self, job_id: str) -> list[Snapshot]:
        assert self._may_read.wait(TIMEOUT_SECONDS)
        return self._inner.snapshots(job_id)
