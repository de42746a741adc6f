import os
from pathlib import Path

import pytest

from remy_simulator.cpus import allowed_cpus

AFFINITY = len(os.sched_getaffinity(0))


def files(folder: Path, contents: dict[str, str]) -> Path:
    for name, content in contents.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(content)
    return folder


@pytest.mark.parametrize(
    ("contents", "expected"),
    [
        ({}, AFFINITY),
        ({"cpu.max": "max 100000\n"}, AFFINITY),
        ({"cpu.max": "100000 100000\n"}, 1),
        ({"cpu.max": "20000 100000\n"}, 1),
        ({"cpu.max": f"{AFFINITY}00000 100000\n"}, AFFINITY),
        ({"cpu.max": "99900000 100000\n"}, AFFINITY),
        ({"cpu.max": "what is this"}, AFFINITY),
        ({"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, AFFINITY),
        ({"cpu/cpu.cfs_quota_us": "50000\n", "cpu/cpu.cfs_period_us": "100000\n"}, 1),
    ],
)
def test_affinity_and_quota_both_bound_the_threads(
    contents: dict[str, str], expected: int, tmp_path: Path
) -> None:
    assert allowed_cpus(files(tmp_path, contents)) == expected
