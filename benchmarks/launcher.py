"""Measures start time and memory of a coordinator that runs its workers on Kubernetes."""

from __future__ import annotations

import os
import re
import statistics
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from benchmarks.benchmark import Benchmark, Row, Unavailable
from benchmarks.coordinator import cpu_seconds
from benchmarks.disk import folder_on_disk
from services.tests.cli.service.real_coordinator import Coordinator
from services.tests.kubernetes.control_plane import PROGRAMS, ControlPlane, programs

_STARTS = 5
#: After a start, background imports and the first listing of pods need this long to finish.
_SETTLING_SECONDS = 5.0
_WORKERS = """
instance: farm
template: {spec: {template: {spec: {containers: [{name: worker, image: "localhost/worker:1"}]}}}}
"""


def measure() -> list[Row]:
    """Returns two rows: a coordinator without Kubernetes workers, and one with them."""
    missing = sorted(set(PROGRAMS) - set(programs()))
    if missing:
        raise Unavailable(
            f"{', '.join(missing)} was found neither in KUBEBUILDER_ASSETS nor in PATH."
        )
    with folder_on_disk() as folder:
        (folder / "workers.yaml").write_text(_WORKERS)
        with ControlPlane(folder) as cluster:
            os.environ["KUBECONFIG"] = str(cluster.kubeconfig)
            starts_by_workers: dict[str, list[_Start]] = {"none": [], "on Kubernetes": []}
            for number in range(_STARTS):
                for workers, starts in starts_by_workers.items():
                    flags = ["--kubernetes-workers", str(folder / "workers.yaml")]
                    coordinator = Coordinator(
                        folder / f"{number}-{workers}",
                        *("--evaluator", "workers"),
                        *(flags if workers != "none" else []),
                    )
                    with closing(coordinator):
                        starts.append(_measure_start(coordinator))
    return [
        {
            "workers": workers,
            "s until it serves": statistics.median(start.wall_seconds for start in starts),
            "CPU s": statistics.median(start.cpu_seconds for start in starts),
            "MiB": statistics.median(start.resident_mib for start in starts),
        }
        for workers, starts in starts_by_workers.items()
    ]


@dataclass(frozen=True)
class _Start:
    """Times and memory of one start of a coordinator."""

    wall_seconds: float
    cpu_seconds: float
    resident_mib: float


def _measure_start(coordinator: Coordinator) -> _Start:
    began = time.perf_counter()
    coordinator.start()
    seconds = time.perf_counter() - began
    time.sleep(_SETTLING_SECONDS)
    status = Path(f"/proc/{coordinator.pid}/status").read_text()
    resident_kib = re.search(r"^VmRSS:\s+(\d+) kB$", status, re.MULTILINE)
    assert resident_kib is not None
    return _Start(seconds, cpu_seconds(coordinator.pid), int(resident_kib[1]) / 1024)


BENCHMARK = Benchmark(
    name="launcher",
    title="A coordinator that has Kubernetes run its workers",
    method=(
        f"Medians of {_STARTS} starts of an idle coordinator, alternately without and with workers "
        "on Kubernetes: wall time from the start of the process until it serves, and CPU time and "
        f"resident memory {_SETTLING_SECONDS:g} s later. The API server, etcd and the controllers "
        "are real."
    ),
    measure=measure,
)
