"""Signals that ask a run to leave."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def signals_set(event: threading.Event) -> Iterator[None]:
    """Has Ctrl-C and SIGTERM set `event` instead of ending the process.

    A second signal does what it did before, so that nobody is kept waiting. Signals are left alone
    in any but the main thread, where Python does not deliver them.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous = {number: signal.getsignal(number) for number in _SIGNALS}

    def restore() -> None:
        for number, handler in previous.items():
            signal.signal(number, handler)

    def handle(_number: int, _frame: FrameType | None) -> None:
        event.set()
        restore()

    for number in _SIGNALS:
        signal.signal(number, handle)
    try:
        yield
    finally:
        restore()
