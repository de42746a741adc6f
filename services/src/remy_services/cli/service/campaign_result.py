"""What a campaign on a coordinator came to: its RemyCCs side by side, as an embedded campaign's."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import click

from remy_farm.v1 import design_service_pb2 as messages
from remy_farm.v1 import job_pb2
from remy_services.campaign import CampaignRecord, MemberRecord, compare_member
from remy_services.cli.campaign_table import print_members
from remy_services.cli.design_result import reason_name
from remy_services.cli.service import job_words
from remy_services.cli.service.message_tree import job_tree
from remy_services.client import DesignClient
from remy_services.evaluation import LocalEvaluator
from remy_services.remycc.json_form import from_json
from remy_services.remycc.remycc import RemyCC
from remy_services.spec import content_digest
from remy_services.spec.text import Tree, read_yaml


@dataclass(frozen=True)
class CampaignResult:
    """The jobs as they ended, and the comparison of those that have a RemyCC to show."""

    campaign: str
    jobs: Sequence[job_pb2.Job]
    members: Sequence[MemberRecord]

    def tree(self) -> dict[str, Any]:
        """As --json prints it."""
        records = CampaignRecord({member.name: member for member in self.members})
        return {
            "campaign": self.campaign,
            "jobs": [job_tree(job) for job in self.jobs],
            **records.tree(),
        }


def campaign_result(
    client: DesignClient, campaign: str, jobs: Sequence[job_pb2.Job], *, threads: int
) -> CampaignResult:
    """Fetches the RemyCCs and tries each on its own fresh specimens, here.

    Raises ServiceError, and RemyCCError for a table that is none.
    """
    ended = [
        job for job in jobs if job.state != job_pb2.JOB_STATE_FAILED and job_words.has_begun(job)
    ]
    settings = _settings(client, ended)
    members = []
    with closing(LocalEvaluator(threads)) as evaluator:
        for job in ended:
            spec = client.get(job.id).spec
            file = client.remycc(job.id, epoch=None, file_format=messages.REMY_CC_FORMAT_JSON)
            table = RemyCC.from_message(from_json(file.content)).table
            comparison = compare_member(spec, table, evaluate=evaluator.evaluate)
            members.append(
                MemberRecord(
                    name=job.name,
                    settings=settings.get(job.id, {}),
                    spec_digest=content_digest(spec),
                    reason=_reason(job),
                    steps=job.progress.step,
                    epochs=job.progress.epoch,
                    rules=table.rule_count,
                    cpu_seconds=job.progress.cpu_seconds,
                    wall_seconds=job.progress.wall_seconds,
                    comparison=comparison,
                )
            )
    return CampaignResult(campaign, jobs, members)


def print_campaign(result: CampaignResult) -> None:
    """For people."""
    if result.members:
        print_members(result.members)
    for job in result.jobs:
        if job.state != job_pb2.JOB_STATE_SUCCEEDED:
            click.echo(f"{job_words.called(job)} is {job_words.state(job)}")
    click.echo(f"\nto keep a RemyCC: remy-farm fetch {result.jobs[0].id} -o FILE.json")


def _reason(job: job_pb2.Job) -> str:
    return reason_name(job.stop_reason) if job.stop_reason else job_words.state_name(job.state)


def _settings(client: DesignClient, jobs: Sequence[job_pb2.Job]) -> dict[str, dict[str, Tree]]:
    """By job: the settings in which the jobs differ."""
    if len(jobs) < 2:
        return {}
    differences = client.compare([job.id for job in jobs]).differences
    return {
        job.id: {each.path: read_yaml(each.values[number], each.path) for each in differences}
        for number, job in enumerate(jobs)
    }
