"""Following one job to its end."""

from __future__ import annotations

from remy_farm.v1 import job_pb2
from remy_services.cli.service.watch_views import WatchView
from remy_services.client import ConnectionBack, ConnectionLost, DesignClient, watch_job

# What draws the score's course; more would take long to send of an old job.
_ENTRIES_OF_THE_PAST = 500


def watch_one(
    client: DesignClient, name: str, view: WatchView, *, with_past: bool = False
) -> job_pb2.Job:
    """The job as it ended. Raises ServiceError.

    What happened before is shown if `with_past`, and otherwise is known to the view alone.
    """
    job = client.get(name)
    view.job(job)
    past = 0 if with_past else job.revision
    after = 0 if with_past else max(0, job.revision - _ENTRIES_OF_THE_PAST)
    for update in watch_job(client.connection, job.id, after_revision=after):
        match update:
            case job_pb2.Job():
                job = update
                view.job(job)
            case job_pb2.JobEvent():
                view.event(update, is_past=update.revision <= past)
            case ConnectionLost():
                view.lost(update.why)
            case ConnectionBack():
                view.back()
    return job
