"""Estimates the cost of simulations, and cuts requests into slices of a given cost."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from remy_proto.v1 import evaluation_pb2
from remy_simulator.columns import Slice

# Initial estimate of the CPU time per packet, before the first task is done.
_INITIAL_SECONDS_PER_PACKET = 2e-8
# Cost of starting a simulation, in packets.
_PACKETS_PER_SIMULATION = 1000.0
# Larger requests count as 0 packets here; the simulator refuses them.
_MAXIMUM_PACKETS = 1e15
# Factor by which earlier measurements are discounted at each task, because a search changes its
# tables.
_DECAY = 0.9
# A remainder shorter than this fraction of a slice becomes part of the slice.
_REMAINDER = 0.5
# Number of sizes of specimens, which are powers of two up to _MAXIMUM_PACKETS.
_SIZES = 52

_Numbers = NDArray[np.float64]


class CostModel:
    """Estimates the cost of a job's simulations from its recent tasks.

    Specimens are grouped by size: the power of two of the packets that a fully used link of the
    specimen's rate would carry. The model learns the mean number of packets that a simulation of
    each size really sends, and the CPU time per packet.
    """

    def __init__(self) -> None:
        self._packets = 0.0
        self._seconds = 0.0
        # Discounted number of simulations and of sent packets, by size.
        self._simulations = np.zeros(_SIZES)
        self._sent = np.zeros(_SIZES)

    @property
    def has_data(self) -> bool:
        """Whether a task has been measured."""
        return self._packets > 0.0 and self._seconds > 0.0

    @property
    def seconds_per_packet(self) -> float:
        """Estimated CPU seconds per expected packet; positive."""
        return self._seconds / self._packets if self.has_data else _INITIAL_SECONDS_PER_PACKET

    def expected_packets(self, nominal: _Numbers) -> _Numbers:
        """Estimates the cost of a simulation in packets, per specimen.

        `nominal` holds the specimens' `nominal_packets`.
        """
        sizes = _sizes(nominal)
        measured = self._simulations > 0
        if not measured.any():
            return _PACKETS_PER_SIMULATION + nominal
        mean = np.divide(self._sent, self._simulations, where=measured, out=np.zeros(_SIZES))
        # Sizes without measurements are assumed to use the same fraction of their links as others.
        utilization = mean[measured].sum() / np.exp2(np.flatnonzero(measured)).sum()
        packets = np.where(measured[sizes], mean[sizes], nominal * utilization)
        return np.asarray(_PACKETS_PER_SIMULATION + packets)

    def learn(
        self,
        nominal: _Numbers,
        packets_sent: Sequence[int],
        expected_packets: float,
        cpu_seconds: float,
    ) -> None:
        """Adds the measurement of a slice.

        `nominal` holds the `nominal_packets` of its specimens, `packets_sent` the packets sent in
        its simulations, and `expected_packets` is their total that was expected.
        """
        self._packets = self._packets * _DECAY + expected_packets
        self._seconds = self._seconds * _DECAY + cpu_seconds
        if not packets_sent:
            return
        sizes = _sizes(nominal)
        sent = np.array(packets_sent, np.float64).reshape(-1, len(nominal)).mean(0)
        self._simulations *= _DECAY
        self._sent *= _DECAY
        np.add.at(self._simulations, sizes, 1.0)
        np.add.at(self._sent, sizes, sent)


def nominal_packets(request: evaluation_pb2.EvaluationRequest) -> _Numbers:
    """The packets that the link of each specimen carries if it is always busy.

    The request must be packed. Specimens beyond the simulator's limits count as 0 packets.
    """
    rates = np.frombuffer(request.specimen_columns.link_rates_packets_per_ms, np.float64)
    with np.errstate(all="ignore"):
        packets = rates * request.duration_ms
        return np.where((packets >= 0) & (packets <= _MAXIMUM_PACKETS), packets, 0.0)


def _sizes(packets: _Numbers) -> NDArray[np.intp]:
    return np.clip(np.frexp(packets)[1], 0, _SIZES - 1).astype(np.intp)


class Slicer:
    """Cuts a request, on demand and in order, into slices that cover it once.

    It cuts along the longer of candidates and specimens, and keeps the shorter side whole if it
    fits. If a search has two candidates and many specimens, each specimen is therefore in only one
    slice.
    """

    def __init__(self, candidates: int, expected_packets: _Numbers) -> None:
        """Starts at the beginning of the request.

        `expected_packets` is the cost of a simulation per specimen; see CostModel.
        """
        self._candidates = candidates
        self._specimens = len(expected_packets)
        # Expected packets of the first n specimens under one candidate.
        self._cumulative = np.concatenate(([0.0], np.cumsum(expected_packets)))
        self._cuts_specimens = self._specimens > self._candidates
        # The next simulation to be cut.
        self._candidate = 0
        self._specimen = 0
        #: Expected packets of the part that is not cut yet.
        self.packets = float(self._cumulative[-1]) * self._candidates
        #: Whether the whole request is cut. An empty request is one slice, because the simulator
        #: has to report what is wrong with it.
        self.exhausted = False

    def cut(self, packets: float) -> tuple[Slice, float]:
        """Cuts the next slice of about `packets` expected packets.

        Returns the slice and its expected packets.
        """
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
        return float(self._cumulative[specimens.stop] - self._cumulative[specimens.start])

    def _cut_rows(self, packets: float) -> Slice:
        """Cuts whole candidates, or some specimens of one candidate."""
        row = float(self._cumulative[-1])
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
        """Cuts specimens under all candidates, or one specimen under some candidates."""
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
        """The index after the last specimen that fits into `packets` under one candidate."""
        # The tolerance keeps a rounding error from excluding the last specimen.
        limit = (self._cumulative[self._specimen] + packets) * (1 + 1e-12)
        return max(self._specimen + 1, int(np.searchsorted(self._cumulative, limit, "right")) - 1)
