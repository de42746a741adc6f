"""Maintenance beside the jobs: whether the store can be written to, and a backup of the jobs."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

import structlog

from remy_services.stores.archive import Backup
from remy_services.stores.contract import CheckpointStore, StoreError

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")

# A store that hangs must not keep calls from being made that would find it well again.
_STORE_THREADS = 16
# Designers compute under Python's lock: more threads would not make them faster.
_COMPUTE_THREADS = 2


class Threads:
    """Where calls of the store wait, and designers compute; apart, so that neither delays the
    other."""

    def __init__(self) -> None:
        self._store = ThreadPoolExecutor(_STORE_THREADS, thread_name_prefix="store")
        self._compute = ThreadPoolExecutor(_COMPUTE_THREADS, thread_name_prefix="compute")

    async def store(
        self,
        call: Callable[_Parameters, _Result],
        *args: _Parameters.args,
        **kwargs: _Parameters.kwargs,
    ) -> _Result:
        """The result of a call of the store."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._store, lambda: call(*args, **kwargs))

    async def compute(
        self,
        call: Callable[_Parameters, _Result],
        *args: _Parameters.args,
        **kwargs: _Parameters.kwargs,
    ) -> _Result:
        """The result of a call that keeps a CPU busy."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._compute, lambda: call(*args, **kwargs))

    async def close(self) -> None:
        """Lets running calls end by themselves, and begins no more."""
        for pool in (self._store, self._compute):
            pool.shutdown(wait=False, cancel_futures=True)


_log = structlog.get_logger()


class BackgroundTask:
    """Something that goes on in the event loop from `begin` to `close`."""

    _task: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """Has it go on until `close`."""
        self._task = asyncio.create_task(self._run())

    async def close(self) -> None:
        """Ends it."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        raise NotImplementedError


class StoreWatch(BackgroundTask):
    """Asks now and then, so that whoever wants to know need not wait for an answer."""

    def __init__(
        self,
        store: CheckpointStore,
        threads: Threads,
        every_seconds: float,
        on_change: Callable[[str], Awaitable[None]],
    ) -> None:
        """`on_change` is told the trouble that has come, or "" when it is over."""
        self._store = store
        self._threads = threads
        self._every_seconds = every_seconds
        self._on_change = on_change
        #: One sentence; empty if there is none.
        self.trouble = ""

    async def _run(self) -> None:
        while True:
            trouble = await self._look()
            if bool(trouble) != bool(self.trouble):
                if trouble:
                    _log.warning("the store is in trouble", why=trouble)
                else:
                    _log.info("the store is well again")
                await self._on_change(trouble)
            self.trouble = trouble
            await asyncio.sleep(self._every_seconds)

    async def _look(self) -> str:
        try:
            await self._threads.store(self._store.check)
        except StoreError as error:
            return str(error)
        except Exception as error:
            _log.error("the store could not be checked", exc_info=error)
            return f"the store could not be checked ({type(error).__name__})"
        return ""


_RETRY_SECONDS = 10.0


class BackupWriter:
    """Writes jobs one after another; a mirror that is slow or away delays nothing but itself."""

    def __init__(self, mirror: Backup, store: CheckpointStore) -> None:
        self._mirror = mirror
        self._store = store
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="mirror")
        # What to do for each job, by its id, in the order in which it became due.
        self._due: dict[str, Callable[[str], str | None]] = {}
        self._news = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._task = asyncio.create_task(self._run())
        # Since when each job has been another than the mirror has it, on a monotonic clock.
        self._behind_since: dict[str, float] = {}
        #: Why the last attempt failed; empty if it did not.
        self.trouble = ""
        #: Attempts that did.
        self.failures = 0

    @property
    def behind_seconds(self) -> float:
        """For how long the oldest change that the mirror lacks has waited."""
        now = time.monotonic()
        return now - min(self._behind_since.values(), default=now)

    def save(self, job_id: str) -> None:
        """The mirror's archive of the job is not what it should be any more."""
        self._note(job_id, self._save)

    def remove(self, job_id: str) -> None:
        """The job was deleted."""
        self._note(job_id, self._mirror.remove)

    async def save_now(self, job_id: str) -> str | None:
        """The same at once; None, or one sentence about why it is not there."""
        loop = asyncio.get_running_loop()
        problem = await loop.run_in_executor(self._thread, self._save, job_id)
        if problem is None:
            self._due.pop(job_id, None)
            self._behind_since.pop(job_id, None)
        return problem

    async def place(self, job_id: str) -> str | None:
        """Where the job's archive is, for people; None if there is none, or nobody can tell."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, self._mirror.place, job_id)

    async def close(self, timeout_seconds: float) -> None:
        """Does what is due, for so long at most."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._idle.wait(), timeout_seconds)
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _note(self, job_id: str, action: Callable[[str], str | None]) -> None:
        self._due[job_id] = action
        self._behind_since.setdefault(job_id, time.monotonic())
        self._idle.clear()
        self._news.set()

    def _save(self, job_id: str) -> str | None:
        return self._mirror.save(self._store, job_id)

    async def _run(self) -> None:
        while True:
            await self._news.wait()
            while self._due:
                job_id = next(iter(self._due))
                action, begun = self._due.pop(job_id), time.monotonic()
                loop = asyncio.get_running_loop()
                problem = await loop.run_in_executor(self._thread, action, job_id)
                if problem:
                    # Whatever has become due since then is newer.
                    self._due.setdefault(job_id, action)
                    await self._tell(job_id, problem)
                    continue
                self._behind_since.pop(job_id, None)
                if job_id in self._due:
                    self._behind_since[job_id] = begun
                if self.trouble:
                    self.trouble = ""
                    _log.info("the mirror is well again")
            self._news.clear()
            self._idle.set()

    async def _tell(self, job_id: str, problem: str) -> None:
        if not self.trouble:
            _log.warning(
                "a job was not mirrored, and will be tried again", job_id=job_id, why=problem
            )
        self.trouble = problem
        self.failures += 1
        await asyncio.sleep(_RETRY_SECONDS)
