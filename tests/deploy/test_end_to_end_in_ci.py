"""When CI runs the end-to-end tests, when it does without them, and that nothing is left behind."""

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
    """Stands for a program that starts clusters: writes down what it is asked for."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        for name, text in (("cluster", _TOOL), ("build-image", _IMAGES_TOOL)):
            (folder / name).write_text(text)
            (folder / name).chmod(0o755)

    def run(self, **environment: str) -> tuple[int, str, list[str]]:
        """How the script ends that CI runs, what it says, and what it asks of the tool."""
        own = {"REMY_FARM_CLUSTER_TOOL": str(self._folder / "cluster")}
        given = {key: value for key, value in os.environ.items() if key != "KUBECONFIG"}
        done = subprocess.run(
            [ROOT / "scripts" / "end_to_end_in_ci"],
            env=given | own | environment,
            capture_output=True,
            text=True,
            check=False,
        )
        calls = self._folder / "calls"
        return done.returncode, done.stdout, calls.read_text().split() if calls.exists() else []


@pytest.fixture
def tool(tmp_path: Path) -> Tool:
    return Tool(tmp_path)


def test_a_cluster_is_started_and_removed(tool: Tool) -> None:
    status, _, calls = tool.run()
    assert status == 0
    assert calls == ["build", "status", "down", "up", *["image"] * 3, "exec", "down"]


def test_one_that_is_there_is_used_and_stays(tool: Tool) -> None:
    status, _, calls = tool.run(IS_UP="yes")
    assert status == 0
    assert calls == ["build", "status", *["image"] * 3, "exec"]


@pytest.mark.parametrize("failing", ["build", "up"])
def test_a_cluster_that_cannot_be_had_is_said_and_no_failure(tool: Tool, failing: str) -> None:
    status, said, calls = tool.run(FAILING=failing)
    assert status == 0
    assert "End-to-end tests are skipped, because this machine cannot" in said
    assert "exec" not in calls
    assert failing == "build" or calls[-1] == "down"


def test_an_image_that_does_not_build_is_a_failure(tool: Tool) -> None:
    status, said, calls = tool.run(FAILING="image")
    assert status != 0
    assert "End-to-end tests are skipped" not in said
    assert "exec" not in calls
    assert calls[-1] == "down"


def test_tests_that_fail_are_a_failure(tool: Tool) -> None:
    status, _, calls = tool.run(FAILING="exec")
    assert status != 0
    assert calls[-1] == "down"


def test_a_tool_that_is_not_there_is_named(tool: Tool, tmp_path: Path) -> None:
    status, said, _ = tool.run(REMY_FARM_CLUSTER_TOOL=str(tmp_path / "none"))
    assert status == 0
    assert str(tmp_path / "none") in said


def test_a_machine_too_slow_for_images_is_said_and_no_failure(tool: Tool) -> None:
    """124 is what `timeout` ends with."""
    status, said, calls = tool.run(FAILING="late-image")
    assert status == 0
    assert "End-to-end tests are skipped, because this machine takes more than 25 minutes" in said
    assert "exec" not in calls
    assert calls[-1] == "down"


@pytest.mark.parametrize(
    "words",
    [
        "write /usr/lib/libc.so: no space left on device",
        "ERROR: Could not install packages: [Errno 28] No space left on device",
    ],
    ids=["builder", "pip"],
)
def test_a_disk_too_small_for_images_is_said_and_no_failure(tool: Tool, words: str) -> None:
    status, said, calls = tool.run(SAYING=words)
    assert status == 0
    assert (
        "End-to-end tests are skipped, because this machine's disk is too small for the images"
        in said
    )
    assert "exec" not in calls
    assert calls[-1] == "down"
