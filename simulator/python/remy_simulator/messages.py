"""Between the wire's messages and the native simulator's types."""

import itertools
from typing import Final, Literal, cast

from remy_proto.v1 import evaluation_pb2, rule_table_pb2, spec_pb2
from remy_simulator import _native, signals
from remy_simulator.traces import Traces

_USUAL_PACKET_BYTES: Final = 1500.0

ActionTuple = tuple[float, float, float]
#: A sender's results, in the order of SpecimenOutcome's fields.
SenderRow = tuple[int, int, int, float, float, float, float]
#: What a TransportColumns message says of a sender: six counts, and its flows (packets, ms).
TransportRow = tuple[tuple[int, ...], list[tuple[int, float]]]


def _signals(*, is_scale_free: bool) -> tuple[rule_table_pb2.Signal, ...]:
    numbers = (axis.form(is_scale_free).number for axis in signals.AXES)
    return tuple(cast(rule_table_pb2.Signal, number) for number in numbers)


# By axis. Scale-free rules look at the same axes as ratios, and at age in place of rec_ewma itself.
_ABSOLUTE_SIGNALS: Final = _signals(is_scale_free=False)
_SCALE_FREE_SIGNALS: Final = _signals(is_scale_free=True)
#: What senders that remember the last on period know before the first ACK of the next.
_REMEMBERED: Final = (rule_table_pb2.SIGNAL_AGE, rule_table_pb2.SIGNAL_SLOW_REC_RATIO)
#: How many axes there are, and how many of the first every sender's memory has.
AXES: Final = len(_ABSOLUTE_SIGNALS)
USUAL_AXES: Final = _native.USUAL_AXES
_AXES: Final[dict[int, int]] = {
    signal: axis
    for own in (_SCALE_FREE_SIGNALS, _ABSOLUTE_SIGNALS)
    for axis, signal in enumerate(own)
}


def axis_of(signal: int) -> int:
    """The native axis (from 0) of a Signal; no axis of one that does not exist."""
    return _AXES.get(signal, signal - 1)


def is_scale_free(rules: int) -> bool:
    """Whether such rules speak in the sender's own measured scale."""
    return rules not in (rule_table_pb2.RULES_UNSPECIFIED, rule_table_pb2.RULES_ABSOLUTE)


def signal_of(axis: int, rules: int = rule_table_pb2.RULES_ABSOLUTE) -> rule_table_pb2.Signal:
    """The inverse of axis_of, for tables of such rules."""
    return (_SCALE_FREE_SIGNALS if is_scale_free(rules) else _ABSOLUTE_SIGNALS)[axis]


def form_of(axis: int, rules: int) -> signals.SignalForm:
    """The signal of a native axis as such rules look at it."""
    return signals.AXES[axis].form(is_scale_free(rules))


def sure_signals(rules: int) -> list[int]:
    """The Signals of such rules that are 0 for senders that know nothing yet and for no other."""
    if rules == rule_table_pb2.RULES_SCALE_FREE_REMEMBERING:
        return list(_REMEMBERED)
    return [signal_of(axis, rules) for axis in range(AXES) if not form_of(axis, rules).may_stay_0]


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
    on: (
        _native.ExponentialTime
        | _native.ExponentialBytes
        | _native.ParetoBytes
        | _native.EmpiricalBytes
        | _native.ConstantBytes
        | _native.Always
        | _native.Intervals
    )
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
        case "empirical_bytes":
            empirical = traffic.empirical_bytes
            on = _native.empirical_bytes(
                empirical.name,
                empirical.probabilities[:],
                empirical.bytes[:],
                empirical.extra_bytes,
            )
        case "constant_bytes":
            on = _native.ConstantBytes(traffic.constant_bytes.bytes)
        case "always":
            on = _native.Always()
        case "intervals":
            on = _native.intervals(traffic.intervals.begin_ms[:], traffic.intervals.end_ms[:])
        case _:
            raise ValueError("traffic.on is missing; it must be by time or by bytes")
    arrivals: _native.PoissonArrivals | _native.PeriodicArrivals | _native.Barrier | None = None
    match traffic.WhichOneof("arrivals"):
        case "poisson":
            arrivals = _native.PoissonArrivals(traffic.poisson.mean_interval_ms)
        case "periodic":
            arrivals = _native.PeriodicArrivals(traffic.periodic.interval_ms)
        case "barrier":
            arrivals = _native.Barrier(traffic.barrier.pause_ms)
    factor = traffic.first_off_factor if traffic.HasField("first_off_factor") else 1.0
    return _native.Traffic(on, traffic.mean_off_ms, arrivals, factor)


def native_choice(choice: evaluation_pb2.Choice) -> _native.Choice:
    """A Choice message as the native type."""
    parameters = [(parameter.name, parameter.value) for parameter in choice.parameters]
    return _native.Choice(choice.name, choice.variant, parameters)


def native_senders(group: evaluation_pb2.SenderGroup) -> _native.SenderGroup:
    """A SenderGroup message as the native type."""
    native = _native.SenderGroup(
        group.count,
        group.table,
        native_traffic(group.traffic),
        native_choice(group.protocol) if group.HasField("protocol") else None,
        native_choice(group.body) if group.HasField("body") else None,
        group.first_on_ms if group.HasField("first_on_ms") else None,
    )
    if group.HasField("route"):
        native.route = native_route(group.route)
    if group.HasField("weight"):
        native.weight = group.weight
    if group.HasField("objective"):
        native.objective = native_objective(group.objective)
    if group.HasField("rtt_offset_ms"):
        native.rtt_offset_ms = group.rtt_offset_ms
    return native


def native_route(route: evaluation_pb2.Route) -> _native.Route:
    """A Route message as the native type."""
    return _native.Route(
        route.links[:], route.return_links[:], route.delay_ms, route.return_delay_ms
    )


def native_link(link: evaluation_pb2.Link, traces: Traces) -> _native.Link:
    """A Link message as the native type. Raises ValueError."""
    native = _native.Link(
        link.rate_packets_per_ms,
        link.delay_ms,
        link.buffer_packets if link.HasField("buffer_packets") else None,
        native_choice(link.queue) if link.HasField("queue") else None,
        link.loss_probability,
    )
    native.trace = traces.driver(link)
    if link.HasField("gilbert_elliott"):
        loss = link.gilbert_elliott
        native.gilbert_elliott = _native.GilbertElliottLoss(
            loss.good_to_bad, loss.bad_to_good, loss.loss_in_good, loss.loss_in_bad
        )
    match link.WhichOneof("changes"):
        case "schedule":
            steps = [
                _native.LinkStep(
                    step.at_ms,
                    _optional(step, "rate_packets_per_ms"),
                    _optional(step, "delay_ms"),
                    _optional(step, "loss_probability"),
                )
                for step in link.schedule.steps
            ]
            native.changes = _native.LinkSchedule(steps, link.schedule.repeat_after_ms or None)
        case "walk":
            walk = link.walk
            rate, delay, loss_range = (
                _native.LinkRange(getattr(walk, name).least, getattr(walk, name).most)
                if walk.HasField(name)
                else None
                for name in ("rate_packets_per_ms", "delay_ms", "loss_probability")
            )
            native.changes = _native.LinkWalk(walk.every_ms, rate, delay, loss_range, walk.step)
    if link.HasField("policer"):
        native.policer = _native.Policer(
            link.policer.rate_packets_per_ms, link.policer.burst_packets
        )
    if link.HasField("jitter_box"):
        native.jitter_box = _native_jitter_box(link.jitter_box)
    return native


def _optional(
    step: evaluation_pb2.LinkStep,
    name: Literal["rate_packets_per_ms", "delay_ms", "loss_probability"],
) -> float | None:
    return getattr(step, name) if step.HasField(name) else None


def _native_jitter_box(
    box: evaluation_pb2.JitterBox,
) -> _native.PeriodicRelease | _native.BatchRelease | _native.RandomRelease:
    match box.WhichOneof("holds"):
        case "periodic":
            return _native.PeriodicRelease(box.periodic.period_ms)
        case "batches":
            return _native.BatchRelease(box.batches.packets, box.batches.longest_wait_ms)
        case "random":
            random = box.random
            return _native.RandomRelease(
                random.longest_hold_ms, random.probability, random.reorders
            )
        case _:
            raise ValueError("jitter_box.holds is missing; it must be periodic, batches or random")


def native_bottleneck(
    holder: evaluation_pb2.Specimen | evaluation_pb2.SpecimenKind,
) -> _native.Bottleneck | None:
    """The Bottleneck message of a specimen or a kind, if it has one, as the native type."""
    if not holder.HasField("bottleneck"):
        return None
    bottleneck = holder.bottleneck
    return _native.Bottleneck(
        native_choice(bottleneck.queue) if bottleneck.HasField("queue") else None,
        packet_bytes(bottleneck),
        bottleneck.ack_bytes,
    )


def packet_bytes(bottleneck: evaluation_pb2.Bottleneck) -> float:
    """Of a packet on the wire."""
    return bottleneck.packet_bytes or _USUAL_PACKET_BYTES


_NOT_PLAIN: Final = ("protocol", "body", "first_on_ms", "route", "rtt_offset_ms")


def is_plain(holder: evaluation_pb2.Specimen | evaluation_pb2.SpecimenKind) -> bool:
    """Whether there is nothing but RemyCCs on datagrams that meet in one drop-tail queue, stay in
    order, and begin when each pleases."""
    measured = holder.measurement
    reorders = measured.reordering_probability > 0 and measured.reordering_delay_ms > 0
    return not (holder.HasField("bottleneck") or holder.links or reorders) and not any(
        group.traffic.HasField("barrier") or any(map(group.HasField, _NOT_PLAIN))
        for group in holder.senders
    )


def native_measurement(measurement: evaluation_pb2.Measurement) -> _native.MeasurementNoise:
    """A Measurement message as the native type; an empty one means exact clocks."""
    jitter: _native.ExponentialJitter | _native.UniformJitter | _native.LogNormalJitter
    match measurement.WhichOneof("jitter"):
        case "uniform_jitter_maximum_ms":
            jitter = _native.UniformJitter(measurement.uniform_jitter_maximum_ms)
        case "log_normal_jitter":
            log_normal = measurement.log_normal_jitter
            jitter = _native.LogNormalJitter(log_normal.median_ms, log_normal.percentile_99_ms)
        case _:
            jitter = _native.ExponentialJitter(measurement.exponential_jitter_mean_ms)
    return _native.MeasurementNoise(
        jitter,
        measurement.timestamp_resolution_ms,
        max(measurement.bunch_packets, 1),
        measurement.delayed_ack_ms,
        measurement.rtt_offset_maximum_ms,
        measurement.reordering_probability,
        measurement.reordering_delay_ms,
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


def sender_rows(outcome: evaluation_pb2.SpecimenOutcome) -> list[SenderRow]:
    """What happened to each sender of a specimen."""
    return list(
        zip(
            outcome.packets_received,
            outcome.packets_sent,
            outcome.packets_lost,
            outcome.on_ms,
            outcome.share_ms,
            outcome.delay_sum_ms,
            outcome.first_on_ms,
            strict=True,
        )
    )


def transport_rows(columns: evaluation_pb2.TransportColumns) -> list[TransportRow]:
    """What TransportColumns say of each sender, in the order of their fields."""
    flows = zip(columns.flow_packets, memoryview(columns.completion_ms).cast("d"), strict=True)
    counts = (
        columns.packets_in_order,
        columns.packets_repeated,
        columns.packets_marked,
        columns.timeouts,
        columns.throughput_packets,
        columns.delay_samples,
    )
    return [
        (numbers, list(itertools.islice(flows, count)))
        for *numbers_, count in zip(*counts, columns.flows, strict=True)
        for numbers in (tuple(numbers_),)
    ]


def tallies(outcome: evaluation_pb2.SpecimenOutcome) -> list[tuple[int, int, int]]:
    """(packets that count as throughput, delays measured, flows completed) of each sender; empty
    where the first two are the packets received and flows are not counted."""
    columns = outcome.transport
    return list(zip(columns.throughput_packets, columns.delay_samples, columns.flows, strict=True))


def sampled_rtts_ms(
    columns: evaluation_pb2.TransportColumns,
) -> list[tuple[float | None, float | None]]:
    """Means of the RTTs that each sender had sampled, by packets and over time: None where it took
    no samples, or where a message is of a simulator that did not say it."""
    by_packets, over_time = (
        memoryview(column or bytes(8 * len(columns.flows))).cast("d")
        for column in (columns.sampled_rtt_ms, columns.sampled_rtt_over_time_ms)
    )
    return [
        (each or None, other or None) for each, other in zip(by_packets, over_time, strict=True)
    ]


_MEASURES: Final = {
    spec_pb2.THROUGHPUT_MEASURE_ON_TIME: _native.ThroughputMeasure.ON_TIME,
    spec_pb2.THROUGHPUT_MEASURE_COMPLETION: _native.ThroughputMeasure.COMPLETION,
}


def native_objective(objective: spec_pb2.Objective) -> _native.Objective:
    """An Objective message (defaults filled) as the native type."""
    takes_lowest = objective.over_groups == spec_pb2.GROUP_AGGREGATE_MINIMUM
    return _native.Objective(
        objective.alpha,
        objective.beta,
        objective.delta,
        _MEASURES.get(objective.throughput, _native.ThroughputMeasure.EQUAL_SHARE),
        objective.minimum_on_ms,
        _native.GroupAggregate.MINIMUM if takes_lowest else _native.GroupAggregate.MEAN,
    )
