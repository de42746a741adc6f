"""Between the wire's messages and the native simulator's types."""

from collections.abc import Iterable
from typing import Final

from remy_farm.v1 import evaluation_pb2, rule_table_pb2, spec_pb2
from remy_simulator import _native

ActionTuple = tuple[float, float, float]

_SIGNALS: Final = (
    rule_table_pb2.SIGNAL_SEND_EWMA,
    rule_table_pb2.SIGNAL_REC_EWMA,
    rule_table_pb2.SIGNAL_RTT_RATIO,
    rule_table_pb2.SIGNAL_SLOW_REC_EWMA,
)


def axis_of(signal: int) -> int:
    """The native axis (from 0) of a Signal (from 1; 0 is unspecified)."""
    return signal - 1


def signal_of(axis: int) -> rule_table_pb2.Signal:
    """The inverse of axis_of."""
    return _SIGNALS[axis]


def action_tuple(action: rule_table_pb2.Action) -> ActionTuple:
    """(window multiple, window increment, intersend in ms)."""
    return (action.window_multiple, action.window_increment, action.intersend_ms)


def action_message(action: ActionTuple) -> rule_table_pb2.Action:
    """The inverse of action_tuple."""
    multiple, increment, intersend_ms = action
    return rule_table_pb2.Action(
        window_multiple=multiple, window_increment=increment, intersend_ms=intersend_ms
    )


def to_native(table: rule_table_pb2.RuleTable) -> _native.RuleTable:
    """A RuleTable message as a native table. Raises InvalidTable."""
    return _native.RuleTable.from_message(table.SerializeToString())


def from_native(table: _native.RuleTable) -> rule_table_pb2.RuleTable:
    """The inverse of to_native."""
    return rule_table_pb2.RuleTable.FromString(table.to_message())


def native_traffic(traffic: evaluation_pb2.Traffic) -> _native.Traffic:
    """A Traffic message as the native type."""
    on: _native.ExponentialTime | _native.ExponentialBytes | _native.ParetoBytes
    match traffic.WhichOneof("on"):
        case "exponential_time":
            on = _native.ExponentialTime(traffic.exponential_time.mean_ms)
        case "exponential_bytes":
            on = _native.ExponentialBytes(traffic.exponential_bytes.mean_bytes)
        case "pareto_bytes":
            pareto = traffic.pareto_bytes
            on = _native.ParetoBytes(
                pareto.scale_bytes,
                pareto.shape,
                pareto.shift_bytes,
                pareto.extra_bytes,
                pareto.maximum_bytes,
            )
        case _:
            raise ValueError("traffic.on is missing; it must be by time or by bytes")
    return _native.Traffic(on, traffic.mean_off_ms)


def native_measurement(measurement: evaluation_pb2.Measurement) -> _native.MeasurementNoise:
    """A Measurement message as the native type; an empty one means exact clocks."""
    jitter: _native.ExponentialJitter | _native.UniformJitter
    if measurement.HasField("uniform_jitter_maximum_ms"):
        jitter = _native.UniformJitter(measurement.uniform_jitter_maximum_ms)
    else:
        jitter = _native.ExponentialJitter(measurement.exponential_jitter_mean_ms)
    return _native.MeasurementNoise(jitter, measurement.timestamp_resolution_ms)


def native_specimen(specimen: evaluation_pb2.Specimen) -> _native.Specimen:
    """A Specimen message as the native type."""
    return _native.Specimen(
        specimen.key,
        specimen.link_rate_packets_per_ms,
        specimen.rtt_ms,
        specimen.buffer_packets if specimen.HasField("buffer_packets") else None,
        specimen.loss_probability,
        native_measurement(specimen.measurement),
        [
            _native.SenderGroup(group.count, group.table, native_traffic(group.traffic))
            for group in specimen.senders
        ],
    )


def native_bounds(bounds: evaluation_pb2.ActionBounds) -> _native.ActionBounds:
    """An ActionBounds message as the native type."""
    return _native.ActionBounds(
        bounds.window_multiple_minimum,
        bounds.window_multiple_maximum,
        bounds.window_increment_minimum,
        bounds.window_increment_maximum,
        bounds.intersend_minimum_ms,
        bounds.intersend_maximum_ms,
    )


def native_candidate(
    candidate: evaluation_pb2.Candidate,
) -> _native.Unchanged | _native.ActionChanges | _native.Perturbation:
    """A Candidate message as the native type."""
    match candidate.WhichOneof("change"):
        case "actions":
            return _native.ActionChanges(
                [(change.rule, action_tuple(change.action)) for change in candidate.actions.changes]
            )
        case "perturbation":
            perturbation = candidate.perturbation
            return _native.Perturbation(
                perturbation.seed, perturbation.scale, native_bounds(perturbation.bounds)
            )
        case _:
            return _native.Unchanged()


def outcome_message(outcome: _native.SpecimenOutcome) -> evaluation_pb2.SpecimenOutcome:
    """A native outcome as a message."""
    senders = outcome.senders
    message = evaluation_pb2.SpecimenOutcome(
        packets_received=[sender.packets_received for sender in senders],
        packets_sent=[sender.packets_sent for sender in senders],
        packets_lost=[sender.packets_lost for sender in senders],
        on_ms=[sender.on_ms for sender in senders],
        share_ms=[sender.share_ms for sender in senders],
        delay_sum_ms=[sender.delay_sum_ms for sender in senders],
        first_on_ms=[sender.first_on_ms for sender in senders],
        rule_uses=outcome.rule_uses,
    )
    for memory in outcome.rule_memory:
        rule = message.rule_memory.add(rule=memory.rule)
        for summary in memory.signals:
            rule.signals.add(
                signal=signal_of(summary.axis), buckets=summary.buckets, counts=summary.counts
            )
    return message


def native_outcome(outcome: evaluation_pb2.SpecimenOutcome) -> _native.SpecimenOutcome:
    """The senders' results of an outcome message as the native type."""
    rows: Iterable[tuple[int, int, int, float, float, float, float]] = zip(
        outcome.packets_received,
        outcome.packets_sent,
        outcome.packets_lost,
        outcome.on_ms,
        outcome.share_ms,
        outcome.delay_sum_ms,
        outcome.first_on_ms,
        strict=True,
    )
    return _native.SpecimenOutcome([_native.SenderResults(*row) for row in rows])


def native_objective(objective: spec_pb2.Objective) -> _native.Objective:
    """An Objective message (defaults filled) as the native type."""
    measure = (
        _native.ThroughputMeasure.ON_TIME
        if objective.throughput == spec_pb2.THROUGHPUT_MEASURE_ON_TIME
        else _native.ThroughputMeasure.EQUAL_SHARE
    )
    return _native.Objective(
        objective.alpha, objective.beta, objective.delta, measure, objective.minimum_on_ms
    )
