"""Tests that Ctrl-C stops a running call soon, and leaves no partial files."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import remy_farm as rf
from library.tests.library_examples import joint_spec
from tests.children import killed_with_parent

_ROOT = Path(__file__).parents[2]
#: The files of a design that can be resumed, without temporary ones.
_FILES = {
    *(".lock", "checkpoint.bin", "pareto.csv", "progress.jsonl", "provenance.json"),
    *("remycc.json", "spec.yaml"),
}
#: Simulated time that no test could wait for.
_SECONDS = 1e9
_TIMEOUT_SECONDS = 60.0
_LINK = "rate_mbps=1000, rtt_ms=50"
_TWO_LINKS = (
    "links=[{'name': 'a', 'rate_mbps': 1000, 'delay_ms': 10}, "
    "{'name': 'b', 'rate_mbps': 900, 'delay_ms': 10}]"
)
_CALLS = {
    "a protocol": f"rf.simulate(rf.Network({_LINK}, senders=['cubic=4']), seconds={_SECONDS})",
    "a table": (
        f"rf.simulate(rf.Network({_LINK}, senders=[rf.load_table('generalist')]),"
        f" seconds={_SECONDS})"
    ),
    "a recording": (
        f"rf.simulate(rf.Network({_LINK}, senders=['bbr']), seconds={_SECONDS},"
        f" record_every_ms={_SECONDS})"
    ),
    "links": (
        f"rf.simulate(rf.Network({_TWO_LINKS}, senders=[{{'protocol': 'newreno', "
        f"'route': {{'links': ['a', 'b'], 'return_delay_ms': 10}}}}]), seconds={_SECONDS})"
    ),
    "scores": "rf.evaluate(rf.load_table('generalist'), spec, networks=64)",
}
_PROGRAM = """
import remy_farm as rf
from library.tests.library_examples import joint_spec
spec = joint_spec().replace({{"search.simulated_seconds": 1e6}})
print("begun", flush=True)
result = {call}
print("ended", flush=True)
"""


def _interrupted(program: str) -> tuple[int, str, str]:
    """Interrupts a program that has started; returns its exit status, output and error output."""
    child = subprocess.Popen(
        killed_with_parent(sys.executable, "-c", program),
        cwd=_ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == "begun\n"
        # The program is then most likely inside the simulator, but must stop wherever it is.
        time.sleep(1.0)
        assert child.poll() is None
        child.send_signal(signal.SIGINT)
        output, errors = child.communicate(timeout=_TIMEOUT_SECONDS)
    finally:
        child.kill()
    return child.returncode, output, errors


@pytest.mark.parametrize("call", _CALLS.values(), ids=_CALLS)
def test_an_interrupted_call_raises_keyboard_interrupt(call: str) -> None:
    status, output, errors = _interrupted(_PROGRAM.format(call=call))
    assert status == -signal.SIGINT, errors
    assert output == ""
    assert errors.rstrip().endswith("KeyboardInterrupt")


@pytest.mark.parametrize("simulated_seconds", [1, 1e6], ids=["between steps", "within a step"])
def test_an_interrupted_design_returns_and_can_be_resumed(
    tmp_path: Path, simulated_seconds: float
) -> None:
    """It also returns if its first step would not end."""
    directory = tmp_path / "design"
    settings = {"search.joint.steps": 1_000_000, "search.simulated_seconds": simulated_seconds}
    call = f"rf.design(spec.replace({settings}), directory={str(directory)!r}).is_finished"
    status, output, errors = _interrupted(_PROGRAM.format(call=call))
    assert (status, output) == (0, "ended\n"), errors
    kept = rf.load_design(directory)
    assert not kept.is_finished
    assert {path.name for path in directory.iterdir()} == _FILES
    if simulated_seconds == 1:
        shorter = joint_spec(steps=kept.steps + 3)
        assert rf.design(shorter, directory=directory).is_finished
