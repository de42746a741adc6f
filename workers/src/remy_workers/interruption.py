"""Reasons for a worker to shut down: a signal, no work left, or an EC2 interruption notice.

EC2 gives notice two minutes before it interrupts a spot instance. This module polls the instance
metadata service, version 2: it requests a session token, then the document `spot/instance-action`,
which exists only once an interruption is scheduled.
"""

from __future__ import annotations

import json
import signal
import threading
import urllib.error
import urllib.request
from typing import Final

import structlog

METADATA_URL: Final = "http://169.254.169.254"
#: The reason if no work is left; every other reason is an interruption.
IDLE: Final = "idle"

_SIGNALS = {signal.SIGTERM, signal.SIGINT}
_POLL_SECONDS = 5.0
_TIMEOUT_SECONDS = 2.0
_TOKEN_SECONDS = 300
_MAX_BYTES = 1 << 16

_log = structlog.get_logger()
# Bypass proxies: a proxy would query the metadata service of its own machine.
_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class Shutdown:
    """A request to shut down and its reason. Thread-safe.

    Only the first request counts.
    """

    def __init__(self) -> None:
        self.requested = threading.Event()
        self._lock = threading.Lock()
        #: The reason in one word; empty before a request.
        self.why = ""

    def request(self, why: str) -> None:
        """Requests a shutdown for the reason `why`, in one word."""
        with self._lock:
            self.why = self.why or why
            self.requested.set()

    def wait(self, seconds: float | None = None) -> bool:
        """Waits for a request, for at most `seconds`. Returns whether there is one."""
        return self.requested.wait(seconds)


def shut_down_on_signals(shutdown: Shutdown) -> None:
    """Requests a shutdown on SIGTERM and SIGINT.

    Call it in the main thread before starting others. A thread waits for the signals instead of a
    handler, which could interrupt the main thread while that holds a lock the handler needs.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)

    def wait() -> None:
        signal.sigwait(_SIGNALS)
        shutdown.request("signal")

    threading.Thread(target=wait, name="signals", daemon=True).start()


def shut_down_on_interruption(
    shutdown: Shutdown, url: str = METADATA_URL, poll_seconds: float = _POLL_SECONDS
) -> None:
    """Starts a thread that requests a shutdown on an EC2 interruption notice."""

    def poll() -> None:
        is_reachable = True
        while not shutdown.wait(poll_seconds):
            try:
                action = interruption(url)
            except OSError as error:
                if is_reachable:
                    _log.warning("the instance metadata service does not respond", why=str(error))
                is_reachable = False
                continue
            is_reachable = True
            if action is not None:
                _log.warning("this instance is about to be interrupted", action=action)
                shutdown.request("spot_interruption")

    threading.Thread(target=poll, name="interruption", daemon=True).start()


def interruption(url: str) -> str | None:
    """Returns the scheduled action ("terminate", "stop" or "hibernate"); None if there is none.

    Raises OSError if the metadata service cannot be reached.
    """
    token = _request(
        f"{url}/latest/api/token",
        method="PUT",
        headers={"X-aws-ec2-metadata-token-ttl-seconds": str(_TOKEN_SECONDS)},
    ).decode("ascii", errors="replace")
    try:
        document = _request(
            f"{url}/latest/meta-data/spot/instance-action",
            headers={"X-aws-ec2-metadata-token": token},
        )
    except urllib.error.HTTPError as error:
        if error.code == 404:
            return None
        raise
    try:
        notice = json.loads(document)
    except ValueError:
        notice = {}
    # A malformed notice still means an interruption.
    return str(notice.get("action", "unknown"))[:40] if isinstance(notice, dict) else "unknown"


def _request(url: str, *, method: str = "GET", headers: dict[str, str]) -> bytes:
    request = urllib.request.Request(url, method=method, headers=headers)
    with _OPENER.open(request, timeout=_TIMEOUT_SECONDS) as response:
        content: bytes = response.read(_MAX_BYTES)
    return content
