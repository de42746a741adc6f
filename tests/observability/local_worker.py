"""Runs `remy-worker` as a process that serves metrics."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from types import TracebackType

from tests.children import killed_with_parent
from tests.observability.event_log import metrics_addresses
from tests.waiting import wait_until

_REMY_WORKER = Path(sys.executable).with_name("remy-worker")


class LocalWorker:
    """A worker process with one thread; it runs within the context."""

    def __init__(self, coordinator: str, log: Path, *flags: str) -> None:
        self._coordinator = coordinator
        self._flags = flags
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> LocalWorker:
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                killed_with_parent(
                    *(_REMY_WORKER, "--coordinator", self._coordinator, "--threads", "1"),
                    *("--metrics-listen", "127.0.0.1:0", *self._flags),
                ),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        try:
            wait_until(self._serves)
        except BaseException:
            self.kill()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.kill()

    @property
    def metrics_address(self) -> str:
        """The address on which the worker serves metrics."""
        (address,) = metrics_addresses(self._log.read_text())
        return address

    def send_signal(self, number: signal.Signals) -> None:
        """Sends a signal to the running process."""
        assert self._process is not None
        self._process.send_signal(number)

    def kill(self) -> None:
        """Kills the process without notice, like a lost spot instance."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def _serves(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, self._log.read_text()
        return bool(metrics_addresses(self._log.read_text()))
