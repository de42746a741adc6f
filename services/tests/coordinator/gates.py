"""Parts of a coordinator that tests can hold up."""

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
    """Lets as many requests pass as it is told to, from any thread; to be opened and closed."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._passes = 0
        self._is_open = False
        self._waiting = 0
        #: What is raised in place of the next evaluations.
        self.errors: list[Exception] = []
        #: Jobs in the order in which their requests passed.
        self.passed: list[str] = []

    def let_pass(self, requests: int) -> None:
        """So many more may pass."""
        with self._changed:
            self._passes += requests

    def open(self) -> None:
        """All may pass."""
        with self._changed:
            self._is_open = True

    def wait_for(self, waiting: int = 1) -> None:
        """Returns when so many requests wait at the gate."""
        with self._changed:
            found = self._changed.wait_for(lambda: self._waiting >= waiting, TIMEOUT_SECONDS)
        assert found, f"{self._waiting} requests came, not {waiting}"

    def come(self, count: int) -> None:
        """Somebody has come to the gate, or left it."""
        with self._changed:
            self._waiting += count
            self._changed.notify_all()

    def may_pass(self, job_id: str) -> bool:
        """Whether one of this job passes now."""
        with self._changed:
            if not self._is_open and self._passes == 0:
                return False
            self._passes = max(self._passes - 1, 0)
            self.passed.append(job_id)
            return True


class GatedEvaluator:
    """A SharedEvaluator behind a gate."""

    def __init__(self, inner: SharedEvaluator, gate: Gate) -> None:
        self._inner = inner
        self._gate = gate

    async def evaluate(
        self,
        share: Share,
        request: evaluation_pb2.EvaluationRequest,
        on_progress: OnProgress | None = None,
    ) -> Evaluation:
        self._gate.come(1)
        try:
            while not self._gate.may_pass(share.job_id):
                await asyncio.sleep(0.002)
        finally:
            self._gate.come(-1)
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
    """A store's connection, for tests to cut."""

    def __init__(self) -> None:
        self.is_cut = False


def cut_by(switch: Switch) -> Callable[[CheckpointStore], CheckpointStore]:
    """Makes a store one that is not available while the switch is cut."""

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
                raise StoreUnavailable("the cable is cut")
            return call(*args, **kwargs)

        return checked


def held_back(may_read: threading.Event) -> Callable[[CheckpointStore], CheckpointStore]:
    """Makes a store one that answers where a job's snapshots are while they may be read."""

    def wrap(inner: CheckpointStore) -> CheckpointStore:
        return _HeldBack(inner, may_read)  # type: ignore[return-value]

    return wrap


class _HeldBack:
    def __init__(self, inner: CheckpointStore, may_read: threading.Event) -> None:
        self._inner = inner
        self._may_read = may_read

    def __getattr__(self, name: str) -> object:
        return getattr(self._inner, name)

    def snapshots(self, job_id: str) -> list[Snapshot]:
        assert self._may_read.wait(TIMEOUT_SECONDS)
        return self._inner.snapshots(job_id)
