"""Link traces by their hashes: the traces of a request, and a cache of them.

A link refers to its trace by SHA-256. A request contains a trace in full, or only its hash (a
Trace message without opportunities) if the evaluator has the trace already. A trace may be larger
than the rest of the request, and is the same in all requests of a design.
"""

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Final

from remy_proto.v1 import evaluation_pb2
from remy_simulator import _native

#: Size of the trace cache in bytes.
CACHE_BYTES: Final = 256 * 2**20

# By the numbers of TraceSemantics.
_SEMANTICS: Final = {1: "ns2", 2: "mahimahi", 3: "cellsim"}


class RecordedTrace:
    """A trace's opportunities, converted once for each semantics."""

    def __init__(self, opportunities_us: bytes) -> None:
        """`opportunities_us` is encoded as in a Trace message."""
        self.opportunities_us = opportunities_us
        self.sha256 = hashlib.sha256(opportunities_us).digest()
        self._drivers: dict[tuple[str, bool], _native.TraceDriver] = {}

    def driver(self, semantics: str, *, ends: bool) -> _native.TraceDriver:
        """Returns a driver for links. Raises ValueError if the opportunities are invalid."""
        key = semantics, ends
        if key not in self._drivers:
            self._drivers[key] = _native.recorded(self.opportunities_us, semantics, ends)
        return self._drivers[key]


class TraceCache:
    """An LRU cache of traces, limited in bytes. Thread-safe."""

    def __init__(self, max_bytes: int = CACHE_BYTES) -> None:
        """The most recently used trace is kept even if it alone exceeds `max_bytes`."""
        self._max_bytes = max_bytes
        self._recordings: OrderedDict[bytes, RecordedTrace] = OrderedDict()
        self._lock = threading.Lock()

    def find(self, sha256: bytes) -> RecordedTrace | None:
        """Returns the trace with this hash, or None if it is not cached."""
        with self._lock:
            if sha256 in self._recordings:
                self._recordings.move_to_end(sha256)
            return self._recordings.get(sha256)

    def keep(self, opportunities_us: bytes) -> RecordedTrace:
        """Adds a trace to the cache and returns it."""
        recording = RecordedTrace(opportunities_us)
        with self._lock:
            recording = self._recordings.setdefault(recording.sha256, recording)
            self._recordings.move_to_end(recording.sha256)
            held = sum(len(each.opportunities_us) for each in self._recordings.values())
            while held > self._max_bytes and len(self._recordings) > 1:
                held -= len(self._recordings.popitem(last=False)[1].opportunities_us)
        return recording


class Traces:
    """The traces of a request. Links with the same trace and semantics share a driver."""

    def __init__(
        self,
        traces: Iterable[evaluation_pb2.Trace] = (),
        find: Callable[[bytes], RecordedTrace | None] = lambda sha256: None,
    ) -> None:
        """`find` looks up traces of which the request contains only the hash.

        Raises ValueError if a trace does not match its hash, or is unknown.
        """
        self._recordings: dict[bytes, RecordedTrace] = {}
        for trace in traces:
            recording = find(trace.sha256)
            if recording is None and trace.opportunities_us:
                recording = RecordedTrace(trace.opportunities_us)
                if recording.sha256 != trace.sha256:
                    raise ValueError(
                        f"the trace {_shown(trace.sha256)} has another SHA-256 "
                        "than its opportunities"
                    )
            if recording is None:
                raise ValueError(
                    f"the trace {_shown(trace.sha256)} has no opportunities and is not in the cache"
                )
            self._recordings[trace.sha256] = recording

    def driver(self, link: evaluation_pb2.Link) -> _native.TraceDriver | None:
        """Returns the driver of a link; None if the link has a rate. Raises ValueError."""
        match link.WhichOneof("driver"):
            case "generated":
                model = link.generated.generator
                return _native.generated(
                    model.maximum_packets_per_s,
                    model.volatility_packets_per_s,
                    model.outage_escape_per_s,
                    model.tick_ms,
                    model.seed if model.HasField("seed") else None,
                    _semantics(link.generated.semantics),
                )
            case "trace":
                recording = self._recordings.get(link.trace.sha256)
                if recording is None:
                    raise ValueError(
                        f"a link follows the trace {_shown(link.trace.sha256)}, which is not one "
                        f"of the request's {len(self._recordings)}"
                    )
                return recording.driver(_semantics(link.trace.semantics), ends=link.trace.ends)
            case _:
                return None


def named_traces(request: evaluation_pb2.EvaluationRequest) -> list[bytes]:
    """Returns the hashes of the traces that a request's links follow, sorted."""
    links = [link for specimen in request.specimens for link in specimen.links]
    links += [link for kind in request.specimen_columns.kinds for link in kind.links]
    return sorted({link.trace.sha256 for link in links if link.HasField("trace")})


def _semantics(number: int) -> str:
    if number not in _SEMANTICS:
        raise ValueError(
            f"a trace's semantics are {number}, but must be 1 (ns2), 2 (mahimahi) or 3 (cellsim)"
        )
    return _SEMANTICS[number]


def _shown(sha256: bytes) -> str:
    return sha256.hex() or "(without a hash)"
