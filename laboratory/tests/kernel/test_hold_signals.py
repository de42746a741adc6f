"""Tests that `remy-farm kernel run` cleans up after a signal, whenever the signal comes."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

# A thread that started earlier, like those of libraries, would let a signal end the process.
_PROGRAM = """
import os, signal, sys, threading
from remy_laboratory.kernel.running import hold_signals

number = signal.Signals[sys.argv[1]]
# A process in the background may start with signals ignored.
if signal.getsignal(number) == signal.SIG_IGN:
    signal.signal(number, signal.SIG_DFL)
threading.Thread(target=threading.Event().wait, daemon=True).start()
with hold_signals() as wait_for_a_signal:
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
    command = [sys.executable, "-c", _PROGRAM, name, str(before)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT", "SIGHUP"])
@pytest.mark.parametrize("before", [1, 3])
def test_earlier_signal_ends_the_wait_and_not_the_process(name: str, before: int) -> None:
    with _start(name, before) as process:
        output, _ = process.communicate(timeout=60)
    assert output.split() == ["held", "undone", "after"]
    # The previous handler is restored.
    assert process.returncode == -signal.Signals[name]


def test_wait_returns_after_a_later_signal() -> None:
    with _start("SIGTERM", 0) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        process.send_signal(signal.SIGTERM)
        output, _ = process.communicate(timeout=60)
    assert output.split() == ["undone", "after"]
