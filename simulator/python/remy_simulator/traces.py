"""Recordings of links by their hashes: those of a request, and those that a process keeps.

A link names its recording by SHA-256. A request holds a recording whole, so that it can be
evaluated by itself, or names it alone (a Trace message without opportunities), where whoever
evaluates has it already: it may be larger than all the rest, and the same in all requests of a
design.
"""

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Final

from remy_proto.v1 import evaluation_pb2
from remy_simulator import _native

#: What a process keeps of recordings that nobody uses, bytes.
MOST_KEPT_BYTES: Final = 256 * 2**20

# By the numbers of TraceSemantics.
_SEMANTICS: Final = {1: "ns2", 2: "mahimahi", 3: "cellsim"}


class RecordedTrace:
    """A link's opportunities, converted once for each way of following them."""

    def __init__(self, opportunities_us: bytes) -> None:
        """`opportunities_us`: as in a Trace message."""
        self.opportunities_us = opportunities_us
        self.sha256 = hashlib.sha256(opportunities_us).digest()
        self._drivers: dict[tuple[str, bool], _native.TraceDriver] = {}

    def driver(self, semantics: str, *, ends: bool) -> _native.TraceDriver:
        """What drives a link. Raises ValueError where the opportunities make no sense."""
        key = semantics, ends
        if key not in self._drivers:
            self._drivers[key] = _native.recorded(self.opportunities_us, semantics, ends)
        return self._drivers[key]


class TraceCache:
    """The recordings that were used last, in a bounded number of bytes. Safe for use by threads."""

    def __init__(self, most_bytes: int = MOST_KEPT_BYTES) -> None:
        """The one that was used last is kept even if it alone has more than `most_bytes`."""
        self._most_bytes = most_bytes
        self._recordings: OrderedDict[bytes, RecordedTrace] = OrderedDict()
        self._lock = threading.Lock()

    def find(self, sha256: bytes) -> RecordedTrace | None:
        """The recording of this hash, if it is kept."""
        with self._lock:
            if sha256 in self._recordings:
                self._recordings.move_to_end(sha256)
            return self._recordings.get(sha256)

    def keep(self, opportunities_us: bytes) -> RecordedTrace:
        """The recording of these opportunities, kept from now on."""
        recording = RecordedTrace(opportunities_us)
        with self._lock:
            recording = self._recordings.setdefault(recording.sha256, recording)
            self._recordings.move_to_end(recording.sha256)
            held = sum(len(each.opportunities_us) for each in self._recordings.values())
            while held > self._most_bytes and len(self._recordings) > 1:
                held -= len(self._recordings.popitem(last=False)[1].opportunities_us)
        return recording


class Traces:
    """A request's recordings; links of equal drivers share them."""

    def __init__(
        self,
        traces: Iterable[evaluation_pb2.Trace] = (),
        find: Callable[[bytes], RecordedTrace | None] = lambda sha256: None,
    ) -> None:
        """`find` knows those that are only named.

        Raises ValueError where a recording is not the one that its hash names, or is not known.
        """
        self._recordings: dict[bytes, RecordedTrace] = {}
        for trace in traces:
            recording = find(trace.sha256)
            if recording is None and trace.opportunities_us:
                recording = RecordedTrace(trace.opportunities_us)
                if recording.sha256 != trace.sha256:
                    raise ValueError(
                        f"the trace {_shown(trace.sha256)} has another SHA-256 than it is named by"
                    )
            if recording is None:
                raise ValueError(
                    f"the trace {_shown(trace.sha256)} has no opportunities, nor is it known here"
                )
            self._recordings[trace.sha256] = recording

    def driver(self, link: evaluation_pb2.Link) -> _native.TraceDriver | None:
        """What drives a link in place of a rate. Raises ValueError."""
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
    """The hashes of the recordings that a request's links follow, in their order."""
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
