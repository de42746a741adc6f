"""Lists of jobs: which, in what order, and page by page."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from remy_farm.v1 import job_pb2
from remy_farm.v1.job_pb2 import JobState

_TOKEN = re.compile(r"(?P<time>-?[0-9]{1,20})/(?P<job>[^/]{1,200})")


class BadPageToken(Exception):
    """Not a token that a page came with."""


@dataclass(frozen=True)
class Filter:
    """Which jobs; what is empty lets all pass."""

    states: frozenset[JobState] = field(default_factory=frozenset)
    owner: str = ""
    name_contains: str = ""
    campaign: str = ""

    def passes(self, job: job_pb2.Job) -> bool:
        return (
            (not self.states or job.state in self.states)
            and (not self.owner or job.owner == self.owner)
            and self.name_contains in job.name
            and (not self.campaign or job.campaign == self.campaign)
        )


@dataclass(frozen=True)
class Page:
    """Some of the jobs, and the token of those after them; empty if there are none."""

    jobs: list[job_pb2.Job]
    next_token: str


def page_of(jobs: Iterable[job_pb2.Job], wanted: Filter, *, size: int, token: str) -> Page:
    """At most `size` >= 1 of the jobs that pass, newest first, from where the token says.

    Jobs that come and go between two pages neither shift nor repeat others. Raises BadPageToken.
    """
    passing = sorted((job for job in jobs if wanted.passes(job)), key=_place, reverse=True)
    if token:
        last = _place_of(token)
        passing = [job for job in passing if _place(job) < last]
    page = passing[:size]
    return Page(page, _token_of(page[-1]) if len(passing) > size else "")


def _place(job: job_pb2.Job) -> tuple[int, str]:
    return (job.create_time.ToNanoseconds(), job.id)


def _token_of(job: job_pb2.Job) -> str:
    nanoseconds, job_id = _place(job)
    return base64.urlsafe_b64encode(f"{nanoseconds}/{job_id}".encode()).decode()


def _place_of(token: str) -> tuple[int, str]:
    try:
        text = base64.b64decode(token.encode(), altchars=b"-_", validate=True).decode()
    except (binascii.Error, UnicodeError) as error:
        raise BadPageToken from error
    match = _TOKEN.fullmatch(text)
    if match is None:
        raise BadPageToken
    return (int(match["time"]), match["job"])
