"""Runs a traced step of a coordinator, or its task on a worker, in a process.

`python -m tests.observability.traced_step coordinator` prints the trace context that it would send
with a task; `... worker PARENT` runs the task with that context.
"""

from __future__ import annotations

import sys

from remy_proto.v1 import evaluation_pb2, job_pb2, progress_pb2
from remy_rpc import tracing
from remy_services.telemetry.telemetry import Telemetry


def coordinator() -> None:
    job = job_pb2.Job(id="j1", progress=progress_pb2.JobProgress(step=6))
    request = evaluation_pb2.EvaluationRequest(candidates=[evaluation_pb2.Candidate()] * 3)
    with tracing.traces("remy-farm-coordinator"), Telemetry().observer().step(job, request):
        print(tracing.trace_parent(), flush=True)


def worker(parent: str) -> None:
    with (
        tracing.traces("remy-farm-worker", instance_id="w1"),
        tracing.child_span(parent, "task", job_id="j1", lease_id=9),
    ):
        pass


if __name__ == "__main__":
    if sys.argv[1] == "coordinator":
        coordinator()
    else:
        worker(sys.argv[2])
