"""What it costs a coordinator to have Kubernetes run its workers: start and memory."""

from __future__ import annotations

import os
import re
import statistics
import time
from contextlib import closing
from pathlib import Path

from benchmarks.coordinator import cpu_seconds
from benchmarks.disk import folder_on_disk
from benchmarks.figure import Figure, Row, Unavailable
from services.tests.cli.service.real_coordinator import Coordinator
from services.tests.kubernetes.control_plane import PROGRAMS, ControlPlane, programs

_STARTS = 5
#: After the start, for what is imported and listed beside it.
_SETTLING_SECONDS = 5.0
_WORKERS = """
instance: farm
template: {spec: {template: {spec: {containers: [{name: worker, image: "localhost/worker:1"}]}}}}
"""


def measure() -> list[Row]:
    """A row without workers on Kubernetes, and one with."""
    missing = sorted(set(PROGRAMS) - set(programs()))
    if missing:
        raise Unavailable(f"{', '.join(missing)}: neither in KUBEBUILDER_ASSETS nor in PATH")
    with folder_on_disk() as folder:
        (folder / "workers.yaml").write_text(_WORKERS)
        with ControlPlane(folder) as cluster:
            os.environ["KUBECONFIG"] = str(cluster.kubeconfig)
            found: dict[str, list[tuple[float, float, float]]] = {"none": [], "on Kubernetes": []}
            for number in range(_STARTS):
                for workers, starts in found.items():
                    flags = ["--kubernetes-workers", str(folder / "workers.yaml")]
                    coordinator = Coordinator(
                        folder / f"{number}-{workers}",
                        *("--evaluator", "workers"),
                        *(flags if workers != "none" else []),
                    )
                    with closing(coordinator):
                        starts.append(_start(coordinator))
    return [
        {
            "workers": workers,
            "s until it serves": statistics.median(each[0] for each in starts),
            "CPU s": statistics.median(each[1] for each in starts),
            "MiB": statistics.median(each[2] for each in starts),
        }
        for workers, starts in found.items()
    ]


def _start(coordinator: Coordinator) -> tuple[float, float, float]:
    began = time.perf_counter()
    coordinator.start()
    seconds = time.perf_counter() - began
    time.sleep(_SETTLING_SECONDS)
    status = Path(f"/proc/{coordinator.pid}/status").read_text()
    found = re.search(r"^VmRSS:\s+(\d+) kB$", status, re.MULTILINE)
    assert found is not None
    return seconds, cpu_seconds(coordinator.pid), int(found.group(1)) / 1024


FIGURE = Figure(
    name="launcher",
    title="A coordinator that has Kubernetes run its workers",
    method=(
        f"Medians of {_STARTS} starts of an idle coordinator, in turn without and with workers on "
        "Kubernetes, from the start of the process until it serves; CPU time and resident "
        f"memory {_SETTLING_SECONDS:g} s later. The API server, etcd and the controllers are real."
    ),
    measure=measure,
)
