"""What jobs are called."""

from __future__ import annotations

from collections.abc import Iterable

from remy_farm.v1 import job_pb2

LONGEST_NAME = 200
_RANDOM_BYTES = 5
_MOST_SHOWN = 5


class NoSuchJob(Exception):
    """No job has this id or name. One sentence for people."""


class AmbiguousName(Exception):
    """Several jobs have this name. One sentence for people."""


def new_job_id(unix_seconds: int, random: bytes) -> str:
    """An id that sorts by time; `random` are at least 5 random bytes."""
    return f"{unix_seconds:08x}{random[:_RANDOM_BYTES].hex()}"


def problem_with_name(name: str) -> str | None:
    """What is wrong with a job's name; None if nothing is."""
    if not name:
        return "is empty"
    if len(name) > LONGEST_NAME:
        return f"has {len(name)} characters, but must have at most {LONGEST_NAME}"
    if not name.isprintable() or name != name.strip():
        return f"is {name!r}, but must be printable text without spaces around it"
    return None


def find_job(jobs: Iterable[job_pb2.Job], name: str) -> str:
    """The id of the job of this id, or else of the only one of this name.

    Raises NoSuchJob or AmbiguousName.
    """
    named = []
    for job in jobs:
        if job.id == name:
            return job.id
        if job.name == name:
            named.append(job.id)
    if not named:
        raise NoSuchJob(f"there is no job {_shown(name)}")
    if len(named) > 1:
        newest = sorted(named, reverse=True)[:_MOST_SHOWN]
        more = ", ..." if len(named) > len(newest) else ""
        raise AmbiguousName(
            f"{len(named)} jobs are named {_shown(name)}; use an id: {', '.join(newest)}{more}"
        )
    return named[0]


def _shown(name: str) -> str:
    return repr(name if len(name) <= LONGEST_NAME else f"{name[:LONGEST_NAME]}...")
