"""Following the jobs of a campaign to their ends."""

from __future__ import annotations

import time

import grpc

from remy_farm.v1 import design_service_pb2 as messages
from remy_farm.v1 import job_pb2
from remy_services.cli.service.campaign_views import CampaignView
from remy_services.client import FINAL_STATES, DesignClient, Refused, Unreachable

_SECONDS_BETWEEN_LOOKS = 2.0


def watch_campaign(client: DesignClient, campaign: str, view: CampaignView) -> list[job_pb2.Job]:
    """The jobs as they ended, in the order of their submission. Raises ServiceError.

    A coordinator that goes away is waited for without end, if it has been there once.
    """
    is_first = True
    while True:
        try:
            jobs = _jobs(client, campaign)
        except Unreachable as error:
            if is_first:
                raise
            view.lost(str(error))
            continue
        is_first = False
        if not jobs:
            raise Refused(f"there is no campaign {campaign!r}", grpc.StatusCode.NOT_FOUND)
        view.jobs(jobs)
        if all(job.state in FINAL_STATES for job in jobs):
            return jobs
        time.sleep(_SECONDS_BETWEEN_LOOKS)


def _jobs(client: DesignClient, campaign: str) -> list[job_pb2.Job]:
    """Oldest first."""
    return list(client.list_all(messages.ListJobsRequest(campaign=campaign)))[::-1]
