"""CI runs the end-to-end tests if a cluster is available, skips them if not, and cleans up."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from benchmarks.programs import ROOT

_TOOL = """#!/bin/sh
echo "$1" >>"$(dirname "$0")/calls"
if [ "$1" = "$FAILING" ]; then echo "$1 fails"; exit 1; fi
[ "$1" != status ] || [ -n "$IS_UP" ]
"""
_IMAGES_TOOL = """#!/bin/sh
echo image >>"$(dirname "$0")/calls"
[ "$FAILING" != late-image ] || exit 124
if [ -n "$SAYING" ]; then echo "$SAYING" >&2; exit 1; fi
[ "$FAILING" != image ]
"""


class Tool:
    """A fake of the program that starts clusters, which records its calls."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        for name, text in (("cluster", _TOOL), ("build-image", _IMAGES_TOOL)):
            (folder / name).write_text(text)
            (folder / name).chmod(0o755)

    def run(self, **environment: str) -> tuple[int, str, list[str]]:
        """Runs the script; returns its exit code, its output and its calls of the tool."""
        tool = {"REMY_FARM_CLUSTER_TOOL": str(self._folder / "cluster")}
        inherited = {key: value for key, value in os.environ.items() if key != "KUBECONFIG"}
        done = subprocess.run(
            [ROOT / "scripts" / "end_to_end_in_ci"],
            env=inherited | tool | environment,
            capture_output=True,
            text=True,
            check=False,
        )
        calls = self._folder / "calls"
        return done.returncode, done.stdout, calls.read_text().split() if calls.exists() else []


@pytest.fixture
def tool(tmp_path: Path) -> Tool:
    return Tool(tmp_path)


def test_cluster_is_started_and_removed(tool: Tool) -> None:
    status, _, calls = tool.run()
    assert status == 0
    assert calls == ["build", "status", "down", "up", *["image"] * 3, "exec", "down"]


def test_running_cluster_is_used_and_kept(tool: Tool) -> None:
    status, _, calls = tool.run(IS_UP="yes")
    assert status == 0
    assert calls == ["build", "status", *["image"] * 3, "exec"]


@pytest.mark.parametrize("failing", ["build", "up"])
def test_unavailable_cluster_skips_the_tests(tool: Tool, failing: str) -> None:
    status, output, calls = tool.run(FAILING=failing)
    assert status == 0
    assert "End-to-end tests are skipped, because this machine cannot" in output
    assert "exec" not in calls
    assert failing == "build" or calls[-1] == "down"


def test_broken_image_is_a_failure(tool: Tool) -> None:
    status, output, calls = tool.run(FAILING="image")
    assert status != 0
    assert "End-to-end tests are skipped" not in output
    assert "exec" not in calls
    assert calls[-1] == "down"


def test_failing_tests_are_a_failure(tool: Tool) -> None:
    status, _, calls = tool.run(FAILING="exec")
    assert status != 0
    assert calls[-1] == "down"


def test_missing_tool_skips_the_tests_and_is_named(tool: Tool, tmp_path: Path) -> None:
    status, output, _ = tool.run(REMY_FARM_CLUSTER_TOOL=str(tmp_path / "none"))
    assert status == 0
    assert str(tmp_path / "none") in output


def test_slow_image_build_skips_the_tests(tool: Tool) -> None:
    """The fake ends with 124, the exit code of `timeout`."""
    status, output, calls = tool.run(FAILING="late-image")
    assert status == 0
    assert "End-to-end tests are skipped, because this machine takes more than 25 minutes" in output
    assert "exec" not in calls
    assert calls[-1] == "down"


@pytest.mark.parametrize(
    "message",
    [
        "write /usr/lib/libc.so: no space left on device",
        "ERROR: Could not install packages: [Errno 28] No space left on device",
    ],
    ids=["builder", "pip"],
)
def test_full_disk_skips_the_tests(tool: Tool, message: str) -> None:
    status, output, calls = tool.run(SAYING=message)
    assert status == 0
    assert (
        "End-to-end tests are skipped, because this machine's disk is too small for the images"
        in output
    )
    assert "exec" not in calls
    assert calls[-1] == "down"
