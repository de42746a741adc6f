"""Requests cut into tasks while they are given out, so that sizes follow what is known by then."""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate

from remy_farm.v1 import evaluation_pb2
from remy_services.evaluation.partition import Task as Slice
from remy_services.fleet.board.cost import expected_packets

# A remainder shorter than this share of a slice goes with it.
_REMAINDER = 0.5


class Slicer:
    """Cuts a request into slices that cover it once, in order.

    The longer side of candidates x specimens is cut; the shorter stays whole where it fits. A slice
    of a search with two candidates and many specimens thus names each specimen once.
    """

    def __init__(self, request: evaluation_pb2.EvaluationRequest) -> None:
        self._candidates = len(request.candidates)
        self._specimens = len(request.specimens)
        weights = (expected_packets(each, request.duration_ms) for each in request.specimens)
        #: Expected packets of the first n specimens under one candidate.
        self._before = [0.0, *accumulate(weights)]
        self._cuts_specimens = self._specimens > self._candidates
        # The first simulation that is not cut off yet.
        self._candidate = 0
        self._specimen = 0
        #: Expected packets of what is not cut off yet.
        self.packets = self._before[-1] * self._candidates
        # A request without simulations is a slice too: the simulator says what is wrong with it.
        self.exhausted = False

    def cut(self, packets: float) -> tuple[Slice, float]:
        """The next slice of about so many expected packets, and how many it has."""
        if not (self._candidates and self._specimens):
            self.exhausted = True
            return Slice(range(self._candidates), range(self._specimens)), 0.0
        if packets >= self.packets * (1 - _REMAINDER) and self._at_a_start():
            packets = self.packets
        cut = self._cut_specimens(packets) if self._cuts_specimens else self._cut_rows(packets)
        weight = self._weight(cut.specimens) * len(cut.candidates)
        self.packets = 0.0 if self.exhausted else self.packets - weight
        return cut, weight

    def _at_a_start(self) -> bool:
        return (self._candidate if self._cuts_specimens else self._specimen) == 0

    def _weight(self, specimens: range) -> float:
        return self._before[specimens.stop] - self._before[specimens.start]

    def _cut_rows(self, packets: float) -> Slice:
        """Whole candidates, or some specimens of one."""
        row = self._before[-1]
        if self._specimen == 0 and packets >= row:
            rows = int(packets / row) if row > 0 else self._candidates
            stop = min(self._candidate + rows, self._candidates)
            cut = Slice(range(self._candidate, stop), range(self._specimens))
            self._candidate = stop
        else:
            stop = self._specimens_within(packets)
            cut = Slice(range(self._candidate, self._candidate + 1), range(self._specimen, stop))
            self._specimen = stop
            if stop == self._specimens:
                self._candidate, self._specimen = self._candidate + 1, 0
        self.exhausted = self._candidate >= self._candidates
        return cut

    def _cut_specimens(self, packets: float) -> Slice:
        """Specimens under all candidates, or one under some of them."""
        one = self._weight(range(self._specimen, self._specimen + 1))
        if self._candidate == 0 and packets >= one * self._candidates:
            stop = self._specimens_within(packets / max(self._candidates, 1))
            cut = Slice(range(self._candidates), range(self._specimen, stop))
            self._specimen = stop
        else:
            stop = min(self._candidate + max(1, int(packets / one)), self._candidates)
            cut = Slice(range(self._candidate, stop), range(self._specimen, self._specimen + 1))
            self._candidate = stop
            if stop == self._candidates:
                self._candidate, self._specimen = 0, self._specimen + 1
        self.exhausted = self._specimen >= self._specimens
        return cut

    def _specimens_within(self, packets: float) -> int:
        """Where to stop for at most so many packets under one candidate; at least one specimen."""
        # A rounding error must not cost the last one.
        limit = (self._before[self._specimen] + packets) * (1 + 1e-12)
        return max(self._specimen + 1, bisect_right(self._before, limit) - 1)
