"""Draws the pictures in docs/images: `python -m tests.observability.draw_dashboards [SECONDS]`.

A small farm designs three RemyCCs side by side for so long, and a Prometheus watches it.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.programs import ROOT
from dashboards.pictures import draw_all
from dashboards.prometheus import Choice
from remy_farm.v1 import design_service_pb2 as messages
from tests.observability.local_prometheus import SCRAPE_SECONDS
from tests.observability.watched_farm import WatchedFarm, watched_farm

_SECONDS = 240.0
# Long enough that all are at work to the end.
_SEARCH = "  mode: joint\n  joint: {steps: 800}\n"
_SPEC = (ROOT / "examples" / "demo.yaml").read_text("utf-8").replace("  mode: joint\n", _SEARCH)
# Three wishes for the same networks: the less delay counts, the more throughput there is.
_DELTAS = ("0.5", "1", "2")


def look_on(farm: WatchedFarm, end: float) -> None:
    """Asks for the jobs once a second until a Unix time, so that there are calls to see."""
    while time.time() < end:
        farm.client.list(messages.ListJobsRequest())
        time.sleep(1)


def main() -> None:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else _SECONDS
    with TemporaryDirectory() as folder, watched_farm(Path(folder)) as farm:
        began = time.time()
        jobs = {}
        for delta in _DELTAS:
            request = messages.SubmitJobRequest(
                spec_text=_SPEC.replace("delta: 1\n", f"delta: {delta}\n"), name=f"delta-{delta}"
            )
            job = farm.client.submit(request)
            jobs[job.id] = job.name
        # Halfway a worker is lost.
        look_on(farm, began + seconds / 2)
        farm.workers[-1].kill()
        look_on(farm, began + seconds)
        choice = Choice(jobs, began, time.time(), SCRAPE_SECONDS)
        for path in draw_all(farm.prometheus, choice, ROOT / "docs" / "images"):
            print(f"{path.relative_to(ROOT)}: {path.stat().st_size // 1024} KiB")


if __name__ == "__main__":
    main()
