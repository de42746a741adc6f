"""What asks a worker to end: a signal, a coordinator that has nothing left, or EC2.

EC2 gives notice two minutes before it takes a spot instance away. It is asked for at the instance
metadata service, version 2: a token, then the document that is only there once the instance is to
be interrupted.
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
#: Why a worker ends that has nothing left to do; whatever else ends it interrupts it.
IDLE: Final = "idle"

_SIGNALS = {signal.SIGTERM, signal.SIGINT}
_POLL_SECONDS = 5.0
_TIMEOUT_SECONDS = 2.0
_TOKEN_SECONDS = 300
_MOST_BYTES = 1 << 16

_log = structlog.get_logger()
# The service is on this machine; a proxy would ask for another one's fate.
_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class Shutdown:
    """Whether the worker is to end, and why. May be used from any thread.

    Is asked for once; who asks later changes nothing.
    """

    def __init__(self) -> None:
        self.requested = threading.Event()
        self._lock = threading.Lock()
        #: In one word; empty: the worker is to go on.
        self.why = ""

    def request(self, why: str) -> None:
        """The worker is to end. `why` is one word."""
        with self._lock:
            self.why = self.why or why
            self.requested.set()

    def wait(self, seconds: float | None = None) -> bool:
        """Returns when the worker is to end, or after `seconds`. Whether it is to end."""
        return self.requested.wait(seconds)


def shut_down_on_signals(shutdown: Shutdown) -> None:
    """Has SIGTERM and SIGINT ask for the end of this process.

    To be called in the main thread before there is any other. A thread waits for the signals, since
    a handler could interrupt the main thread while it holds a lock that the handler needs.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)

    def wait() -> None:
        signal.sigwait(_SIGNALS)
        shutdown.request("signal")

    threading.Thread(target=wait, name="signals", daemon=True).start()


def shut_down_on_interruption(
    shutdown: Shutdown, url: str = METADATA_URL, poll_seconds: float = _POLL_SECONDS
) -> None:
    """Has EC2's notice ask for the end of this process, from a thread of its own."""

    def poll() -> None:
        is_reachable = True
        while not shutdown.wait(poll_seconds):
            try:
                action = interruption(url)
            except OSError as error:
                if is_reachable:
                    _log.warning("the instance metadata service does not answer", why=str(error))
                is_reachable = False
                continue
            is_reachable = True
            if action is not None:
                _log.warning("this instance is about to be interrupted", action=action)
                shutdown.request("spot_interruption")

    threading.Thread(target=poll, name="interruption", daemon=True).start()


def interruption(url: str) -> str | None:
    """What is about to happen to this instance ("terminate", "stop", "hibernate"), if anything.

    Raises OSError if the service cannot be reached.
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
    # A notice that cannot be read is one.
    return str(notice.get("action", "unknown"))[:40] if isinstance(notice, dict) else "unknown"


def _request(url: str, *, method: str = "GET", headers: dict[str, str]) -> bytes:
    request = urllib.request.Request(url, method=method, headers=headers)
    with _OPENER.open(request, timeout=_TIMEOUT_SECONDS) as answer:
        content: bytes = answer.read(_MOST_BYTES)
    return content
