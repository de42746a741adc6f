"""An evaluator with an analytic score in place of the simulator: designer tests take milliseconds.

Every specimen has a few memory points. The score falls with the distance of each point's action
from the point's best action, which changes smoothly over memory space, so that splitting a rule
helps. Each specimen also adds a term that is the same for all candidates. `noise` adds a term that
is different for each candidate, to test that a search rejects spurious gains.
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
from remy_simulator.messages import AXES, BASIC_AXES, axis_of, native_action, to_native
from remy_simulator.objective import specimen_score

_POINTS = 12
_LOOKUPS_PER_POINT = 100
_PACKETS = 1e6
_BUCKETS = 1538

MemoryPoint = tuple[float, ...]


class AnalyticEvaluator:
    """An evaluator without a simulator. Records its requests and caches the outcomes."""

    def __init__(self, *, noise: float = 0.0) -> None:
        self.noise = noise
        self.requests: list[evaluation_pb2.EvaluationRequest] = []
        self._known: dict[tuple[float, bytes], evaluation_pb2.EvaluationOutcome] = {}

    def evaluate(
        self, request: evaluation_pb2.EvaluationRequest
    ) -> evaluation_pb2.EvaluationOutcome:
        """Returns the outcome, which depends on the request and `noise` only."""
        self.requests.append(request)
        key = (self.noise, request.SerializeToString(deterministic=True))
        if key not in self._known:
            self._known[key] = self._evaluate(request)
        return self._known[key]

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
                key = [_bits(component) for component in actions[rule]]
                draw = remy_simulator.normal(request.seed, specimen.key, *key)
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
    """Returns the best action at a memory point, which depends on send_ewma only."""
    weight = 1 / (1 + point[0] / 100)
    return (0.5 + 0.4 * weight, 10 - 8 * weight, 1.5 - weight)


def memory_points(specimen: evaluation_pb2.Specimen) -> list[MemoryPoint]:
    """Returns a specimen's memory points; the first is the initial memory, all zeros."""
    return [(0.0,) * BASIC_AXES] + [
        tuple(
            1000 * remy_simulator.uniform(specimen.key, number, axis) ** 2
            for axis in range(BASIC_AXES)
        )
        for number in range(1, _POINTS)
    ]


def _loss(action: Action, point: MemoryPoint) -> float:
    best = best_action(point)
    scales = (0.2, 5.0, 1.0)
    return sum(
        ((actual - ideal) / scale) * ((actual - ideal) / scale)
        for actual, ideal, scale in zip(action, best, scales, strict=True)
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
    """Adds the recording that the request asks for.

    Candidates differ in their actions only, so their look-ups are the same.
    """
    if request.recording == evaluation_pb2.RECORDING_USED:
        for each in lookups:
            mask = sum(1 << rule for rule in {rule for _, rule in each})
            outcome.used_rules += mask.to_bytes((rules + 7) // 8, "little")
    elif request.recording:
        counts = Counter(rule for each in lookups for _, rule in each)
        times = _LOOKUPS_PER_POINT * len(request.candidates)
        outcome.rule_uses.extend(times * counts[rule] for rule in range(rules))
    # All specimens have the same number of look-ups, so shares of look-ups are uses.
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
    """Encodes counts of memory values by (rule, axis, bucket) as an outcome holds them.

    The extended axes follow the basic axes of all `rules`.
    """

    def index_of(rule: int, axis: int, bucket: int) -> int:
        row = rule * BASIC_AXES + axis
        if axis >= BASIC_AXES:
            row = rules * BASIC_AXES + rule * (AXES - BASIC_AXES) + axis - BASIC_AXES
        return row * _BUCKETS + bucket

    columns = evaluation_pb2.MemoryColumns()
    previous = 0
    for index, count in sorted((index_of(*key), count) for key, count in counts.items()):
        columns.places.append(index - previous)
        columns.counts.append(count)
        previous = index
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
    """Returns the first histogram bucket whose median is at least `value`."""
    return min(bisect_left(_bucket_medians(axis), value), _BUCKETS - 1)


@cache
def _bucket_medians(axis: int) -> list[float]:
    return [remy_simulator.summary_median(axis, [bucket], [1]) for bucket in range(_BUCKETS)]


def _bits(value: float) -> int:
    (bits,) = struct.unpack("<Q", struct.pack("<d", value))
    return int(bits)
