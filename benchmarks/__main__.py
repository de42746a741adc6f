"""Runs benchmarks and prints their results, each with its method."""

from __future__ import annotations

import argparse
import json
import sys

from benchmarks import (
    codecs,
    coordinator,
    designer_step,
    digests,
    fidelity,
    instructions,
    joint_scale,
    launcher,
    memory,
    ns2_points,
    ns2_points_on_tcp,
    ns3,
    pages,
    published,
    ray_overhead,
    scale,
    stores,
    studies_on_farm,
    telemetry,
    threads,
    worker_overhead,
)
from benchmarks.benchmark import run

BENCHMARKS = {
    module.BENCHMARK.name: module.BENCHMARK
    for module in (
        fidelity,
        published,
        ns2_points,
        ns2_points_on_tcp,
        instructions,
        ns3,
        codecs,
        threads,
        memory,
        digests,
        stores,
        coordinator,
        designer_step,
        telemetry,
        worker_overhead,
        ray_overhead,
        scale,
        joint_scale,
        studies_on_farm,
        launcher,
        pages,
    )
}


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Measures costs and exactness of remy-farm (docs/results/benchmarks.md).",
    )
    parser.add_argument(
        "--only",
        action="append",
        choices=BENCHMARKS,
        metavar="NAME",
        help=f"run only this benchmark (may be repeated): {', '.join(BENCHMARKS)}",
    )
    parser.add_argument(
        "--json", action="store_true", help="print one JSON object and nothing else"
    )
    arguments = parser.parse_args()

    results = {}
    for name in arguments.only or BENCHMARKS:
        result = run(BENCHMARKS[name])
        results[name] = result.to_json()
        if not arguments.json:
            print(result.to_text(), flush=True)
    if arguments.json:
        print(json.dumps(results, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
