"""Tasks: what simulations are expected to cost, and requests cut into slices of a wanted cost."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from remy_proto.v1 import evaluation_pb2
from remy_simulator.columns import Slice

# Before anything is known: what a packet costs on a machine of some years ago.
_FIRST_GUESS_SECONDS_PER_PACKET = 2e-8
# Starting a simulation costs as much as some packets.
_PACKETS_PER_SIMULATION = 1000.0
# Beyond this a request makes no sense, which is for the simulator to say.
_MOST_PACKETS = 1e15
# How much of what was known is kept at every task: the tables of a search change as it goes on.
_MEMORY = 0.9
# A remainder shorter than this share of a slice goes with it.
_REMAINDER = 0.5
# Sizes are told apart by powers of two, up to _MOST_PACKETS.
_SIZES = 52

_Numbers = NDArray[np.float64]


class CostModel:
    """What simulations of one job cost, as its tasks have taken lately.

    Specimens are of a size each: the power of two of the packets that a link of the stated rate
    would carry, whatever carries them. How many packets a simulation of a size really takes is
    learned, and so is what a packet costs.
    """

    def __init__(self) -> None:
        self._packets = 0.0
        self._seconds = 0.0
        # By size: simulations, and their packets.
        self._simulations = np.zeros(_SIZES)
        self._sent = np.zeros(_SIZES)

    @property
    def known(self) -> bool:
        """Whether a task has been done."""
        return self._packets > 0.0 and self._seconds > 0.0

    @property
    def seconds_per_packet(self) -> float:
        """CPU seconds of an expected packet; positive."""
        return self._seconds / self._packets if self.known else _FIRST_GUESS_SECONDS_PER_PACKET

    def expected_packets(self, stated: _Numbers) -> _Numbers:
        """By specimen: the packets that one simulation costs (`stated_packets`: of the same)."""
        sizes = _sizes(stated)
        known = self._simulations > 0
        if not known.any():
            return _PACKETS_PER_SIMULATION + stated
        mean = np.divide(self._sent, self._simulations, where=known, out=np.zeros(_SIZES))
        # Sizes that were never seen take the share of their links that the others take.
        share = mean[known].sum() / np.exp2(np.flatnonzero(known)).sum()
        packets = np.where(known[sizes], mean[sizes], stated * share)
        return np.asarray(_PACKETS_PER_SIMULATION + packets)

    def learn(
        self,
        stated: _Numbers,
        packets_sent: Sequence[int],
        expected_packets: float,
        cpu_seconds: float,
    ) -> None:
        """A slice that was expected to take so many packets took so long.

        `stated` is of its specimens (`stated_packets`), `packets_sent` of its simulations.
        """
        self._packets = self._packets * _MEMORY + expected_packets
        self._seconds = self._seconds * _MEMORY + cpu_seconds
        if not packets_sent:
            return
        sizes = _sizes(stated)
        sent = np.array(packets_sent, np.float64).reshape(-1, len(stated)).mean(0)
        self._simulations *= _MEMORY
        self._sent *= _MEMORY
        np.add.at(self._simulations, sizes, 1.0)
        np.add.at(self._sent, sizes, sent)


def stated_packets(request: evaluation_pb2.EvaluationRequest) -> _Numbers:
    """By specimen of a packed request: what its link carries if there is always something to."""
    rates = np.frombuffer(request.specimen_columns.link_rates_packets_per_ms, np.float64)
    with np.errstate(all="ignore"):
        packets = rates * request.duration_ms
        return np.where((packets >= 0) & (packets <= _MOST_PACKETS), packets, 0.0)


def _sizes(packets: _Numbers) -> NDArray[np.intp]:
    return np.clip(np.frexp(packets)[1], 0, _SIZES - 1).astype(np.intp)


class Slicer:
    """Cuts a request into slices that cover it once, in order, while they are given out.

    The longer side of candidates x specimens is cut; the shorter stays whole where it fits. A slice
    of a search with two candidates and many specimens thus names each specimen once.
    """

    def __init__(self, candidates: int, expected_packets: _Numbers) -> None:
        """`expected_packets`: of one simulation, by specimen (`CostModel.expected_packets`)."""
        self._candidates = candidates
        self._specimens = len(expected_packets)
        #: Expected packets of the first n specimens under one candidate.
        self._before = np.concatenate(([0.0], np.cumsum(expected_packets)))
        self._cuts_specimens = self._specimens > self._candidates
        # The first simulation that is not cut off yet.
        self._candidate = 0
        self._specimen = 0
        #: Expected packets of what is not cut off yet.
        self.packets = float(self._before[-1]) * self._candidates
        # A request without simulations is a slice too: the simulator says what is wrong with it.
        self.exhausted = False

    def cut(self, packets: float) -> tuple[Slice, float]:
        """The next slice of about so many expected packets, and how many it has."""
        if not (self._candidates and self._specimens):
            self.exhausted = True
            return Slice(range(self._candidates), range(self._specimens)), 0.0
        across = self._candidate if self._cuts_specimens else self._specimen
        if packets >= self.packets * (1 - _REMAINDER) and across == 0:
            packets = self.packets
        cut = self._cut_specimens(packets) if self._cuts_specimens else self._cut_rows(packets)
        weight = self._weight(cut.specimens) * len(cut.candidates)
        self.packets = 0.0 if self.exhausted else self.packets - weight
        return cut, weight

    def _weight(self, specimens: range) -> float:
        return float(self._before[specimens.stop] - self._before[specimens.start])

    def _cut_rows(self, packets: float) -> Slice:
        """Whole candidates, or some specimens of one."""
        row = float(self._before[-1])
        if self._specimen == 0 and packets >= row:
            stop = min(self._candidate + int(packets / row), self._candidates)
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
            stop = self._specimens_within(packets / self._candidates)
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
        return max(self._specimen + 1, int(np.searchsorted(self._before, limit, "right")) - 1)
