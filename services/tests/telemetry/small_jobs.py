"""Jobs for tests of metrics."""

from __future__ import annotations

from google.protobuf.timestamp_pb2 import Timestamp

from remy_proto.v1 import job_pb2, progress_pb2, spec_pb2


def running_job(job_id: str = "j1", name: str = "wide") -> job_pb2.Job:
    return job_pb2.Job(
        id=job_id,
        name=name,
        owner="ann",
        state=job_pb2.JOB_STATE_RUNNING,
        priority=3,
        spec=spec_pb2.DesignSpec(search=spec_pb2.Search(mode=spec_pb2.SEARCH_MODE_JOINT)),
        progress=progress_pb2.JobProgress(
            epoch=4,
            rules=8,
            step=40,
            candidates=16,
            candidates_done=6,
            score=progress_pb2.Estimate(mean=-0.5, standard_error=0.01, specimens=64),
            validated_score=progress_pb2.Estimate(mean=-0.625, standard_error=0.002),
            evaluations=2048,
            simulated_packets=10**9,
            cpu_seconds=36.0,
            wall_seconds=20.0,
            recoveries=1,
            workers=2,
            epochs_without_gain=1,
        ),
    )


def finished_job(number: int) -> job_pb2.Job:
    """Returns a finished job. Higher numbers ended later."""
    return job_pb2.Job(
        id=f"finished-{number}",
        name="finished",
        state=job_pb2.JOB_STATE_SUCCEEDED,
        end_time=Timestamp(seconds=1000 + number),
    )
