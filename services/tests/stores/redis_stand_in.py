"""Fake Redis server with WAITAOF, which the installed Redis may lack.

Implements only what opening a store and running one script need, and stores nothing.
"""

from __future__ import annotations

import socketserver
import threading
from pathlib import Path
from types import TracebackType

_INFO = (
    "redis_version:7.2.0\r\nredis_mode:standalone\r\naof_enabled:1\r\n"
    "maxmemory:0\r\nmaxmemory_policy:noeviction\r\n"
)


class RedisStandIn:
    """Serves on a Unix domain socket while the context is open."""

    def __init__(self, folder: Path) -> None:
        #: WAITAOF's reply for the local disk: 1 if the write is durable, else 0.
        self.on_disks = 1
        #: Requests so far: the command, for WAITAOF with its arguments.
        self.requests: list[tuple[str, ...]] = []
        socket = folder / "stand-in.sock"
        self.url = f"unix://{socket}"
        self._server = socketserver.ThreadingUnixStreamServer(str(socket), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()

    def __enter__(self) -> RedisStandIn:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def answer(self, request: list[bytes]) -> bytes:
        """Returns the reply to a request, in the Redis protocol."""
        command = request[0].upper().decode()
        if command == "WAITAOF":
            self.requests.append((command, *(part.decode() for part in request[1:])))
            return b"*2\r\n:%d\r\n:0\r\n" % self.on_disks
        self.requests.append((command,))
        if command == "INFO":
            return b"$%d\r\n%s\r\n" % (len(_INFO), _INFO.encode())
        if command == "CONFIG":
            return b"*2\r\n$11\r\nappendfsync\r\n$8\r\neverysec\r\n"
        if command == "EVAL":
            return b"*2\r\n$2\r\nok\r\n$1\r\n2\r\n"
        return b"+OK\r\n"

    def _handler(self) -> type[socketserver.StreamRequestHandler]:
        stand_in = self

        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                while head := self.rfile.readline():
                    parts = [self._part() for _ in range(int(head[1:]))]
                    self.wfile.write(stand_in.answer(parts))

            def _part(self) -> bytes:
                length = int(self.rfile.readline()[1:])
                return self.rfile.read(length + 2)[:-2]

        return Handler
