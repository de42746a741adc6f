"""Whether results depend on the number of threads, or on what the CPU can do."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path

from benchmarks.cpu_features import environment_with_features_off, system_functions_digest
from benchmarks.figure import Figure, Row
from benchmarks.programs import REMY_FARM, ROOT, run_json
from benchmarks.tables import write_eight_rules

_SPECIMENS = 16


def measure() -> list[Row]:
    """One row a run; the control last."""
    less = environment_with_features_off()
    with tempfile.TemporaryDirectory() as folder:
        remycc = write_eight_rules(Path(folder))
        runs = {
            "1 thread": evaluation_digest(remycc, threads=1),
            "2 threads": evaluation_digest(remycc, threads=2),
            "7 threads": evaluation_digest(remycc, threads=7),
            "CPU features off": evaluation_digest(remycc, threads=2, environment=less),
        }
    expected = runs["1 thread"]
    rows: list[Row] = [
        {"run": run, "digest": digest, "same": digest == expected} for run, digest in runs.items()
    ]
    control, control_with_less = system_functions_digest(), system_functions_digest(less)
    return [
        *rows,
        {"run": "C library's log, exp, pow", "digest": control, "same": None},
        {
            "run": "... with CPU features off",
            "digest": control_with_less,
            "same": control_with_less == control,
        },
    ]


def evaluation_digest(
    remycc: Path, *, threads: int, environment: Mapping[str, str] | None = None
) -> str:
    """What `remy-farm evaluate` prints for 16 specimens of the general-purpose design."""
    tree = run_json(
        REMY_FARM,
        "evaluate",
        f"--remycc={remycc}",
        f"--spec={ROOT / 'examples' / 'general-purpose-delta1.yaml'}",
        f"--specimens={_SPECIMENS}",
        "--seed=1",
        f"--threads={threads}",
        environment=environment,
    )
    return str(tree["digest"])


FIGURE = Figure(
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
