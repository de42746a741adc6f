"""The coordinator's clock, as messages hold it."""

from __future__ import annotations

import time
from collections.abc import Callable

from google.protobuf.timestamp_pb2 import Timestamp

#: Tells the time.
Clock = Callable[[], Timestamp]


def now() -> Timestamp:
    """The time of this machine's clock."""
    timestamp = Timestamp()
    timestamp.FromNanoseconds(time.time_ns())
    return timestamp
