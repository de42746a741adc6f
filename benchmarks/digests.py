"""Checks that results depend neither on the number of threads nor on the CPU's features."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path

from benchmarks.benchmark import Benchmark, Row
from benchmarks.cpu_features import environment_with_features_off, system_functions_digest
from benchmarks.programs import REMY_FARM, ROOT, run_json
from benchmarks.tables import write_eight_rules

_SPECIMENS = 16


def measure() -> list[Row]:
    """Returns one row per run; the control is last."""
    features_off = environment_with_features_off()
    with tempfile.TemporaryDirectory() as folder:
        remycc = write_eight_rules(Path(folder))
        runs = {
            "1 thread": evaluation_digest(remycc, threads=1),
            "2 threads": evaluation_digest(remycc, threads=2),
            "7 threads": evaluation_digest(remycc, threads=7),
            "CPU features off": evaluation_digest(remycc, threads=2, environment=features_off),
        }
    expected = runs["1 thread"]
    rows: list[Row] = [
        {"run": run, "digest": digest, "same": digest == expected} for run, digest in runs.items()
    ]
    control = system_functions_digest()
    control_with_features_off = system_functions_digest(features_off)
    return [
        *rows,
        {"run": "C library's log, exp, pow", "digest": control, "same": None},
        {
            "run": "... with CPU features off",
            "digest": control_with_features_off,
            "same": control_with_features_off == control,
        },
    ]


def evaluation_digest(
    remycc: Path, *, threads: int, environment: Mapping[str, str] | None = None
) -> str:
    """Returns the digest of `remy-farm evaluate` on 16 specimens of the general-purpose design."""
    scores = run_json(
        REMY_FARM,
        "evaluate",
        f"--remycc={remycc}",
        f"--spec={ROOT / 'examples' / 'general-purpose-delta1.yaml'}",
        f"--specimens={_SPECIMENS}",
        "--seed=1",
        f"--threads={threads}",
        environment=environment,
    )
    return str(scores["digest"])


BENCHMARK = Benchmark(
    name="digests",
    title="Digests of one evaluation",
    method=(
        "remy-farm evaluate on 16 specimens of examples/general-purpose-delta1.yaml with 1, 2 and "
        "7 threads, and with AVX, AVX2, AVX-512, FMA and FMA4 hidden from the C library "
        "(GLIBC_TUNABLES=glibc.cpu.hwcaps=-AVX,-AVX2,...). The control is the C library's own "
        "log, exp and pow: where they differ, hiding took effect."
    ),
    measure=measure,
)
