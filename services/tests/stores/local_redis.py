"""A redis-server of its own, on a Unix domain socket in a folder, and on a port if need be."""

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

#: What to start; another build of Redis may be tried with this variable.
PROGRAM = os.environ.get("REMY_REDIS_SERVER", "redis-server")

#: Settings under which it loses nothing.
DURABLE = ("--appendonly", "yes", "--appendfsync", "always")


class LocalRedis:
    """A server that may be killed and started again; its data stay in the folder."""

    def __init__(
        self, folder: Path, *settings: str, listens: Literal["--port", "--tls-port"] | None = None
    ) -> None:
        """Starts it in this folder, by default so that it loses nothing.

        `listens` is the setting to give a free port of 127.0.0.1 to, if it is to have one.
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
        self._launch()
        try:
            wait_until(self._is_ready)
        except BaseException:
            self.kill()
            raise

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
            # Somebody else may have been quicker to take the port.
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
    """A port of 127.0.0.1 that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
