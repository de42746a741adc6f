"""A signal lets `remy-farm kernel run` end in order, whenever it comes."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

# A thread that was there before, as libraries have them, would let a signal end the process.
_HELD = """
import os, signal, sys, threading
from remy_laboratory.kernel.running import held_signals

number = signal.Signals[sys.argv[1]]
# Processes in the background begin with some of them ignored.
if signal.getsignal(number) == signal.SIG_IGN:
    signal.signal(number, signal.SIG_DFL)
threading.Thread(target=threading.Event().wait, daemon=True).start()
with held_signals() as wait_for_a_signal:
    for _ in range(int(sys.argv[2])):
        os.kill(os.getpid(), number)
    print("held", flush=True)
    wait_for_a_signal()
    os.kill(os.getpid(), number)
    print("undone", flush=True)
print("after", flush=True)
os.kill(os.getpid(), number)
"""


def _start(name: str, before: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", _HELD, name, str(before)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT", "SIGHUP"])
@pytest.mark.parametrize("before", [1, 3])
def test_one_that_came_before_is_heard_and_none_ends_the_process(name: str, before: int) -> None:
    with _start(name, before) as process:
        said, _ = process.communicate(timeout=60)
    assert said.split() == ["held", "undone", "after"]
    # What a signal did before, it does again.
    assert process.returncode == -signal.Signals[name]


def test_one_is_waited_for() -> None:
    with _start("SIGTERM", 0) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        process.send_signal(signal.SIGTERM)
        said, _ = process.communicate(timeout=60)
    assert said.split() == ["undone", "after"]
