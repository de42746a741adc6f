"""Shared evaluators from ordinary code: a fleet in an event loop of its own, and its workers."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import Future
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import grpc

from remy_farm.evaluation.interface import Evaluation, OnProgress, Share, SharedEvaluator
from remy_proto.v1 import evaluation_pb2
from remy_services.transport.grpc import WorkerFleet, WorkerFleetSettings

REMY_WORKER = Path(sys.executable).with_name("remy-worker")

# Machines that run tests are slow and busy.
_PATIENCE_SECONDS = 120.0

_T = TypeVar("_T")


class Fleet:
    """A shared evaluator as an Evaluator: every call waits for its outcome."""

    def __init__(self, make: Callable[[], SharedEvaluator]) -> None:
        """`make` is called in the event loop."""
        self._make = make
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="fleet", daemon=True)
        self._evaluator: SharedEvaluator | None = None

    def __enter__(self) -> Self:
        self._thread.start()
        self.call(self._open())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def call(self, coroutine: Coroutine[Any, Any, _T]) -> _T:
        """What a coroutine of the event loop returns."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    def begin(self, coroutine: Coroutine[Any, Any, _T]) -> Future[_T]:
        """Has the event loop run a coroutine; it can be cancelled."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop)

    def now(self, function: Callable[[], _T]) -> _T:
        """What a function returns when it is called in the event loop."""

        async def call() -> _T:
            return function()

        return self.call(call())

    def evaluate(
        self, request: evaluation_pb2.EvaluationRequest, on_progress: OnProgress | None = None
    ) -> evaluation_pb2.EvaluationOutcome:
        """See Evaluator."""
        return self.share(Share("job"), request, on_progress).outcome

    def share(
        self,
        share: Share,
        request: evaluation_pb2.EvaluationRequest,
        on_progress: OnProgress | None = None,
    ) -> Evaluation:
        """See SharedEvaluator."""
        assert self._evaluator is not None
        return self.call(self._evaluator.evaluate(share, request, on_progress))

    def close(self) -> None:
        """Ends the event loop and all that is in it."""
        if self._thread.is_alive():
            self.call(self._close())
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()

    async def _open(self) -> None:
        self._evaluator = self._make()

    async def _close(self) -> None:
        if self._evaluator is not None:
            await self._evaluator.close()


class WorkerFarm(Fleet):
    """A fleet of workers behind a gRPC server on this machine, and processes that work for it."""

    def __init__(
        self, settings: WorkerFleetSettings | None = None, *, port: int = 0, **options: Any
    ) -> None:
        """On any port by default. `options` are WorkerFleet's."""
        super().__init__(self._make_fleet)
        self._settings = settings
        self._options = options
        self._server: grpc.aio.Server | None = None
        self._processes: list[subprocess.Popen[bytes]] = []
        self.port = port

    @property
    def fleet(self) -> WorkerFleet:
        """The evaluator."""
        assert isinstance(self._evaluator, WorkerFleet)
        return self._evaluator

    def start_worker(
        self,
        *flags: str,
        threads: int = 1,
        port: int | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> subprocess.Popen[bytes]:
        """A worker's process; it is ended with the farm. `port`: of a proxy in between."""
        process = subprocess.Popen(
            [
                REMY_WORKER,
                f"--coordinator=127.0.0.1:{port or self.port}",
                f"--threads={threads}",
                "--log-level=warning",
                *flags,
            ],
            env={**os.environ, **(environment or {})},
        )
        self._processes.append(process)
        return process

    def disown(self, process: subprocess.Popen[bytes]) -> None:
        """A worker's process is not ended with the farm."""
        self._processes.remove(process)

    def adopt(self, process: subprocess.Popen[bytes]) -> None:
        """Another farm's worker process is ended with this one."""
        self._processes.append(process)

    def abandon(
        self, share: Share, request: evaluation_pb2.EvaluationRequest, after_tasks: int
    ) -> None:
        """Begins an evaluation, and cancels it once so many tasks are done."""

        async def begin_and_cancel() -> None:
            done = self.fleet.snapshot().counts.tasks_done
            evaluation = asyncio.create_task(self.fleet.evaluate(share, request))
            while self.fleet.snapshot().counts.tasks_done < done + after_tasks:
                await asyncio.sleep(0.01)
            evaluation.cancel()
            await asyncio.gather(evaluation, return_exceptions=True)

        self.call(begin_and_cancel())

    def wait_for_workers(self, count: int) -> None:
        """Returns once exactly so many are connected."""
        self.wait_until(lambda: self.fleet.snapshot().workers == count)

    def wait_until(self, condition: Callable[[], bool]) -> None:
        """Returns once a condition holds that is looked at in the event loop."""
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while not self.now(condition):
            if time.monotonic() > deadline:
                raise TimeoutError(f"not within {_PATIENCE_SECONDS} s: {self.fleet.snapshot()}")
            time.sleep(0.02)

    def close(self) -> None:
        super().close()
        for process in self._processes:
            process.kill()
            process.wait()

    def _make_fleet(self) -> SharedEvaluator:
        return WorkerFleet(self._settings, **self._options)

    async def _open(self) -> None:
        await super()._open()
        self._server = grpc.aio.server(options=[("grpc.so_reuseport", 0)])
        self.fleet.add_to(self._server)
        self.port = self._server.add_insecure_port(f"127.0.0.1:{self.port}")
        await self._server.start()

    async def _close(self) -> None:
        await super()._close()
        if self._server is not None:
            await self._server.stop(grace=1.0)
