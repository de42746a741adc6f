"""A redis-server of its own, on a Unix domain socket in a folder."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path
from types import TracebackType

import redis

#: What to start; another build of Redis may be tried with this variable.
PROGRAM = os.environ.get("REMY_REDIS_SERVER", "redis-server")

_DEADLINE_SECONDS = 120
_DURABLE = ("--appendonly", "yes", "--appendfsync", "always")


class LocalRedis:
    """A server that may be killed and started again; its data stay in the folder."""

    def __init__(self, folder: Path, *settings: str) -> None:
        """Starts it in this folder, by default so that it loses nothing."""
        self.folder = folder
        self._settings = settings or _DURABLE
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    def __enter__(self) -> LocalRedis:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.kill()

    @property
    def socket(self) -> Path:
        return self.folder / "redis.sock"

    @property
    def url(self) -> str:
        return f"unix://{self.socket}"

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        """Returns when it has read its data and answers."""
        self.socket.unlink(missing_ok=True)
        self._process = subprocess.Popen(
            [
                PROGRAM,
                *("--port", "0"),
                *("--unixsocket", str(self.socket)),
                *("--dir", str(self.folder)),
                *("--logfile", str(self.folder / "redis.log")),
                *("--save", ""),
                *self._settings,
            ],
            stdin=subprocess.DEVNULL,
        )
        deadline = time.monotonic() + _DEADLINE_SECONDS
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.kill()
                raise AssertionError((self.folder / "redis.log").read_text())
            time.sleep(0.01)

    def kill(self) -> None:
        """Ends it at once, as a failing machine does; again does nothing."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def freeze(self) -> None:
        """It accepts connections and requests, and does nothing until it is thawed."""
        os.kill(self.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    def admin(self) -> redis.Redis:
        """A client to look and interfere with; to be closed."""
        return redis.Redis(unix_socket_path=str(self.socket))

    def _answers(self) -> bool:
        with self.admin() as client:
            try:
                return bool(client.ping())
            except redis.AuthenticationError:
                return True
            except (redis.ConnectionError, redis.exceptions.BusyLoadingError):
                return False
