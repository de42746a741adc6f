"""A redis-server of its own, on a Unix domain socket in a folder, and on a port if need be."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from pathlib import Path
from types import TracebackType

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

#: What to start; another build of Redis may be tried with this variable.
PROGRAM = os.environ.get("REMY_REDIS_SERVER", "redis-server")

_DEADLINE_SECONDS = 120
#: Settings under which it loses nothing.
DURABLE = ("--appendonly", "yes", "--appendfsync", "always")


class LocalRedis:
    """A server that may be killed and started again; its data stay in the folder."""

    def __init__(self, folder: Path, *settings: str, listens: bool = False) -> None:
        """Starts it in this folder, by default so that it loses nothing.

        `listens` on a free port of 127.0.0.1 too.
        """
        self.folder = folder
        self.port = 0
        self._settings = settings or DURABLE
        self._process: subprocess.Popen[bytes] | None = None
        self._listens = listens
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
        deadline = time.monotonic() + _DEADLINE_SECONDS
        self._launch()
        while not self._answers():
            assert self._process is not None
            if self._process.poll() is not None:
                self._relaunch()
            elif time.monotonic() > deadline:
                self.kill()
                raise AssertionError(self.log)
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
        return redis.Redis(unix_socket_path=str(self.socket), retry=Retry(NoBackoff(), 0))

    @property
    def log(self) -> str:
        return (self.folder / "redis.log").read_text()

    def _launch(self) -> None:
        self.socket.unlink(missing_ok=True)
        if self._listens and not self.port:
            self.port = free_port()
        self._process = subprocess.Popen(
            [
                PROGRAM,
                *("--bind", "127.0.0.1"),
                *("--port", str(self.port)),
                *("--unixsocket", str(self.socket)),
                *("--dir", str(self.folder)),
                *("--logfile", str(self.folder / "redis.log")),
                *("--save", ""),
                *self._settings,
            ],
            stdin=subprocess.DEVNULL,
        )

    def _relaunch(self) -> None:
        """On another port, if somebody else was quicker to take the first one."""
        if "Address already in use" not in self.log:
            raise AssertionError(self.log)
        (self.folder / "redis.log").unlink()
        self.port = 0
        self._launch()

    def _answers(self) -> bool:
        with self.admin() as client:
            try:
                return bool(client.ping())
            except redis.AuthenticationError:
                return True
            except (redis.ConnectionError, redis.exceptions.BusyLoadingError):
                return False


def free_port() -> int:
    """A port of 127.0.0.1 that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
