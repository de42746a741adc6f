"""Tests runs that are killed, get a signal, or run out of disk space."""

import itertools
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from library.tests.driver.test_design_run import SPEC, events_without_times, published
from remy_farm.driver.run import DesignRun
from tests.children import killed_with_parent

_ROOT = Path(__file__).parents[3]
_KILLS = 8


def _start(out: Path, *arguments: str) -> subprocess.Popen[str]:
    """Starts a run in its own process."""
    return subprocess.Popen(
        killed_with_parent(
            sys.executable, "-m", "library.tests.driver.one_run", str(out), *arguments
        ),
        cwd=_ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(_ROOT), *sys.path])},
        stdout=subprocess.PIPE,
        text=True,
    )


def _read(process: subprocess.Popen[str], lines: int) -> list[str]:
    """Returns the next lines that a run prints; fewer if it ends."""
    assert process.stdout is not None
    return list(itertools.islice(process.stdout, lines))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("whole")
    DesignRun(SPEC, out).run()
    return out


def test_a_run_killed_at_random_moments_resumes_to_the_same_design(
    whole: Path, tmp_path: Path
) -> None:
    moments = random.Random(1)
    starts = []
    for _ in range(_KILLS):
        process = _start(tmp_path)
        first, *_ = _read(process, 1 + moments.randrange(6))
        starts.append(int(first.split()[2]))
        process.kill()
        process.communicate()

    output, _ = _start(tmp_path).communicate()

    assert starts == sorted(starts)
    assert len(set(starts)) > 2
    assert output.endswith("finished\n")
    assert published(tmp_path) == published(whole)
    assert events_without_times(tmp_path) == events_without_times(whole)
    assert not list(tmp_path.glob(".*.tmp"))


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_a_signal_ends_a_run_with_a_checkpoint(whole: Path, tmp_path: Path, name: str) -> None:
    process = _start(tmp_path, f"signal={name}")
    output, _ = process.communicate()
    assert process.returncode == 0
    assert output.endswith("interrupted\n")

    output, _ = _start(tmp_path).communicate()

    assert not output.startswith("started after 0 steps")
    assert output.endswith("finished\n")
    assert published(tmp_path) == published(whole)
    assert events_without_times(tmp_path) == events_without_times(whole)


def test_a_run_on_a_full_disk_can_be_resumed(whole: Path, tmp_path: Path) -> None:
    output, _ = _start(tmp_path, "size=3000").communicate()
    assert "refused: " in output
    assert "cannot be written (file too large)" in output

    again, _ = _start(tmp_path).communicate()

    assert again.endswith("finished\n")
    assert published(tmp_path) == published(whole)
    assert events_without_times(tmp_path) == events_without_times(whole)
