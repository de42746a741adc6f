"""Conversions between Protocol Buffers messages and the native simulator's types."""

import itertools
from collections.abc import Iterable
from typing import Final, Literal, NamedTuple, cast, get_args

from remy_proto.v1 import evaluation_pb2, rule_table_pb2, spec_pb2
from remy_simulator import _native, signals
from remy_simulator.throughput import MEASURES
from remy_simulator.traces import Traces

_DEFAULT_PACKET_BYTES: Final = 1500.0

Action = _native.Action
#: Constants of a path model, in the order of the message's fields.
PathModel = _native.PathModel
#: An action as a plain tuple.
ActionTuple = tuple[float, float, float]


def _signals(*, is_scale_free: bool) -> tuple[rule_table_pb2.Signal, ...]:
    numbers = (axis.form(is_scale_free).number for axis in signals.AXES)
    return tuple(cast(rule_table_pb2.Signal, number) for number in numbers)


# By axis. Scale-free rules look at the same axes as ratios, and at age in place of rec_ewma.
_ABSOLUTE_SIGNALS: Final = _signals(is_scale_free=False)
_SCALE_FREE_SIGNALS: Final = _signals(is_scale_free=True)
#: Signals that remembering senders know before the first ACK of an on period.
_REMEMBERED: Final = (rule_table_pb2.SIGNAL_AGE, rule_table_pb2.SIGNAL_SLOW_REC_RATIO)
#: The number of axes, and the number of basic ones, which every sender's memory has.
AXES: Final = len(_ABSOLUTE_SIGNALS)
BASIC_AXES: Final = _native.USUAL_AXES
_AXES: Final[dict[int, int]] = {
    signal: axis
    for all_signals in (_SCALE_FREE_SIGNALS, _ABSOLUTE_SIGNALS)
    for axis, signal in enumerate(all_signals)
}


def axis_of(signal: int) -> int:
    """Returns the native axis (from 0) of a Signal; an invalid axis for an unknown signal."""
    return _AXES.get(signal, signal - 1)


def is_scale_free(rules: int) -> bool:
    """Returns True if rules of this kind use the sender's own measured scale."""
    return rules not in (rule_table_pb2.RULES_UNSPECIFIED, rule_table_pb2.RULES_ABSOLUTE)


def signal_of(axis: int, rules: int = rule_table_pb2.RULES_ABSOLUTE) -> rule_table_pb2.Signal:
    """Inverse of axis_of, for tables with this kind of rules."""
    return (_SCALE_FREE_SIGNALS if is_scale_free(rules) else _ABSOLUTE_SIGNALS)[axis]


def form_of(axis: int, rules: int) -> signals.SignalForm:
    """Returns the form in which this kind of rules looks at the signal of a native axis."""
    return signals.AXES[axis].form(is_scale_free(rules))


def signals_zero_until_measured(rules: int) -> list[int]:
    """Returns the signals that are 0 until the sender has measured something, and never after."""
    if rules == rule_table_pb2.RULES_SCALE_FREE_REMEMBERING:
        return list(_REMEMBERED)
    return [signal_of(axis, rules) for axis in range(AXES) if not form_of(axis, rules).may_stay_0]


def native_action(action: rule_table_pb2.Action) -> Action:
    """Converts an Action message to the native named tuple."""
    return Action(
        window_multiple=action.window_multiple,
        window_increment=action.window_increment,
        intersend_ms=action.intersend_ms,
    )


def action_message(action: ActionTuple) -> rule_table_pb2.Action:
    """Inverse of native_action."""
    return rule_table_pb2.Action(**dict(zip(Action._fields, action, strict=True)))


def native_path_model(message: rule_table_pb2.PathModel) -> PathModel:
    """Converts a PathModel message, with defaults filled in, to the native named tuple."""
    return PathModel(*(getattr(message, name) for name in PathModel._fields))


def to_native(table: rule_table_pb2.RuleTable) -> _native.RuleTable:
    """Converts a RuleTable message to a native table. Raises InvalidTable."""
    return _native.RuleTable.from_message(table.SerializeToString())


def from_native(table: _native.RuleTable) -> rule_table_pb2.RuleTable:
    """Inverse of to_native."""
    return rule_table_pb2.RuleTable.FromString(table.to_message())


def native_traffic(traffic: evaluation_pb2.Traffic) -> _native.Traffic:
    """Converts a Traffic message to the native type."""
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
                scale_bytes=pareto.scale_bytes,
                shape=pareto.shape,
                shift_bytes=pareto.shift_bytes,
                extra_bytes=pareto.extra_bytes,
                maximum_bytes=pareto.maximum_bytes,
            )
        case "empirical_bytes":
            empirical = traffic.empirical_bytes
            on = _native.empirical_bytes(
                name=empirical.name,
                probabilities=empirical.probabilities[:],
                bytes=empirical.bytes[:],
                extra_bytes=empirical.extra_bytes,
            )
        case "constant_bytes":
            on = _native.ConstantBytes(traffic.constant_bytes.bytes)
        case "always":
            on = _native.Always()
        case "intervals":
            on = _native.intervals(
                begin_ms=traffic.intervals.begin_ms[:], end_ms=traffic.intervals.end_ms[:]
            )
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
    return _native.Traffic(
        on=on, mean_off_ms=traffic.mean_off_ms, arrivals=arrivals, first_off_factor=factor
    )


def native_choice(choice: evaluation_pb2.Choice) -> _native.Choice:
    """Converts a Choice message to the native type."""
    parameters = [(parameter.name, parameter.value) for parameter in choice.parameters]
    return _native.Choice(choice.name, choice.variant, parameters)


def native_senders(group: evaluation_pb2.SenderGroup) -> _native.SenderGroup:
    """Converts a SenderGroup message to the native type."""
    native = _native.SenderGroup(
        count=group.count,
        table=group.table,
        traffic=native_traffic(group.traffic),
        protocol=native_choice(group.protocol) if group.HasField("protocol") else None,
        transport=native_choice(group.transport) if group.HasField("transport") else None,
        first_on_ms=group.first_on_ms if group.HasField("first_on_ms") else None,
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
    """Converts a Route message to the native type."""
    return _native.Route(
        links=route.links[:],
        return_links=route.return_links[:],
        delay_ms=route.delay_ms,
        return_delay_ms=route.return_delay_ms,
    )


def native_link(link: evaluation_pb2.Link, traces: Traces) -> _native.Link:
    """Converts a Link message to the native type. Raises ValueError."""
    native = _native.Link(
        rate_packets_per_ms=link.rate_packets_per_ms,
        delay_ms=link.delay_ms,
        buffer_packets=link.buffer_packets if link.HasField("buffer_packets") else None,
        queue=native_choice(link.queue) if link.HasField("queue") else None,
        loss_probability=link.loss_probability,
    )
    native.trace = traces.driver(link)
    if link.HasField("gilbert_elliott"):
        loss = link.gilbert_elliott
        native.gilbert_elliott = _native.GilbertElliottLoss(
            good_to_bad=loss.good_to_bad,
            bad_to_good=loss.bad_to_good,
            loss_in_good=loss.loss_in_good,
            loss_in_bad=loss.loss_in_bad,
        )
    match link.WhichOneof("changes"):
        case "schedule":
            steps = [
                _native.LinkStep(
                    at_ms=step.at_ms,
                    rate_packets_per_ms=_optional(step, "rate_packets_per_ms"),
                    delay_ms=_optional(step, "delay_ms"),
                    loss_probability=_optional(step, "loss_probability"),
                )
                for step in link.schedule.steps
            ]
            native.changes = _native.LinkSchedule(steps, link.schedule.repeat_after_ms or None)
        case "walk":
            walk = link.walk
            ranges = {
                name: _native.LinkRange(
                    least=getattr(walk, name).least, most=getattr(walk, name).most
                )
                if walk.HasField(name)
                else None
                for name in _CHANGING
            }
            native.changes = _native.LinkWalk(every_ms=walk.every_ms, step=walk.step, **ranges)
    if link.HasField("policer"):
        native.policer = _native.Policer(
            rate_packets_per_ms=link.policer.rate_packets_per_ms,
            burst_packets=link.policer.burst_packets,
        )
    if link.HasField("jitter_box"):
        native.jitter_box = _native_jitter_box(link.jitter_box)
    return native


_Changing = Literal["rate_packets_per_ms", "delay_ms", "loss_probability"]
#: Properties of a link that can change.
_CHANGING: Final[tuple[_Changing, ...]] = get_args(_Changing)


def _optional(step: evaluation_pb2.LinkStep, name: _Changing) -> float | None:
    return getattr(step, name) if step.HasField(name) else None


def _native_jitter_box(
    box: evaluation_pb2.JitterBox,
) -> _native.PeriodicRelease | _native.BatchRelease | _native.RandomRelease:
    match box.WhichOneof("holds"):
        case "periodic":
            return _native.PeriodicRelease(box.periodic.period_ms)
        case "batches":
            return _native.BatchRelease(
                packets=box.batches.packets, longest_wait_ms=box.batches.longest_wait_ms
            )
        case "random":
            random = box.random
            return _native.RandomRelease(
                longest_hold_ms=random.longest_hold_ms,
                probability=random.probability,
                reorders=random.reorders,
            )
        case _:
            raise ValueError("jitter_box.holds is missing; it must be periodic, batches or random")


def native_bottleneck(
    holder: evaluation_pb2.Specimen | evaluation_pb2.SpecimenKind,
) -> _native.Bottleneck | None:
    """The Bottleneck message of a specimen or a kind, if it has one, in the native type."""
    if not holder.HasField("bottleneck"):
        return None
    bottleneck = holder.bottleneck
    return _native.Bottleneck(
        queue=native_choice(bottleneck.queue) if bottleneck.HasField("queue") else None,
        packet_bytes=packet_bytes(bottleneck),
        ack_bytes=bottleneck.ack_bytes,
    )


def packet_bytes(bottleneck: evaluation_pb2.Bottleneck) -> float:
    """Returns the size of a packet on the wire."""
    return bottleneck.packet_bytes or _DEFAULT_PACKET_BYTES


_NOT_PLAIN: Final = ("protocol", "transport", "first_on_ms", "route", "rtt_offset_ms")


def is_plain(holder: evaluation_pb2.Specimen | evaluation_pb2.SpecimenKind) -> bool:
    """Returns True for a plain dumbbell.

    Its senders are RemyCCs on datagrams that share one drop-tail queue, stay in order and start
    independently.
    """
    measured = holder.measurement
    reorders = measured.reordering_probability > 0 and measured.reordering_delay_ms > 0
    return not (holder.HasField("bottleneck") or holder.links or reorders) and not any(
        group.traffic.HasField("barrier") or any(map(group.HasField, _NOT_PLAIN))
        for group in holder.senders
    )


def has_transports(
    holders: Iterable[evaluation_pb2.Specimen | evaluation_pb2.SpecimenKind],
    request: evaluation_pb2.EvaluationRequest,
) -> bool:
    """Returns whether the outcome of a request for these specimens has transport columns."""
    return request.distributions or not all(map(is_plain, holders))


def native_measurement(measurement: evaluation_pb2.Measurement) -> _native.MeasurementNoise:
    """Converts a Measurement message to the native type. An empty message means exact clocks."""
    jitter: _native.ExponentialJitter | _native.UniformJitter | _native.LogNormalJitter
    match measurement.WhichOneof("jitter"):
        case "uniform_jitter_maximum_ms":
            jitter = _native.UniformJitter(measurement.uniform_jitter_maximum_ms)
        case "log_normal_jitter":
            log_normal = measurement.log_normal_jitter
            jitter = _native.LogNormalJitter(
                median_ms=log_normal.median_ms, percentile_99_ms=log_normal.percentile_99_ms
            )
        case _:
            jitter = _native.ExponentialJitter(measurement.exponential_jitter_mean_ms)
    return _native.MeasurementNoise(
        jitter=jitter,
        timestamp_resolution_ms=measurement.timestamp_resolution_ms,
        bunch_packets=max(measurement.bunch_packets, 1),
        delayed_ack_ms=measurement.delayed_ack_ms,
        rtt_offset_maximum_ms=measurement.rtt_offset_maximum_ms,
        reordering_probability=measurement.reordering_probability,
        reordering_delay_ms=measurement.reordering_delay_ms,
    )


def native_bounds(bounds: evaluation_pb2.ActionBounds) -> _native.ActionBounds:
    """Converts an ActionBounds message to the native type."""
    return _native.ActionBounds(
        window_multiple_minimum=bounds.window_multiple_minimum,
        window_multiple_maximum=bounds.window_multiple_maximum,
        window_increment_minimum=bounds.window_increment_minimum,
        window_increment_maximum=bounds.window_increment_maximum,
        intersend_minimum_ms=bounds.intersend_minimum_ms,
        intersend_maximum_ms=bounds.intersend_maximum_ms,
    )


def native_candidate(
    candidate: evaluation_pb2.Candidate,
) -> _native.Unchanged | _native.ActionChanges | _native.Perturbation:
    """Converts a Candidate message to the native type."""
    match candidate.WhichOneof("change"):
        case "actions":
            return _native.ActionChanges(
                [
                    (change.rule, native_action(change.action))
                    for change in candidate.actions.changes
                ]
            )
        case "perturbation":
            perturbation = candidate.perturbation
            return _native.Perturbation(
                seed=perturbation.seed,
                scale=perturbation.scale,
                bounds=native_bounds(perturbation.bounds),
            )
        case _:
            return _native.Unchanged()


#: Names of the columns of a sender's results: counts and times.
SENDER_COUNTS: Final = ("packets_received", "packets_sent", "packets_lost")
SENDER_TIMES: Final = ("on_ms", "share_ms", "delay_sum_ms", "first_on_ms")
_SENDER_RESULTS: Final = (*SENDER_COUNTS, *SENDER_TIMES)


def sender_results(outcome: evaluation_pb2.SpecimenOutcome) -> list[_native.SenderResults]:
    """Returns the results of each sender of a specimen in the native type."""
    columns = (getattr(outcome, name) for name in _SENDER_RESULTS)
    return [
        _native.SenderResults(**dict(zip(_SENDER_RESULTS, row, strict=True)))
        for row in zip(*columns, strict=True)
    ]


#: Columns of TransportColumns with one count per sender, without flows.
TRANSPORT_COUNTS: Final = (
    "packets_in_order",
    "packets_retransmitted",
    "packets_marked",
    "timeouts",
    "throughput_packets",
    "delay_samples",
)


def transport_results(columns: evaluation_pb2.TransportColumns) -> list[_native.TransportResults]:
    """Returns the results of each sender in TransportColumns in the native type."""
    flows = (
        _native.FlowCompletion(packets=packets, time_ms=time_ms)
        for packets, time_ms in zip(
            columns.flow_packets, memoryview(columns.completion_ms).cast("d"), strict=True
        )
    )
    counts = (getattr(columns, name) for name in TRANSPORT_COUNTS)
    return [
        _native.TransportResults(
            **dict(zip(TRANSPORT_COUNTS, row, strict=True)),
            flows=list(itertools.islice(flows, count)),
        )
        for count, *row in zip(columns.flows, *counts, strict=True)
    ]


def tallies(outcome: evaluation_pb2.SpecimenOutcome) -> list[_native.Tally]:
    """Returns the counts from which throughput and delay of each sender are computed.

    Empty if both are the packets received and flows are not counted.
    """
    columns = outcome.transport
    return [
        _native.Tally(throughput_packets=packets, delay_samples=samples, flows=flows)
        for packets, samples, flows in zip(
            columns.throughput_packets, columns.delay_samples, columns.flows, strict=True
        )
    ]


class SampledRtts(NamedTuple):
    """A sender's mean sampled RTTs. None if it has no samples, or if the message comes from a
    simulator that did not report them."""

    by_packets_ms: float | None
    over_time_ms: float | None


def sampled_rtts(columns: evaluation_pb2.TransportColumns) -> list[SampledRtts]:
    """Returns the sampled RTTs of each sender."""
    by_packets, over_time = (
        memoryview(column or bytes(8 * len(columns.flows))).cast("d")
        for column in (columns.sampled_rtt_ms, columns.sampled_rtt_over_time_ms)
    )
    return [
        SampledRtts(each or None, other or None)
        for each, other in zip(by_packets, over_time, strict=True)
    ]


def rtt_histograms(columns: evaluation_pb2.TransportColumns) -> list[dict[int, int]]:
    """Returns the histogram of RTTs of each sender: counts by bucket, in ascending order.

    Empty if the request did not ask for distributions.
    """
    buckets = iter(zip(columns.rtt_histogram_buckets, columns.rtt_histogram_counts, strict=True))
    return [dict(itertools.islice(buckets, size)) for size in columns.rtt_histogram_sizes]


def native_objective(objective: spec_pb2.Objective) -> _native.Objective:
    """Converts an Objective message, with defaults filled in, to the native type.

    Raises ValueError if the simulator does not have its throughput measure.
    """
    uses_minimum = objective.over_groups == spec_pb2.GROUP_AGGREGATE_MINIMUM
    return _native.Objective(
        alpha=objective.alpha,
        beta=objective.beta,
        delta=objective.delta,
        throughput=objective.throughput or next(iter(MEASURES)),
        minimum_on_ms=objective.minimum_on_ms,
        over_groups=_native.GroupAggregate.MINIMUM if uses_minimum else _native.GroupAggregate.MEAN,
        loss_price=objective.loss_price,
    )
