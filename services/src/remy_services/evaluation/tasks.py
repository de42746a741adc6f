"""Tasks: requests cut into parts, what they cost, and their outcomes in order again."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import accumulate

from remy_farm.v1 import evaluation_pb2

# Requests in parts: which simulations make up a task, and their outcomes in order again.


@dataclass(frozen=True)
class Task:
    """Some of a request's candidates on some of its specimens."""

    candidates: range
    specimens: range

    @property
    def simulations(self) -> int:
        """Simulations of one specimen under one candidate."""
        return len(self.candidates) * len(self.specimens)

    def request(self, whole: evaluation_pb2.EvaluationRequest) -> evaluation_pb2.EvaluationRequest:
        """The request for this part of the whole."""
        part = self.request_without_tables(whole)
        part.tables.extend(whole.tables)
        return part

    def request_without_tables(
        self, whole: evaluation_pb2.EvaluationRequest
    ) -> evaluation_pb2.EvaluationRequest:
        """The same for those who have the tables already."""
        candidates, specimens = self.candidates, self.specimens
        return evaluation_pb2.EvaluationRequest(
            candidates=whole.candidates[candidates.start : candidates.stop],
            specimens=whole.specimens[specimens.start : specimens.stop],
            duration_ms=whole.duration_ms,
            seed=whole.seed,
            recording=whole.recording,
        )


def partition(whole: evaluation_pb2.EvaluationRequest, simulations_per_task: int) -> list[Task]:
    """Tasks of at most `simulations_per_task` (>= 1) simulations that cover the request once.

    Whole candidates where they fit, since their specimens are the same; else parts of one.
    """
    candidates, specimens = len(whole.candidates), len(whole.specimens)
    if simulations_per_task >= specimens:
        together = simulations_per_task // max(specimens, 1)
        return [
            Task(range(first, min(first + together, candidates)), range(specimens))
            for first in range(0, candidates, together)
        ]
    return [
        Task(
            range(candidate, candidate + 1),
            range(first, min(first + simulations_per_task, specimens)),
        )
        for candidate in range(candidates)
        for first in range(0, specimens, simulations_per_task)
    ]


def assemble(
    whole: evaluation_pb2.EvaluationRequest,
    parts: Iterable[tuple[Task, evaluation_pb2.EvaluationOutcome]],
) -> evaluation_pb2.EvaluationOutcome:
    """The whole request's outcome from those of tasks that cover it once, in any order."""
    row = len(whole.specimens)
    missing = len(whole.candidates) * row
    placed = [evaluation_pb2.SpecimenOutcome()] * missing
    for task, part in parts:
        missing -= task.simulations
        results = part.outcomes[:]
        if len(results) != task.simulations:
            raise ValueError(
                f"a part has {len(results)} results for {task.simulations} simulations"
            )
        width = len(task.specimens)
        for number, candidate in enumerate(task.candidates):
            first = candidate * row + task.specimens.start
            placed[first : first + width] = results[number * width : (number + 1) * width]
    if missing:
        raise ValueError(f"the parts leave {missing} of the request's simulations out")
    return evaluation_pb2.EvaluationOutcome(outcomes=placed)


# What simulations cost: an estimate by job, learned from the tasks that are done.


# Before anything is known: what a link's packet costs on a machine of some years ago.
_FIRST_GUESS_SECONDS_PER_PACKET = 2e-8
# Starting a simulation costs as much as some packets.
_PACKETS_PER_SIMULATION = 1000.0
# Beyond this a request makes no sense, which is for the simulator to say.
_MOST_PACKETS = 1e15
# How much of what was known is kept at every task: the tables of a search change as it goes on.
_MEMORY = 0.9


def expected_packets(specimen: evaluation_pb2.Specimen, duration_ms: float) -> float:
    """Packets that the specimen's link can serve: what one simulation's cost is proportional to."""
    packets = specimen.link_rate_packets_per_ms * duration_ms
    return _PACKETS_PER_SIMULATION + (packets if 0 <= packets <= _MOST_PACKETS else 0.0)


class CostEstimate:
    """CPU seconds per expected packet, as one job's tasks have taken lately."""

    def __init__(self) -> None:
        self._packets = 0.0
        self._seconds = 0.0

    @property
    def known(self) -> bool:
        """Whether a task has been done."""
        return self._packets > 0.0 and self._seconds > 0.0

    @property
    def seconds_per_packet(self) -> float:
        """The estimate; positive."""
        return self._seconds / self._packets if self.known else _FIRST_GUESS_SECONDS_PER_PACKET

    def learn(self, packets: float, cpu_seconds: float) -> None:
        """A task of so many expected packets took so long."""
        self._packets = self._packets * _MEMORY + packets
        self._seconds = self._seconds * _MEMORY + cpu_seconds


# Requests cut into tasks while they are given out, so that sizes follow what is known by then.


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

    def cut(self, packets: float) -> tuple[Task, float]:
        """The next slice of about so many expected packets, and how many it has."""
        if not (self._candidates and self._specimens):
            self.exhausted = True
            return Task(range(self._candidates), range(self._specimens)), 0.0
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

    def _cut_rows(self, packets: float) -> Task:
        """Whole candidates, or some specimens of one."""
        row = self._before[-1]
        if self._specimen == 0 and packets >= row:
            rows = int(packets / row) if row > 0 else self._candidates
            stop = min(self._candidate + rows, self._candidates)
            cut = Task(range(self._candidate, stop), range(self._specimens))
            self._candidate = stop
        else:
            stop = self._specimens_within(packets)
            cut = Task(range(self._candidate, self._candidate + 1), range(self._specimen, stop))
            self._specimen = stop
            if stop == self._specimens:
                self._candidate, self._specimen = self._candidate + 1, 0
        self.exhausted = self._candidate >= self._candidates
        return cut

    def _cut_specimens(self, packets: float) -> Task:
        """Specimens under all candidates, or one under some of them."""
        one = self._weight(range(self._specimen, self._specimen + 1))
        if self._candidate == 0 and packets >= one * self._candidates:
            stop = self._specimens_within(packets / max(self._candidates, 1))
            cut = Task(range(self._candidates), range(self._specimen, stop))
            self._specimen = stop
        else:
            stop = min(self._candidate + max(1, int(packets / one)), self._candidates)
            cut = Task(range(self._candidate, stop), range(self._specimen, self._specimen + 1))
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
