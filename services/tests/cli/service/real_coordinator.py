"""Runs `remy-farm coordinator` as a process that can be killed and restarted."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

from tests.children import killed_with_parent
from tests.waiting import wait_until

REMY_FARM = Path(sys.executable).with_name("remy-farm")
# A machine that also builds is slow.
TIMEOUT_SECONDS = 120.0


class Coordinator:
    """A coordinator with its own store; every start listens on the same port."""

    def __init__(self, folder: Path, *flags: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._flags = flags
        self._process: subprocess.Popen[bytes] | None = None
        #: The address of the first start and of all later ones.
        self.address = "127.0.0.1:0"

    def start(self) -> None:
        """Starts the coordinator and waits until it serves."""
        ready = self._folder / "ready"
        ready.unlink(missing_ok=True)
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                killed_with_parent(
                    *(REMY_FARM, "coordinator", "--listen", self.address, "--threads", "1"),
                    *("--store", f"sqlite://{self._folder / 'farm.db'}", "--ready-file", ready),
                    *self._flags,
                ),
                stdout=log,
                stderr=log,
            )
        process = self._process
        wait_until(lambda: ready.exists() or process.poll() is not None, "a coordinator")
        assert ready.exists(), self.log()
        self.address = ready.read_text().strip()

    @property
    def pid(self) -> int:
        """The id of the process that was started last."""
        assert self._process is not None
        return self._process.pid

    def kill(self) -> None:
        """Kills the process with SIGKILL."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """Stops the process with SIGTERM; it must exit with 0."""
        assert self._end(signal.SIGTERM) == 0, self.log()

    def log(self) -> str:
        return (self._folder / "log").read_text(errors="replace")

    def close(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self.kill()

    def _end(self, number: int) -> int:
        assert self._process is not None
        self._process.send_signal(number)
        return self._process.wait(timeout=TIMEOUT_SECONDS)
