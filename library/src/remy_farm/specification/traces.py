"""Reads link traces: files of the times at which a recorded link could deliver a packet.

The format is that of Mahimahi and of the ns-2 of Winstein and Balakrishnan (2013). Each line is a
whole number of ms since the start, in ascending order; a time on several lines is that many
delivery opportunities in the same ms.
"""

from __future__ import annotations

import array
import hashlib
import os
import sys
from dataclasses import dataclass

from remy_farm.files import FileError, read_file
from remy_proto.v1 import evaluation_pb2, spec_pb2
from remy_simulator.messages import native_link
from remy_simulator.traces import RecordedTrace, Traces

#: Largest accepted file; it holds some ten million opportunities.
LARGEST_TRACE_BYTES = 64 * 2**20
#: Latest accepted opportunity: a year.
LATEST_MS = 366 * 24 * 3600 * 1000
_LONGEST_LINE = 40
_US_PER_MS = 1000


@dataclass(frozen=True)
class LinkTrace:
    """A link's delivery opportunities, encoded as in evaluation requests and in stores."""

    #: Times since the start in ascending order, as little-endian unsigned 64-bit integers.
    opportunities_us: bytes

    @property
    def sha256(self) -> bytes:
        """SHA-256 of `opportunities_us`, which identifies the trace."""
        return hashlib.sha256(self.opportunities_us).digest()

    def __len__(self) -> int:
        return len(self.opportunities_us) // 8

    def text(self) -> bytes:
        """The trace as the content of a trace file."""
        times_us = array.array("Q", self.opportunities_us)
        if sys.byteorder == "big":
            times_us.byteswap()
        return b"".join(b"%d\n" % (time_us // _US_PER_MS) for time_us in times_us)

    def mean_rate_mbps(self, semantics: spec_pb2.TraceSemantics) -> float:
        """Mean rate of packets of 1500 bytes, where an opportunity carries what `semantics` say."""
        link = evaluation_pb2.Link()
        link.trace.sha256, link.trace.semantics = self.sha256, semantics
        native = native_link(link, Traces([self.message()]))
        return native.mean_rate_packets_per_ms(1500.0) * 12

    def message(self) -> evaluation_pb2.Trace:
        """The trace as a Trace message of a request."""
        return evaluation_pb2.Trace(sha256=self.sha256, opportunities_us=self.opportunities_us)


def check_trace(opportunities_us: bytes) -> None:
    """Raises ValueError with one sentence if the simulator cannot use the trace."""
    RecordedTrace(opportunities_us).driver("ns2", ends=False)


def parse_trace(text: bytes, name: str) -> LinkTrace:
    """Parses the content of a trace file; errors call the file `name`.

    Raises FileError with one sentence if a line is not a whole number or is less than the line
    before it, or if the trace is empty or lasts 0 ms.
    """
    if b"\0" in text:
        raise FileError(f"{name} is binary, but a trace has a whole number of ms on every line")
    lines = text.split(b"\n")
    if lines[-1] == b"":
        lines.pop()
    times_us = array.array("Q")
    last_ms = 0
    for number, line in enumerate(lines, start=1):
        digits = line.removesuffix(b"\r")
        # Only digits are allowed; int() also accepts signs, spaces and underscores.
        if not digits.isdigit() or len(digits) > _LONGEST_LINE:
            shown = ascii(line[:_LONGEST_LINE].decode("utf-8", "replace"))
            raise FileError(f"{name}, line {number}: {shown} is not a whole number of ms")
        time_ms = int(digits)
        if time_ms > LATEST_MS:
            raise FileError(
                f"{name}, line {number}: {time_ms} ms is too late; at most {LATEST_MS} is allowed"
            )
        if time_ms < last_ms:
            raise FileError(
                f"{name}, line {number}: {time_ms} comes after {last_ms}, but times must not fall"
            )
        times_us.append(time_ms * _US_PER_MS)
        last_ms = time_ms
    if not times_us:
        raise FileError(f"{name} is empty, but a trace has at least one opportunity to deliver")
    if last_ms == 0:
        raise FileError(f"{name} has all its opportunities at 0 ms, but must last for some time")
    if sys.byteorder == "big":
        times_us.byteswap()
    return LinkTrace(times_us.tobytes())


def read_trace(path: str | os.PathLike[str]) -> LinkTrace:
    """Reads a trace file of at most LARGEST_TRACE_BYTES.

    Raises FileError if the file cannot be read or is too large, and as `parse_trace` does.
    """
    return parse_trace(read_file(path, limit=LARGEST_TRACE_BYTES), os.fspath(path))
