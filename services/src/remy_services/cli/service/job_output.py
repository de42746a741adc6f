"""One job on standard output."""

from __future__ import annotations

import click

from remy_farm.v1 import job_pb2
from remy_services.cli.output import print_json, print_pairs
from remy_services.cli.service import job_words
from remy_services.cli.service.message_tree import job_tree
from remy_services.report.wording import count, duration


def print_job(job: job_pb2.Job, *, as_json: bool) -> None:
    """All that is known of it."""
    if as_json:
        print_json(job_tree(job))
    else:
        print_pairs(_pairs(job))


def print_change(job: job_pb2.Job, *, as_json: bool) -> None:
    """What became of a request to change it."""
    if as_json:
        print_json(job_tree(job))
    else:
        click.echo(f"{job_words.called(job)} is {job_words.state(job)}")


def _pairs(job: job_pb2.Job) -> list[tuple[str, str]]:
    pairs = [
        ("job", job_words.called(job)),
        ("state", job_words.state(job)),
        ("owner", job.owner),
        ("priority", f"{job.priority}, weight {job.weight:g}"),
    ]
    if job.campaign:
        pairs.append(("campaign", job.campaign))
    if job.HasField("fork"):
        pairs.append(("forked from", f"{job.fork.job_id}, epoch {job.fork.epoch}"))
    if job_words.has_begun(job):
        pairs += _figures(job)
    for name, field in (
        ("submitted", "create_time"),
        ("started", "start_time"),
        ("ended", "end_time"),
    ):
        if job.HasField(field):
            pairs.append((name, job_words.moment(getattr(job, field))))
    return pairs


def _figures(job: job_pb2.Job) -> list[tuple[str, str]]:
    now = job.progress
    place = job_words.place(job)
    if now.HasField("share_done"):
        place += f", {now.share_done:.0%} done"
    work = f"{count(now.simulated_packets)} packets in {count(now.evaluations)} evaluations"
    return [
        ("progress", place),
        ("score", job_words.score(job)),
        ("work", f"{work}, {duration(now.wall_seconds)}"),
        ("", job_words.measures(job)),
    ]
