"""A job's history as it arrives in pieces, put together. Pure."""

from __future__ import annotations

from remy_farm.v1 import job_pb2


class GapInHistory(Exception):
    """An entry was left out; the message says which."""


class HistoryCursor:
    """Knows how far the history has been seen, so that no entry is lost or repeated."""

    def __init__(self, after_revision: int = 0) -> None:
        #: Of the last entry that was taken.
        self.revision = after_revision

    def take(self, event: job_pb2.JobEvent) -> bool:
        """Whether the entry is the next one; an entry that was seen before is not.

        Raises GapInHistory if there must have been another in between.
        """
        if event.revision <= self.revision:
            return False
        if event.revision != self.revision + 1:
            raise GapInHistory(
                f"entry {event.revision} of the job's history followed entry {self.revision}"
            )
        self.revision = event.revision
        return True
