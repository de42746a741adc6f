"""Runs a Redis Sentinel for tests."""

from __future__ import annotations

import subprocess
from pathlib import Path
from types import TracebackType

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from services.tests.stores.certificates import Certificates
from services.tests.stores.local_redis import PROGRAM, LocalRedis, free_port
from tests.waiting import wait_until


class LocalSentinel:
    """A Sentinel that monitors a server as "farm" and fails over to its replica."""

    def __init__(self, folder: Path, master: LocalRedis, tls: Certificates | None = None) -> None:
        """Starts the Sentinel and waits until it knows the master's replica. No TLS by default."""
        self._folder = folder
        self._tls = tls
        self._master = master
        self._launch()
        wait_until(self._is_ready)

    def __enter__(self) -> LocalSentinel:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._process.kill()
        self._process.wait()

    def _launch(self) -> None:
        self.port = free_port()
        settings = self._folder / "sentinel.conf"
        settings.write_text(
            "bind 127.0.0.1\n"
            f"dir {self._folder}\nlogfile {self._folder}/sentinel.log\n"
            f"sentinel monitor farm 127.0.0.1 {self._master.port} 1\n"
            "sentinel down-after-milliseconds farm 500\n"
        )
        listening = ["--port", str(self.port)]
        if self._tls is not None:
            listening = ["--port", "0", "--tls-port", str(self.port), "--tls-replication", "yes"]
            listening += self._tls.settings
        self._process = subprocess.Popen(
            [PROGRAM, str(settings), "--sentinel", *listening], stdin=subprocess.DEVNULL
        )

    def _is_ready(self) -> bool:
        if self._process.poll() is not None:
            # Another process has taken the port.
            self._launch()
        with redis.Redis(
            host="127.0.0.1",
            port=self.port,
            retry=Retry(NoBackoff(), 0),
            ssl=self._tls is not None,
            ssl_ca_certs=None if self._tls is None else str(self._tls.authority),
        ) as client:
            try:
                return len(client.sentinel_slaves("farm")) == 1
            except redis.RedisError:
                return False
