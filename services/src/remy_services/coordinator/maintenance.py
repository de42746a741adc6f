"""Background work of a coordinator: store checks, mirror writes, and thread pools."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

import structlog

from remy_services.stores.archive import Mirror
from remy_services.stores.contract import CheckpointStore, StoreError

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")

# Enough threads that calls hanging on a stalled store leave some for the calls that notice its
# recovery.
_STORE_THREADS = 16
# Designers hold the GIL, so more threads would not make them faster.
_COMPUTE_THREADS = 2


class Threads:
    """Two thread pools, for blocking store calls and for designers, so that neither delays the
    other.
    """

    def __init__(self) -> None:
        self._store = ThreadPoolExecutor(_STORE_THREADS, thread_name_prefix="store")
        self._compute = ThreadPoolExecutor(_COMPUTE_THREADS, thread_name_prefix="compute")

    async def store(
        self,
        call: Callable[_Parameters, _Result],
        *args: _Parameters.args,
        **kwargs: _Parameters.kwargs,
    ) -> _Result:
        """Runs a store call in its pool."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._store, lambda: call(*args, **kwargs))

    async def compute(
        self,
        call: Callable[_Parameters, _Result],
        *args: _Parameters.args,
        **kwargs: _Parameters.kwargs,
    ) -> _Result:
        """Runs a CPU-bound call in its pool."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._compute, lambda: call(*args, **kwargs))

    async def close(self) -> None:
        """Shuts the pools down without waiting for running calls."""
        for pool in (self._store, self._compute):
            pool.shutdown(wait=False, cancel_futures=True)


_log = structlog.get_logger()


class BackgroundTask:
    """Base class of tasks that run in the event loop from `begin` to `close`."""

    _task: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """Starts the task."""
        self._task = asyncio.create_task(self._run())

    async def close(self) -> None:
        """Cancels the task and waits for it."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        raise NotImplementedError


class StoreWatch(BackgroundTask):
    """Checks periodically that the store accepts writes, and keeps the latest result."""

    def __init__(
        self,
        store: CheckpointStore,
        threads: Threads,
        every_seconds: float,
        on_change: Callable[[str], Awaitable[None]],
    ) -> None:
        """`on_change` gets the error when the store becomes unavailable, and "" on recovery."""
        self._store = store
        self._threads = threads
        self._every_seconds = every_seconds
        self._on_change = on_change
        #: Error of the last check; empty if it succeeded.
        self.trouble = ""

    async def _run(self) -> None:
        while True:
            trouble = await self._check()
            if bool(trouble) != bool(self.trouble):
                if trouble:
                    _log.warning("the store is unavailable", why=trouble)
                else:
                    _log.info("the store is available again")
                await self._on_change(trouble)
            self.trouble = trouble
            await asyncio.sleep(self._every_seconds)

    async def _check(self) -> str:
        try:
            await self._threads.store(self._store.check)
        except StoreError as error:
            return str(error)
        except Exception as error:
            _log.error("the store could not be checked", exc_info=error)
            return f"the store could not be checked ({type(error).__name__})"
        return ""


_RETRY_SECONDS = 10.0


class MirrorWriter:
    """Writes jobs to the mirror one at a time, in a thread of its own, with retries."""

    def __init__(self, mirror: Mirror, store: CheckpointStore) -> None:
        self._mirror = mirror
        self._store = store
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="mirror")
        # Pending action (save or remove) by job id, oldest first.
        self._due: dict[str, Callable[[str], str | None]] = {}
        self._has_work = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._task = asyncio.create_task(self._run())
        # Monotonic time since which the mirror's copy of each job is outdated.
        self._behind_since: dict[str, float] = {}
        #: Error of the last attempt; empty if it succeeded.
        self.trouble = ""
        #: Number of failed attempts.
        self.failures = 0

    @property
    def behind_seconds(self) -> float:
        """Age in seconds of the oldest change that the mirror lacks; 0 if there is none."""
        now = time.monotonic()
        return now - min(self._behind_since.values(), default=now)

    def save(self, job_id: str) -> None:
        """Schedules a write of the job."""
        self._enqueue(job_id, self._save)

    def remove(self, job_id: str) -> None:
        """The job was deleted."""
        self._enqueue(job_id, self._mirror.remove)

    async def save_now(self, job_id: str) -> str | None:
        """Writes the job now. Returns None, or one sentence about why it failed."""
        loop = asyncio.get_running_loop()
        problem = await loop.run_in_executor(self._thread, self._save, job_id)
        if problem is None:
            self._due.pop(job_id, None)
            self._behind_since.pop(job_id, None)
        return problem

    async def archive_location(self, job_id: str) -> str | None:
        """Returns the location of the job's archive, or None if there is none or it is unknown."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, self._mirror.archive_location, job_id)

    async def close(self, timeout_seconds: float) -> None:
        """Finishes pending writes within the timeout, and stops."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._idle.wait(), timeout_seconds)
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _enqueue(self, job_id: str, action: Callable[[str], str | None]) -> None:
        self._due[job_id] = action
        self._behind_since.setdefault(job_id, time.monotonic())
        self._idle.clear()
        self._has_work.set()

    def _save(self, job_id: str) -> str | None:
        return self._mirror.save(self._store, job_id)

    async def _run(self) -> None:
        while True:
            await self._has_work.wait()
            while self._due:
                job_id = next(iter(self._due))
                action, begun = self._due.pop(job_id), time.monotonic()
                loop = asyncio.get_running_loop()
                problem = await loop.run_in_executor(self._thread, action, job_id)
                if problem:
                    # An action that was scheduled meanwhile is newer and is kept.
                    self._due.setdefault(job_id, action)
                    await self._on_failure(job_id, problem)
                    continue
                self._behind_since.pop(job_id, None)
                if job_id in self._due:
                    self._behind_since[job_id] = begun
                if self.trouble:
                    self.trouble = ""
                    _log.info("the mirror is available again")
            self._has_work.clear()
            self._idle.set()

    async def _on_failure(self, job_id: str, problem: str) -> None:
        if not self.trouble:
            _log.warning(
                "a job could not be mirrored and will be retried", job_id=job_id, why=problem
            )
        self.trouble = problem
        self.failures += 1
        await asyncio.sleep(_RETRY_SECONDS)
