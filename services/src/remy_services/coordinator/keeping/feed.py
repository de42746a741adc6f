"""A job's committed events, for whoever watches it."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Sequence

from remy_farm.v1 import job_pb2

_RECENT = 500


class Feed:
    """The newest events of a job's history, and a bell that rings when there is news."""

    def __init__(self, revision: int) -> None:
        #: Of the newest event.
        self.revision = revision
        self._recent: deque[job_pb2.JobEvent] = deque(maxlen=_RECENT)
        self._bell = asyncio.Event()

    def publish(self, events: Sequence[job_pb2.JobEvent]) -> None:
        """Adds the next events of the history."""
        self._recent.extend(events)
        self.revision = events[-1].revision
        self.wake()

    def skip_to(self, revision: int) -> None:
        """The history was continued elsewhere."""
        if revision != self.revision:
            self._recent.clear()
            self.revision = revision
            self.wake()

    def forget(self) -> None:
        """Keeps no events: the job is over, and its history is in the store."""
        self._recent.clear()

    def wake(self) -> None:
        """Has everybody look who waits for news."""
        bell, self._bell = self._bell, asyncio.Event()
        bell.set()

    def after(self, revision: int) -> list[job_pb2.JobEvent] | None:
        """The events above `revision`; None if they do not all lie here any more."""
        if revision >= self.revision:
            return []
        if not self._recent or self._recent[0].revision > revision + 1:
            return None
        skipped = revision + 1 - self._recent[0].revision
        return [event for number, event in enumerate(self._recent) if number >= skipped]

    async def news(self, timeout_seconds: float) -> None:
        """Returns at the next news, or when the time is up."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._bell.wait(), timeout_seconds)
