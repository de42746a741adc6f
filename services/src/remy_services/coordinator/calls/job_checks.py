"""What of a job its submitter decides, besides the specification."""

from __future__ import annotations

import math

from remy_farm.v1 import job_pb2
from remy_services.coordinator.answering.refusal import bad_field
from remy_services.jobs.naming import problem_with_name

_LONGEST_CAMPAIGN = 200
_LARGEST_WEIGHT = 1e6


def checked_job(job: job_pb2.Job) -> job_pb2.Job:
    """The job itself. Raises CallRefused if its name, weight or campaign cannot be."""
    problem = problem_with_name(job.name)
    if problem is not None:
        raise bad_field("name", problem)
    if not (0 < job.weight <= _LARGEST_WEIGHT) or not math.isfinite(job.weight):
        raise bad_field("weight", f"is {job.weight:g}, but must be above 0 and at most 1e6")
    if job.campaign and (len(job.campaign) > _LONGEST_CAMPAIGN or not job.campaign.isprintable()):
        raise bad_field(
            "campaign", f"must be printable text of at most {_LONGEST_CAMPAIGN} characters"
        )
    return job
