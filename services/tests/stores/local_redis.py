"""Runs a redis-server for tests, on a Unix domain socket and optionally on a port."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Literal

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from tests.waiting import wait_until

#: The server's executable; REMY_REDIS_SERVER selects another build.
PROGRAM = os.environ.get("REMY_REDIS_SERVER", "redis-server")

#: Settings under which acknowledged writes survive a crash.
DURABLE = ("--appendonly", "yes", "--appendfsync", "always")


class LocalRedis:
    """A Redis server that can be killed and restarted; its data stay in the folder."""

    def __init__(
        self, folder: Path, *settings: str, listens: Literal["--port", "--tls-port"] | None = None
    ) -> None:
        """Starts the server in this folder, with DURABLE settings by default.

        `listens` is the flag for a free port of 127.0.0.1; None means no port.
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
        exc_type: type[BaseException] | None,
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
        """Starts the server and waits until it has loaded its data."""
        self._launch()
        try:
            wait_until(self._is_ready)
        except BaseException:
            self.kill()
            raise

    def kill(self) -> None:
        """Kills the server with SIGKILL, if it is running."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def freeze(self) -> None:
        """Stops the server's process with SIGSTOP; connections and requests then hang."""
        os.kill(self.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    def admin(self) -> redis.Redis:
        """Returns a client for inspection and interference, which the caller closes."""
        return redis.Redis(unix_socket_path=str(self.socket), retry=Retry(NoBackoff(), 0))

    @property
    def log(self) -> str:
        return (self.folder / "redis.log").read_text()

    def _launch(self) -> None:
        self.socket.unlink(missing_ok=True)
        listening: tuple[str, ...] = ("--port", "0")
        if self._listens is not None:
            self.port = self.port or free_port()
            listening += (self._listens, str(self.port))
        self._process = subprocess.Popen(
            [
                PROGRAM,
                *("--bind", "127.0.0.1"),
                *listening,
                *("--unixsocket", str(self.socket)),
                *("--dir", str(self.folder)),
                *("--logfile", str(self.folder / "redis.log")),
                *("--save", ""),
                *self._settings,
            ],
            stdin=subprocess.DEVNULL,
        )

    def _is_ready(self) -> bool:
        assert self._process is not None
        if self._process.poll() is not None:
            # Another process may have taken the port.
            assert "Address already in use" in self.log, self.log
            (self.folder / "redis.log").unlink()
            self.port = 0
            self._launch()
        with self.admin() as client:
            try:
                return bool(client.ping())
            except redis.AuthenticationError:
                return True
            except (redis.ConnectionError, redis.exceptions.BusyLoadingError):
                return False


def free_port() -> int:
    """Returns a currently unused port of 127.0.0.1."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
