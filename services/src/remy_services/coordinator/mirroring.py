"""Keeps a mirror of the jobs up to date, beside everything else."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import structlog

from remy_services.stores import CheckpointStore, Mirror

_RETRY_SECONDS = 10.0

_log = structlog.get_logger()


class Mirroring:
    """Writes jobs one after another; a mirror that is slow or away delays nothing but itself."""

    def __init__(self, mirror: Mirror, store: CheckpointStore) -> None:
        self._mirror = mirror
        self._store = store
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="mirror")
        # What to do for each job, by its id, in the order in which it became due.
        self._due: dict[str, Callable[[str], str | None]] = {}
        self._news = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._task = asyncio.create_task(self._run())
        #: Why the last attempt failed; empty if it did not.
        self.trouble = ""

    def save(self, job_id: str) -> None:
        """The mirror's archive of the job is not what it should be any more."""
        self._note(job_id, self._save)

    def remove(self, job_id: str) -> None:
        """The job was deleted."""
        self._note(job_id, self._mirror.remove)

    async def close(self, timeout_seconds: float) -> None:
        """Does what is due, for so long at most."""
        await asyncio.wait({asyncio.create_task(self._idle.wait())}, timeout=timeout_seconds)
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _note(self, job_id: str, action: Callable[[str], str | None]) -> None:
        self._due[job_id] = action
        self._idle.clear()
        self._news.set()

    def _save(self, job_id: str) -> str | None:
        return self._mirror.save(self._store, job_id)

    async def _run(self) -> None:
        while True:
            await self._news.wait()
            job_id = next(iter(self._due))
            action = self._due.pop(job_id)
            problem = await asyncio.get_running_loop().run_in_executor(self._thread, action, job_id)
            if problem:
                # Whatever has become due since then is newer.
                self._due.setdefault(job_id, action)
                await self._tell(job_id, problem)
            elif self.trouble:
                self.trouble = ""
                _log.info("the mirror is well again")
            if not self._due:
                self._news.clear()
                self._idle.set()

    async def _tell(self, job_id: str, problem: str) -> None:
        if not self.trouble:
            _log.warning(
                "a job was not mirrored, and will be tried again", job_id=job_id, why=problem
            )
        self.trouble = problem
        await asyncio.sleep(_RETRY_SECONDS)
