"""A world simple enough to know: designers can be tested in milliseconds.

Every specimen comes with a handful of memory points. At each of them an action is the better the
nearer it lies to the best one for that point, which changes smoothly over memory space, so that
splitting a rule pays. What a specimen adds to the score is the same for all candidates; noise that
is not can be switched on, to tempt the search into gains that are none.
"""

from __future__ import annotations

import struct
from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cache
from itertools import chain
from math import nan

import remy_simulator
from library.tests.designer.perturbed_actions import Action, perturbed_actions
from remy_proto.v1 import evaluation_pb2
from remy_simulator import RuleTable
from remy_simulator.columns import unpack_specimens
from remy_simulator.messages import AXES, USUAL_AXES, axis_of, native_action, to_native
from remy_simulator.objective import specimen_score

_POINTS = 12
_LOOKUPS_PER_POINT = 100
_PACKETS = 1e6
_BUCKETS = 1538

MemoryPoint = tuple[float, ...]


class AnalyticEvaluator:
    """An evaluator without a simulator. Remembers all that it was asked for, and its answers."""

    def __init__(self, *, noise: float = 0.0) -> None:
        self.noise = noise
        self.requests: list[evaluation_pb2.EvaluationRequest] = []
        self._known: dict[tuple[float, bytes], evaluation_pb2.EvaluationOutcome] = {}

    def evaluate(
        self, request: evaluation_pb2.EvaluationRequest
    ) -> evaluation_pb2.EvaluationOutcome:
        """The outcome of the request: candidate-major, a pure function."""
        self.requests.append(request)
        name = (self.noise, request.SerializeToString(deterministic=True))
        if name not in self._known:
            self._known[name] = self._evaluate(request)
        return self._known[name]

    def _evaluate(
        self, request: evaluation_pb2.EvaluationRequest
    ) -> evaluation_pb2.EvaluationOutcome:
        table = to_native(request.tables[0])
        specimens = unpack_specimens(request.specimen_columns)
        lookups = [_lookups(table, specimen) for specimen in specimens]
        results = [
            self._result(request, specimen, rules, _actions(table, request, candidate, specimen))
            for candidate in request.candidates
            for specimen, rules in zip(specimens, lookups, strict=True)
        ]
        outcome = evaluation_pb2.EvaluationOutcome(
            packets_sent=[sum(result.packets_sent) for result in results]
        )
        if request.HasField("objective"):
            scores = [
                specimen_score(request.objective, specimen, result, request.duration_ms)
                for specimen, result in zip(
                    specimens * len(request.candidates), results, strict=True
                )
            ]
            outcome.scores = _doubles(nan if score is None else score for score in scores)
        else:
            outcome.senders.CopyFrom(_senders(results))
        _record(request, outcome, lookups, table.rule_count)
        return outcome

    def _result(
        self,
        request: evaluation_pb2.EvaluationRequest,
        specimen: evaluation_pb2.Specimen,
        lookups: list[tuple[MemoryPoint, int]],
        actions: list[Action],
    ) -> evaluation_pb2.SpecimenOutcome:
        senders = sum(group.count for group in specimen.senders)
        utility = remy_simulator.normal(specimen.key, _POINTS)
        for point, rule in lookups:
            utility -= _loss(actions[rule], point) / _POINTS
            if self.noise:
                name = [_bits(component) for component in actions[rule]]
                draw = remy_simulator.normal(request.seed, specimen.key, *name)
                utility += self.noise * draw / _POINTS
        packets = int(_PACKETS * remy_simulator.exp(utility))
        return evaluation_pb2.SpecimenOutcome(
            packets_received=[packets] * senders,
            packets_sent=[packets + 1] * senders,
            packets_lost=[1] * senders,
            on_ms=[request.duration_ms] * senders,
            share_ms=[request.duration_ms / senders] * senders,
            delay_sum_ms=[packets * specimen.rtt_ms] * senders,
            first_on_ms=[0.0] * senders,
        )


def best_action(point: MemoryPoint) -> Action:
    """The best action at a memory point."""
    nearness = 1 / (1 + point[0] / 100)
    return (0.5 + 0.4 * nearness, 10 - 8 * nearness, 1.5 - nearness)


def memory_points(specimen: evaluation_pb2.Specimen) -> list[MemoryPoint]:
    """The memory values that trigger rules on a specimen; the first is a fresh memory's."""
    return [(0.0,) * USUAL_AXES] + [
        tuple(
            1000 * remy_simulator.uniform(specimen.key, number, axis) ** 2
            for axis in range(USUAL_AXES)
        )
        for number in range(1, _POINTS)
    ]


def _loss(action: Action, point: MemoryPoint) -> float:
    best = best_action(point)
    scales = (0.2, 5.0, 1.0)
    return sum(
        ((present - wanted) / scale) * ((present - wanted) / scale)
        for present, wanted, scale in zip(action, best, scales, strict=True)
    )


def _lookups(table: RuleTable, specimen: evaluation_pb2.Specimen) -> list[tuple[MemoryPoint, int]]:
    return [(point, table.find(point)) for point in memory_points(specimen)]


def _actions(
    table: RuleTable,
    request: evaluation_pb2.EvaluationRequest,
    candidate: evaluation_pb2.Candidate,
    specimen: evaluation_pb2.Specimen,
) -> list[Action]:
    if candidate.HasField("perturbation"):
        return perturbed_actions(
            table, request.seed, request.bounds, candidate.perturbation, specimen.key
        )
    actions: list[Action] = [table.action(rule) for rule in range(table.rule_count)]
    for change in candidate.actions.changes:
        actions[change.rule] = native_action(change.action)
    return actions


def _record(
    request: evaluation_pb2.EvaluationRequest,
    outcome: evaluation_pb2.EvaluationOutcome,
    lookups: list[list[tuple[MemoryPoint, int]]],
    rules: int,
) -> None:
    """What the request asks for of rules; candidates differ in their actions alone."""
    if request.recording == evaluation_pb2.RECORDING_USED:
        for each in lookups:
            mask = sum(1 << rule for rule in {rule for _, rule in each})
            outcome.used_rules += mask.to_bytes((rules + 7) // 8, "little")
    elif request.recording:
        counts = Counter(rule for each in lookups for _, rule in each)
        times = _LOOKUPS_PER_POINT * len(request.candidates)
        outcome.rule_uses.extend(times * counts[rule] for rule in range(rules))
    # Every specimen has as many look-ups: shares are uses.
    if request.recording in (evaluation_pb2.RECORDING_MEMORY, evaluation_pb2.RECORDING_SHARES):
        axes = [axis_of(signal) for signal in request.tables[0].signals]
        outcome.memory.CopyFrom(
            memory_columns(
                Counter(
                    (rule, axis, bucket_of(axis, point[axis]))
                    for each in lookups
                    for point, rule in each
                    for axis in axes
                    for _ in range(_LOOKUPS_PER_POINT)
                )
            )
        )


def memory_columns(
    counts: Mapping[tuple[int, int, int], int], rules: int = 0
) -> evaluation_pb2.MemoryColumns:
    """Counts of memory values by (rule, axis, bucket) as an outcome has them.

    Axes beyond the usual ones come behind those of all `rules`.
    """

    def place_of(rule: int, axis: int, bucket: int) -> int:
        row = rule * USUAL_AXES + axis
        if axis >= USUAL_AXES:
            row = rules * USUAL_AXES + rule * (AXES - USUAL_AXES) + axis - USUAL_AXES
        return row * _BUCKETS + bucket

    columns = evaluation_pb2.MemoryColumns()
    before = 0
    for place, count in sorted((place_of(*key), count) for key, count in counts.items()):
        columns.places.append(place - before)
        columns.counts.append(count)
        before = place
    return columns


def _senders(results: list[evaluation_pb2.SpecimenOutcome]) -> evaluation_pb2.SenderColumns:
    return evaluation_pb2.SenderColumns(
        packets_received=chain.from_iterable(result.packets_received for result in results),
        packets_sent=chain.from_iterable(result.packets_sent for result in results),
        packets_lost=chain.from_iterable(result.packets_lost for result in results),
        on_ms=_doubles(chain.from_iterable(result.on_ms for result in results)),
        share_ms=_doubles(chain.from_iterable(result.share_ms for result in results)),
        delay_sum_ms=_doubles(chain.from_iterable(result.delay_sum_ms for result in results)),
        first_on_ms=_doubles(chain.from_iterable(result.first_on_ms for result in results)),
    )


def _doubles(values: Iterable[float]) -> bytes:
    return array("d", values).tobytes()


def bucket_of(axis: int, value: float) -> int:
    """A bucket of the simulator's scale near a memory value."""
    return min(bisect_left(_scale(axis), value), _BUCKETS - 1)


@cache
def _scale(axis: int) -> list[float]:
    return [remy_simulator.summary_median(axis, [bucket], [1]) for bucket in range(_BUCKETS)]


def _bits(value: float) -> int:
    (bits,) = struct.unpack("<Q", struct.pack("<d", value))
    return int(bits)
