"""What all stores say, word for word, when they refuse."""

from __future__ import annotations

from remy_services.stores.contract import Conflict, Fenced, JobExists, JobMissing


def missing(job_id: str) -> JobMissing:
    """For a job that is not there."""
    return JobMissing(f"there is no job {job_id} in the store")


def exists(job_id: str) -> JobExists:
    """For an id that is taken."""
    return JobExists(f"there is a job {job_id} in the store already; another id is needed")


def fenced(job_id: str, token: int, newest: int) -> Fenced:
    """For a token that is not the newest."""
    return Fenced(
        f"another coordinator has taken job {job_id}: its newest token is {newest}, not {token}"
    )


def conflict(job_id: str, expected: int, revision: int) -> Conflict:
    """For a commit that expected another revision."""
    return Conflict(f"job {job_id} is at revision {revision}, not {expected}", revision)
