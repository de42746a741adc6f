"""Draws the pictures in docs/images: `python -m tests.observability.draw_dashboards [SECONDS]`.

A farm designs three RemyCCs side by side for so long, an hour by default, on workers as they are on
spot nodes: every now and then one is killed, told to end, or falls silent, and another comes; the
coordinator is killed once. A Prometheus watches.
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
#: Points of a curve, at most.
_POINTS = 300
#: Faults of the whole time.
_FAULTS = 16
#: Longer than a worker keeps what it has without being heard of.
_SILENCE_SECONDS = 40.0
#: Examples of one objective, so that their scores are of one scale, and steps that two processors
#: take some forty, fifty and sixty minutes for: the first ends before the others.
_STEPS = {
    "general-purpose-delta1": 8000,
    "general-purpose-noise": 12000,
    "learnability-10x": 24000,
}
#: Specimens of a step: as wide as several workers need it (docs/explanation/scaling.md).
_WIDTH = 64


def specification(example: str) -> str:
    """A design of this example, with so many steps before they are made wider."""
    text = (ROOT / "examples" / f"{example}.yaml").read_text("utf-8")
    joint = f"  joint: {{steps: {_STEPS[example]}, tuned_for_specimens: 16}}\n"
    search = f"  mode: joint\n{joint}  specimens: {_WIDTH}\n"
    return text.replace("  mode: joint\n", search)


def look_on(farm: WatchedFarm, seconds: float) -> None:
    """Asks for the jobs once a second, so that there are calls to see."""
    end = time.time() + seconds
    while time.time() < end:
        farm.client.list(messages.ListJobsRequest())
        time.sleep(1)


def kill_a_worker(farm: WatchedFarm) -> None:
    """As a node that is lost; another comes after a while."""
    farm.workers[0].kill()
    look_on(farm, 10)
    farm.replace_worker(0)


def end_a_worker(farm: WatchedFarm) -> None:
    """As a node that is drained, for which another is there already."""
    farm.workers[1].send_signal(signal.SIGTERM)
    farm.replace_worker(1)


def silence_a_worker(farm: WatchedFarm) -> None:
    """As a network that is cut for a while."""
    farm.workers[2].send_signal(signal.SIGSTOP)
    look_on(farm, _SILENCE_SECONDS)
    farm.workers[2].send_signal(signal.SIGCONT)


def main() -> None:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else _SECONDS
    faults: list[Callable[[WatchedFarm], None]] = [kill_a_worker, end_a_worker, silence_a_worker]
    with TemporaryDirectory() as folder, watched_farm(Path(folder), workers=_WORKERS) as farm:
        began, jobs = time.time(), {}
        for example in _STEPS:
            request = messages.SubmitJobRequest(spec_text=specification(example), name=example)
            job = farm.client.submit(request)
            jobs[job.id] = job.name
        for number, fault in enumerate(itertools.islice(itertools.cycle(faults), _FAULTS), start=1):
            look_on(farm, began + number * seconds / (_FAULTS + 1) - time.time())
            fault(farm)
            if number == _FAULTS // 2:
                farm.coordinator.kill()
                farm.coordinator.start()
        look_on(farm, began + seconds - time.time())
        step_seconds = max(SCRAPE_SECONDS, seconds / _POINTS)
        choice = Choice(jobs, began, time.time(), step_seconds)
        for path in draw_all(farm.prometheus, choice, ROOT / "docs" / "images"):
            print(f"{path.relative_to(ROOT)}: {path.stat().st_size // 1024} KiB")


if __name__ == "__main__":
    main()
