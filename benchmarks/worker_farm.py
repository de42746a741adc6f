"""Runs asynchronous evaluators, and worker processes for them, from synchronous code."""

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

# Long enough for a busy machine.
_TIMEOUT_SECONDS = 120.0

_T = TypeVar("_T")


class Fleet:
    """A synchronous Evaluator over an asynchronous one, which runs in an event loop in a thread."""

    def __init__(self, make_evaluator: Callable[[], SharedEvaluator]) -> None:
        """`make_evaluator` is called in the event loop."""
        self._make_evaluator = make_evaluator
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
        """Runs a coroutine in the event loop and returns its result."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    def begin(self, coroutine: Coroutine[Any, Any, _T]) -> Future[_T]:
        """Starts a coroutine in the event loop; the returned future can be cancelled."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop)

    def call_in_loop(self, function: Callable[[], _T]) -> _T:
        """Calls a plain function in the event loop's thread and returns its result."""

        async def call() -> _T:
            return function()

        return self.call(call())

    def evaluate(
        self, request: evaluation_pb2.EvaluationRequest, on_progress: OnProgress | None = None
    ) -> evaluation_pb2.EvaluationOutcome:
        """Implements Evaluator."""
        return self.share(Share("job"), request, on_progress).outcome

    def share(
        self,
        share: Share,
        request: evaluation_pb2.EvaluationRequest,
        on_progress: OnProgress | None = None,
    ) -> Evaluation:
        """Evaluates for a job, and returns the outcome with its cost. See SharedEvaluator."""
        assert self._evaluator is not None
        return self.call(self._evaluator.evaluate(share, request, on_progress))

    def close(self) -> None:
        """Closes the evaluator and stops the event loop."""
        if self._thread.is_alive():
            self.call(self._close())
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()

    async def _open(self) -> None:
        self._evaluator = self._make_evaluator()

    async def _close(self) -> None:
        if self._evaluator is not None:
            await self._evaluator.close()


class WorkerFarm(Fleet):
    """A gRPC server for workers, and worker processes, all on this machine."""

    def __init__(
        self, settings: WorkerFleetSettings | None = None, *, port: int = 0, **options: Any
    ) -> None:
        """Listens on `port`; 0 chooses a free one. `options` are passed to WorkerFleet."""
        super().__init__(self._make_fleet)
        self._settings = settings
        self._options = options
        self._server: grpc.aio.Server | None = None
        self._processes: list[subprocess.Popen[bytes]] = []
        self.port = port

    @property
    def fleet(self) -> WorkerFleet:
        """The evaluator of workers; call it in the event loop only."""
        assert isinstance(self._evaluator, WorkerFleet)
        return self._evaluator

    def start_worker(
        self,
        *flags: str,
        threads: int = 1,
        port: int | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> subprocess.Popen[bytes]:
        """Starts a worker process, which `close` kills.

        `port` is the port that the worker connects to; by default that of this farm's server.
        """
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

    def detach(self, process: subprocess.Popen[bytes]) -> None:
        """Leaves a worker process running when this farm is closed."""
        self._processes.remove(process)

    def take_over(self, process: subprocess.Popen[bytes]) -> None:
        """Kills another farm's worker process when this farm is closed."""
        self._processes.append(process)

    def start_and_cancel(
        self, share: Share, request: evaluation_pb2.EvaluationRequest, after_tasks: int
    ) -> None:
        """Starts an evaluation and cancels it once `after_tasks` of its tasks are done."""

        async def begin_and_cancel() -> None:
            done = self.fleet.snapshot().counts.tasks_done
            evaluation = asyncio.create_task(self.fleet.evaluate(share, request))
            while self.fleet.snapshot().counts.tasks_done < done + after_tasks:
                await asyncio.sleep(0.01)
            evaluation.cancel()
            await asyncio.gather(evaluation, return_exceptions=True)

        self.call(begin_and_cancel())

    def wait_for_workers(self, count: int) -> None:
        """Returns once exactly `count` workers are connected."""
        self.wait_until(lambda: self.fleet.snapshot().workers == count)

    def wait_until(self, condition: Callable[[], bool]) -> None:
        """Returns once the condition is true; it is evaluated in the event loop.

        Raises TimeoutError with the fleet's state.
        """
        deadline = time.monotonic() + _TIMEOUT_SECONDS
        while not self.call_in_loop(condition):
            if time.monotonic() > deadline:
                snapshot = self.fleet.snapshot()
                raise TimeoutError(f"after {_TIMEOUT_SECONDS} s the farm's state is {snapshot}")
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
