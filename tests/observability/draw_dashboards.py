"""Draws the dashboards in docs/images: `python -m tests.observability.draw_dashboards [SECONDS]`.

A farm with Prometheus designs three RemyCCs in parallel for SECONDS, by default an hour. Its
workers behave like those on spot nodes: from time to time one is killed, terminated or stopped, and
another one starts. The coordinator is killed once.
"""

from __future__ import annotations

import itertools
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.programs import ROOT
from dashboards.pictures import draw_all
from dashboards.prometheus import Choice
from remy_proto.v1 import design_service_pb2 as messages
from tests.observability.local_prometheus import SCRAPE_SECONDS
from tests.observability.watched_farm import WatchedFarm, watched_farm

_SECONDS = 3600.0
_WORKERS = 3
#: The maximum number of points of a curve.
_POINTS = 300
#: The number of faults during the whole run.
_FAULTS = 16
#: Longer than a lease lasts without heartbeats.
_SILENCE_SECONDS = 40.0
#: Examples with the same objective, so that their scores are comparable. On two processors their
#: steps take some forty, fifty and sixty minutes, so that the first design ends before the others.
_STEPS = {
    "general-purpose-delta1": 8000,
    "general-purpose-noise": 12000,
    "learnability-10x": 24000,
}
#: Enough for several workers (docs/explanation/scaling.md).
_SPECIMENS_PER_STEP = 64


def specification(example: str) -> str:
    """Returns the specification of an example with more specimens per step."""
    text = (ROOT / "examples" / f"{example}.yaml").read_text("utf-8")
    joint = f"  joint: {{steps: {_STEPS[example]}, tuned_for_specimens: 16}}\n"
    search = f"  mode: joint\n{joint}  specimens: {_SPECIMENS_PER_STEP}\n"
    return text.replace("  mode: joint\n", search)


def list_jobs_repeatedly(farm: WatchedFarm, seconds: float) -> None:
    """Lists the jobs once a second, so that the dashboards show calls."""
    end = time.time() + seconds
    while time.time() < end:
        farm.client.list(messages.ListJobsRequest())
        time.sleep(1)


def kill_worker(farm: WatchedFarm) -> None:
    """Kills a worker like a lost node, and starts another one later."""
    farm.workers[0].kill()
    list_jobs_repeatedly(farm, 10)
    farm.replace_worker(0)


def drain_worker(farm: WatchedFarm) -> None:
    """Starts another worker and terminates one, as when a node is drained."""
    farm.workers[1].send_signal(signal.SIGTERM)
    farm.replace_worker(1)


def stop_worker(farm: WatchedFarm) -> None:
    """Stops a worker for a while, as if its network were down."""
    farm.workers[2].send_signal(signal.SIGSTOP)
    list_jobs_repeatedly(farm, _SILENCE_SECONDS)
    farm.workers[2].send_signal(signal.SIGCONT)


def main() -> None:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else _SECONDS
    faults: list[Callable[[WatchedFarm], None]] = [kill_worker, drain_worker, stop_worker]
    with TemporaryDirectory() as folder, watched_farm(Path(folder), workers=_WORKERS) as farm:
        began, jobs = time.time(), {}
        for example in _STEPS:
            request = messages.SubmitJobRequest(spec_text=specification(example), name=example)
            job = farm.client.submit(request)
            jobs[job.id] = job.name
        for number, fault in enumerate(itertools.islice(itertools.cycle(faults), _FAULTS), start=1):
            list_jobs_repeatedly(farm, began + number * seconds / (_FAULTS + 1) - time.time())
            fault(farm)
            if number == _FAULTS // 2:
                farm.coordinator.kill()
                farm.coordinator.start()
        list_jobs_repeatedly(farm, began + seconds - time.time())
        step_seconds = max(SCRAPE_SECONDS, seconds / _POINTS)
        choice = Choice(jobs, began, time.time(), step_seconds)
        for path in draw_all(farm.prometheus, choice, ROOT / "docs" / "images"):
            print(f"{path.relative_to(ROOT)}: {path.stat().st_size // 1024} KiB")


if __name__ == "__main__":
    main()
