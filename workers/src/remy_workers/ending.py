"""Whether the worker is to end, and why; what may ask for it."""

from __future__ import annotations

import signal
import threading

#: Why a worker ends that has nothing left to do; whatever else ends it interrupts it.
IDLE = "idle"
_SIGNALS = {signal.SIGTERM, signal.SIGINT}


class Ending:
    """Is asked for once; who asks later changes nothing. May be used from any thread."""

    def __init__(self) -> None:
        self._asked = threading.Event()
        self._lock = threading.Lock()
        #: In one word; empty: the worker is to go on.
        self.why = ""

    def ask(self, why: str) -> None:
        """The worker is to end. `why` is one word."""
        with self._lock:
            self.why = self.why or why
            self._asked.set()

    def wait(self, seconds: float | None = None) -> bool:
        """Returns when the worker is to end, or after `seconds`. Whether it is to end."""
        return self._asked.wait(seconds)


def end_on_signals(ending: Ending) -> None:
    """Has SIGTERM and SIGINT ask for the end of this process.

    To be called in the main thread before there is any other. A thread waits for the signals, since
    a handler could interrupt the main thread while it holds a lock that the handler needs.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)

    def wait() -> None:
        signal.sigwait(_SIGNALS)
        ending.ask("signal")

    threading.Thread(target=wait, name="signals", daemon=True).start()
