"""A cache that never raises, around one that does."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from remy_services.stores.contract import EvaluationCache, StoreError

_Result = TypeVar("_Result")


class GuardedCache:
    """Holds nothing while the one inside cannot be reached. See `EvaluationCache`.

    After an error the one inside is left alone for a while: whoever waits for a cache might as well
    evaluate.
    """

    def __init__(
        self,
        open_inner: Callable[[], EvaluationCache],
        *,
        pause_seconds: float = 5.0,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """`open_inner` is called at the first use; it and the cache may raise StoreError."""
        self._open_inner = open_inner
        self._pause_seconds = pause_seconds
        self._now = now
        self._lock = threading.Lock()
        self._inner: EvaluationCache | None = None
        self._is_closed = False
        self._resume_at = float("-inf")
        #: Why the cache could not be used at the last try, in one sentence; None if it could.
        self.problem: str | None = None

    def get(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        return self._try(lambda inner: inner.get(keys)) or {}

    def put(self, entries: Iterable[tuple[bytes, bytes]]) -> None:
        self._try(lambda inner: inner.put(entries))

    def close(self) -> None:
        with self._lock:
            self._is_closed = True
            if self._inner is not None:
                self._inner.close()
                self._inner = None

    def _try(self, call: Callable[[EvaluationCache], _Result]) -> _Result | None:
        if self._now() < self._resume_at:
            return None
        try:
            inner = self._opened()
            if inner is None:
                return None
            result = call(inner)
        except StoreError as error:
            self.problem = str(error)
            self._resume_at = self._now() + self._pause_seconds
            return None
        self.problem = None
        return result

    def _opened(self) -> EvaluationCache | None:
        with self._lock:
            if self._inner is None and not self._is_closed:
                self._inner = self._open_inner()
            return self._inner
