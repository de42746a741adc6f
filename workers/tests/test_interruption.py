"""Interruption notices of EC2, with a fake instance metadata service."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator

import pytest

from remy_workers.interruption import Shutdown, interruption, shut_down_on_interruption


class _Service(http.server.ThreadingHTTPServer):
    """A metadata service of version 2, which requires a session token."""

    notice: bytes | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(http.server.BaseHTTPRequestHandler):
    server: _Service

    def do_PUT(self) -> None:
        assert self.path == "/latest/api/token"
        assert 1 <= int(self.headers["X-aws-ec2-metadata-token-ttl-seconds"]) <= 21600
        self._answer(200, b"the-token")

    def do_GET(self) -> None:
        if self.headers["X-aws-ec2-metadata-token"] != "the-token":
            self._answer(401, b"")
        elif self.path != "/latest/meta-data/spot/instance-action" or self.server.notice is None:
            self._answer(404, b"")
        else:
            self._answer(200, self.server.notice)

    def _answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Logs nothing."""


@pytest.fixture
def service() -> Iterator[_Service]:
    with _Service(("127.0.0.1", 0), _Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def test_interruption_is_none_until_a_notice_appears(service: _Service) -> None:
    assert interruption(service.url) is None
    service.notice = b'{"action": "terminate", "time": "2026-01-01T00:00:00Z"}'
    assert interruption(service.url) == "terminate"


@pytest.mark.parametrize("notice", [b"not JSON", b"[]", b"{}"])
def test_malformed_notice_counts_as_an_interruption(service: _Service, notice: bytes) -> None:
    service.notice = notice
    assert interruption(service.url) == "unknown"


def test_unreachable_service_raises_os_error() -> None:
    with _Service(("127.0.0.1", 0), _Handler) as closed:
        url = closed.url
    with pytest.raises(OSError, match="refused"):
        interruption(url)


def test_notice_requests_a_shutdown(service: _Service) -> None:
    shutdown = Shutdown()
    shut_down_on_interruption(shutdown, service.url, poll_seconds=0.02)
    assert not shutdown.wait(0.1)
    service.notice = b'{"action": "stop"}'
    assert shutdown.wait(60)
    assert shutdown.why == "spot_interruption"
