"""Fingerprints of the simulator: equal if and only if results are equal, bit by bit."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable
from typing import Any, Final

from remy_proto.v1 import evaluation_pb2, rule_table_pb2, spec_pb2
from remy_simulator import columns, registry, signals
from remy_simulator.messages import AXES, BASIC_AXES, form_of, signal_of
from remy_simulator.throughput import MEASURES

_BOUNDS = evaluation_pb2.ActionBounds(
    window_multiple_maximum=1.0,
    window_increment_maximum=256.0,
    intersend_minimum_ms=0.25,
    intersend_maximum_ms=100.0,
)


@functools.cache
def fingerprint(rules: int = rule_table_pb2.RULES_ABSOLUTE) -> str:
    """Returns the SHA-256, as 64 hexadecimal digits, of the outcome of a fixed request.

    `rules` is the kind of rules of the request's table. For remembering rules the result is
    `signals_fingerprint`. The request covers split tables, changes and perturbations, all kinds of
    traffic, finite buffers, loss, jitter and summaries of memory; with scale-free tables also
    bunches and delayed ACKs. Takes some milliseconds at the first call.
    """
    if rules == rule_table_pb2.RULES_SCALE_FREE_REMEMBERING:
        return signals_fingerprint()
    if rules == rule_table_pb2.RULES_SCALE_FREE:
        request = _request(_scale_free_table(), evaluation_pb2.RECORDING_SHARES)
        request.specimens.append(_kernels())
    else:
        request = _request(_table(), evaluation_pb2.RECORDING_MEMORY)
    outcome = columns.evaluate_columns(columns.packed(request))
    return hashlib.sha256(outcome.SerializeToString(deterministic=True)).hexdigest()


@functools.cache
def signals_fingerprint() -> str:
    """Returns the fingerprint of tables with extended signals or age, for all kinds of rules.

    Tables with remembering rules look at both.
    """
    return _digest_of_all_rules(
        lambda rules: _request_of_signals(rules, evaluation_pb2.RECORDING_SHARES)
    )


@functools.cache
def path_model_fingerprint() -> str:
    """Returns the fingerprint of tables with a path model, for all kinds of rules.

    Their senders run on the dumbbell and on all transports. A simulator that predates path models
    has no such fingerprint: it would ignore the field and run the rules alone.
    """
    return _digest_of_all_rules(_request_of_path_model_everywhere)


@functools.cache
def network_signals_fingerprint() -> str:
    """Returns the fingerprint of tables with extended signals, for all kinds of rules, where
    `signals_fingerprint` has none: on all transports and kinds of links, and with a path model.

    A simulator that predates it refuses such tables.
    """
    return _digest_of_all_rules(_request_of_network_signals)


def _digest_of_all_rules(
    request_of: Callable[[rule_table_pb2.Rules], evaluation_pb2.EvaluationRequest],
) -> str:
    """Returns the SHA-256 of the outcomes of a request for each kind of rules."""
    digest = hashlib.sha256()
    for rules in (
        rule_table_pb2.RULES_ABSOLUTE,
        rule_table_pb2.RULES_SCALE_FREE,
        rule_table_pb2.RULES_SCALE_FREE_REMEMBERING,
    ):
        outcome = columns.evaluate_columns(columns.packed(request_of(rules)))
        digest.update(outcome.SerializeToString(deterministic=True))
    return digest.hexdigest()


def _transports_of_tables() -> list[tuple[str, str]]:
    """The name and the variant of each transport that runs tables."""
    return [
        (entry.name, variant.name)
        for entry in registry.entries(registry.Registry.TRANSPORT).values()
        if registry.RUNS_TABLES in entry.traits
        for variant in entry.variants
    ]


#: A network with losses and a queue that fills.
_SMALL_NETWORK: Final[dict[str, Any]] = {
    "link_rate_packets_per_ms": 0.71,
    "rtt_ms": 61.9,
    "buffer_packets": 20,
    "loss_probability": 0.03,
}


def _request_of_path_model(rules: rule_table_pb2.Rules) -> evaluation_pb2.EvaluationRequest:
    """The networks of `_request`, and one with noise as in kernels, for a table with a path model.

    The epochs of its base RTT are short enough to end within the networks' on periods.
    """
    table = _table() if rules == rule_table_pb2.RULES_ABSOLUTE else _scale_free_table()
    table.rules = rules
    table.path_model.CopyFrom(_path_model())
    request = _request(table, evaluation_pb2.RECORDING_SHARES)
    request.specimens.append(_kernels())
    return request


def _request_of_path_model_everywhere(
    rules: rule_table_pb2.Rules,
) -> evaluation_pb2.EvaluationRequest:
    """The networks of `_request_of_path_model`, and a small one for each transport."""
    request = _request_of_path_model(rules)
    plain = request.specimens[0]
    for transport, variant in _transports_of_tables():
        specimen = request.specimens.add(key=len(request.specimens) + 1)
        specimen.MergeFrom(evaluation_pb2.Specimen(**_SMALL_NETWORK))
        specimen.senders.extend(plain.senders)
        for group in specimen.senders:
            group.transport.name, group.transport.variant = transport, variant
    return request


def _path_model() -> rule_table_pb2.PathModel:
    return rule_table_pb2.PathModel(
        base_rtt_rounds=4.0,
        tolerated_loss=0.01,
        loss_debt_packets=2.0,
        loss_window=0.75,
        least_window_packets=3.0,
        reference_rtt_ms=40.0,
        additive_packets=0.25,
        flight_bound=2.0,
        competition_rtt_ratio=1.1,
    )


def _request_of_network_signals(rules: rule_table_pb2.Rules) -> evaluation_pb2.EvaluationRequest:
    """The networks of `_request_of_signals` for a table with a path model, a network with marks and
    one with two links for each transport, and all kinds of links.

    On transports and links, senders with and without a path model meet.
    """
    request = _request_of_signals(rules, evaluation_pb2.RECORDING_SHARES)
    request.tables[0].path_model.CopyFrom(_path_model())
    request.tables.append(_table_of_signals(rules))
    by_time = evaluation_pb2.Traffic(exponential_time={"mean_ms": 900.0}, mean_off_ms=100.0)
    for transport, variant in _transports_of_tables():
        for is_marking in (True, False):
            specimen = request.specimens.add(key=len(request.specimens) + 1)
            specimen.link_rate_packets_per_ms, specimen.rtt_ms = 0.71, 61.9
            if is_marking:
                specimen.MergeFrom(evaluation_pb2.Specimen(**_SMALL_NETWORK))
                specimen.bottleneck.queue.name = "threshold-marking"
                specimen.bottleneck.queue.parameters.add(name="threshold_packets", value=4.0)
            else:
                specimen.links.add(rate_packets_per_ms=0.9, delay_ms=11.3, buffer_packets=20)
                specimen.links.add(rate_packets_per_ms=0.71, delay_ms=4.1, loss_probability=0.02)
            for table in (0, 1):
                group = specimen.senders.add(count=1, table=table, traffic=by_time)
                group.transport.name, group.transport.variant = transport, variant
    _add_link_kinds(request)
    return request


@functools.cache
def protocols_fingerprint() -> str:
    """Returns the fingerprint of all variants of all protocols, transports and queue disciplines.

    The request also covers several links with all kinds of traffic, all kinds of links, and
    distributions. A
    simulator that predates protocols has no such fingerprint: it would ignore the field and run a
    rule table.
    """
    protocols, transports, queues = (
        [
            (entry, variant)
            for entry in registry.entries(kind).values()
            for variant in entry.variants
        ]
        for kind in registry.Registry
    )
    tcp_variants = [variant.name for entry, variant in transports if entry.name == "tcp"]
    request = evaluation_pb2.EvaluationRequest(
        tables=[_table(), _scale_free_table()],
        candidates=[evaluation_pb2.Candidate()],
        duration_ms=2_000.0,
        seed=20130812,
        distributions=True,
    )
    for number, (protocol, variant) in enumerate(protocols):
        needed = {registry.NEEDS_XCP_ROUTER} & protocol.traits
        routers = [
            each for each in queues if not needed or registry.IS_XCP_ROUTER in each[0].traits
        ]
        specimen = _mixed(request, routers[number % len(routers)])
        if registry.IS_ALONE in protocol.traits:
            specimen.loss_probability = specimen.bottleneck.ack_bytes = 0.0
        for group in specimen.senders:
            group.protocol.name, group.protocol.variant = protocol.name, variant.name
            group.transport.name = "tcp"
            group.transport.variant = tcp_variants[number % len(tcp_variants)]
    for number, (transport, variant) in enumerate(transports):
        if registry.RUNS_TABLES not in transport.traits:
            continue
        for group in _mixed(request, queues[number % len(queues)]).senders:
            group.transport.name, group.transport.variant = transport.name, variant.name
    _add_network(request)
    _add_link_kinds(request)
    digest = hashlib.sha256()
    # First the results, then scores with weights and objectives by group. The default throughput
    # measure is left out: the scores of every design use it.
    _, measure_of_a_group, *measures = MEASURES
    for number, specimen in enumerate(request.specimens):
        specimen.senders[0].weight = 1.0 + number / 8
        specimen.senders[1].objective.CopyFrom(_objective(measure_of_a_group))
    for measure in (None, *measures):
        if measure is not None:
            request.objective.CopyFrom(_objective(measure))
        outcome = columns.evaluate_columns(columns.packed(request))
        digest.update(outcome.SerializeToString(deterministic=True))
    return digest.hexdigest()


def _objective(throughput: int) -> spec_pb2.Objective:
    return spec_pb2.Objective(
        alpha=2.0,
        beta=1.0,
        delta=0.5,
        throughput=spec_pb2.ThroughputMeasure.Name(throughput),
        over_groups=spec_pb2.GROUP_AGGREGATE_MINIMUM,
        loss_price=1.5,
    )


def _add_network(request: evaluation_pb2.EvaluationRequest) -> None:
    """Adds a specimen with routes over two links and back over a third, RTT offsets, and
    reordering."""
    specimen = request.specimens.add(
        key=len(request.specimens) + 1,
        link_rate_packets_per_ms=0.71,
        rtt_ms=61.9,
        bottleneck={"ack_bytes": 50.0},
        measurement={
            "rtt_offset_maximum_ms": 1.7,
            "reordering_probability": 0.02,
            "reordering_delay_ms": 9.0,
        },
        links=[
            {"rate_packets_per_ms": 0.71, "delay_ms": 11.3, "buffer_packets": 20},
            {"rate_packets_per_ms": 1.3, "delay_ms": 4.1, "loss_probability": 0.003},
            {"rate_packets_per_ms": 0.4, "delay_ms": 7.7, "loss_probability": 0.01},
        ],
    )
    for number, traffic in enumerate(
        (
            evaluation_pb2.Traffic(
                empirical_bytes={"name": "icsi", "extra_bytes": 16384.0},
                mean_off_ms=100.0,
                first_off_factor=0.5,
            ),
            evaluation_pb2.Traffic(
                empirical_bytes={"probabilities": [0.1, 0.9], "bytes": [1e3, 40e3]},
                poisson={"mean_interval_ms": 150.0},
            ),
            evaluation_pb2.Traffic(constant_bytes={"bytes": 20e3}, periodic={"interval_ms": 190.0}),
            evaluation_pb2.Traffic(constant_bytes={"bytes": 30e3}, barrier={"pause_ms": 40.0}),
            evaluation_pb2.Traffic(always={}),
            evaluation_pb2.Traffic(intervals={"begin_ms": [200.0, 900.0], "end_ms": [600.0]}),
        )
    ):
        group = specimen.senders.add(count=2, table=number % 2, traffic=traffic)
        group.route.links.extend(([0, 1], [0], [1])[number % 3])
        group.route.return_links.append(2)
        group.route.delay_ms = 3.0 * number
    group.rtt_offset_ms = 2.3


def _add_link_kinds(request: evaluation_pb2.EvaluationRequest) -> None:
    """Adds a specimen for each kind of link. Some follow a trace."""
    times_us = b"".join((n * 1300 + n % 7 * 100).to_bytes(8, "little") for n in range(1, 200))
    trace = request.traces.add(sha256=hashlib.sha256(times_us).digest(), opportunities_us=times_us)
    generator = {
        "maximum_packets_per_s": 1000.0,
        "volatility_packets_per_s": 200.0,
        "outage_escape_per_s": 1.0,
        "tick_ms": 20.0,
    }
    walk = {
        "every_ms": 70.0,
        "rate_packets_per_ms": {"least": 0.3, "most": 2.0},
        "delay_ms": {"least": 3.0, "most": 30.0},
        "step": 0.3,
    }
    steps = [{"at_ms": 300.0, "rate_packets_per_ms": 0.4}, {"at_ms": 600.0, "delay_ms": 3.0}]
    bursts = {"good_to_bad": 0.01, "bad_to_good": 0.3, "loss_in_bad": 0.5}
    kinds: tuple[dict[str, Any], ...] = (
        {"trace": {"sha256": trace.sha256, "semantics": 1}},
        {"trace": {"sha256": trace.sha256, "semantics": 2}, "gilbert_elliott": bursts},
        {"trace": {"sha256": trace.sha256, "semantics": 3, "ends": True}},
        {"generated": {"generator": generator, "semantics": 2}},
        {"walk": walk, "policer": {"rate_packets_per_ms": 1.0, "burst_packets": 20.0}},
        {"schedule": {"steps": steps, "repeat_after_ms": 900.0}},
        {"jitter_box": {"periodic": {"period_ms": 6.0}}},
        {"jitter_box": {"batches": {"packets": 4, "longest_wait_ms": 5.0}}},
        {"jitter_box": {"random": {"longest_hold_ms": 9.0, "probability": 0.4}}},
    )
    by_time = evaluation_pb2.Traffic(exponential_time={"mean_ms": 900.0}, mean_off_ms=100.0)
    for kind in kinds:
        specimen = request.specimens.add(
            key=len(request.specimens) + 1, link_rate_packets_per_ms=0.71, rtt_ms=61.9
        )
        link = evaluation_pb2.Link(**kind, delay_ms=7.0, buffer_packets=30)
        link.rate_packets_per_ms = 0.0 if link.WhichOneof("driver") else 0.9
        specimen.links.append(link)
        for table in (0, 1):
            specimen.senders.add(count=1, table=table, traffic=by_time)


def _mixed(
    request: evaluation_pb2.EvaluationRequest, queue: tuple[registry.Entry, registry.Variant]
) -> evaluation_pb2.Specimen:
    """Adds a specimen: flows by bytes and by time share a queue, with losses."""
    by_bytes = evaluation_pb2.Traffic(exponential_bytes={"mean_bytes": 90e3}, mean_off_ms=150.0)
    by_time = evaluation_pb2.Traffic(exponential_time={"mean_ms": 900.0}, mean_off_ms=100.0)
    specimen = request.specimens.add(
        key=len(request.specimens) + 1,
        link_rate_packets_per_ms=0.71,
        rtt_ms=61.9,
        buffer_packets=20,
        loss_probability=0.003,
        senders=[
            _senders(2, by_bytes),
            evaluation_pb2.SenderGroup(count=1, table=1, traffic=by_time),
        ],
    )
    entry, variant = queue
    specimen.bottleneck.queue.name, specimen.bottleneck.queue.variant = entry.name, variant.name
    specimen.bottleneck.packet_bytes, specimen.bottleneck.ack_bytes = 1260.0, 50.0
    return specimen


def _request(
    table: rule_table_pb2.RuleTable, recording: evaluation_pb2.Recording
) -> evaluation_pb2.EvaluationRequest:
    return evaluation_pb2.EvaluationRequest(
        tables=[table],
        candidates=[
            evaluation_pb2.Candidate(),
            evaluation_pb2.Candidate(
                actions={"changes": [{"rule": 0, "action": _action(0.5, 3.0, 1.25)}]}
            ),
            evaluation_pb2.Candidate(
                perturbation=evaluation_pb2.Perturbation(seed=17, scale=0.3, bounds=_BOUNDS)
            ),
            evaluation_pb2.Candidate(
                perturbation=evaluation_pb2.Perturbation(seed=17, scale=-0.3, bounds=_BOUNDS)
            ),
        ],
        specimens=[
            evaluation_pb2.Specimen(
                key=1,
                link_rate_packets_per_ms=1.37,
                rtt_ms=143.3,
                senders=[
                    _senders(
                        3,
                        evaluation_pb2.Traffic(
                            exponential_time={"mean_ms": 900.0}, mean_off_ms=400.0
                        ),
                    )
                ],
            ),
            evaluation_pb2.Specimen(
                key=2,
                link_rate_packets_per_ms=0.71,
                rtt_ms=61.9,
                buffer_packets=20,
                loss_probability=0.013,
                measurement={"exponential_jitter_mean_ms": 0.7, "timestamp_resolution_ms": 1.0},
                senders=[
                    _senders(
                        2,
                        evaluation_pb2.Traffic(
                            exponential_bytes={"mean_bytes": 90e3}, mean_off_ms=150.0
                        ),
                    ),
                    _senders(
                        1,
                        evaluation_pb2.Traffic(
                            pareto_bytes={
                                "scale_bytes": 147.0,
                                "shape": 0.5,
                                "shift_bytes": -107.0,
                                "extra_bytes": 16e3,
                                "maximum_bytes": 1e7,
                            },
                            mean_off_ms=200.0,
                        ),
                    ),
                ],
            ),
        ],
        duration_ms=20_000.0,
        seed=20130812,
        recording=recording,
    )


def _kernels() -> evaluation_pb2.Specimen:
    """A specimen with the measurement noise of senders and receivers in kernels."""
    return evaluation_pb2.Specimen(
        key=3,
        link_rate_packets_per_ms=1.93,
        rtt_ms=87.7,
        measurement={
            "log_normal_jitter": {"median_ms": 0.068, "percentile_99_ms": 0.2},
            "timestamp_resolution_ms": 0.001,
            "bunch_packets": 2,
            "delayed_ack_ms": 1.0,
        },
        senders=[
            _senders(
                2,
                evaluation_pb2.Traffic(exponential_time={"mean_ms": 700.0}, mean_off_ms=300.0),
            )
        ],
    )


def _table() -> rule_table_pb2.RuleTable:
    """A table split on all basic signals at once, with one child split once more."""
    signals = (
        rule_table_pb2.SIGNAL_SEND_EWMA,
        rule_table_pb2.SIGNAL_REC_EWMA,
        rule_table_pb2.SIGNAL_RTT_RATIO,
        rule_table_pb2.SIGNAL_SLOW_REC_EWMA,
    )
    table = rule_table_pb2.RuleTable(signals=signals, domain_upper=163840.0)
    root = table.nodes.add()
    for signal, value in zip(signals, (1.5, 1.9, 1.2, 2.1), strict=True):
        root.split.thresholds.add(signal=signal, value=value)
    for child in range(16):
        if child == 5:
            table.nodes.add().split.thresholds.add(signal=signals[2], value=1.3)
            table.nodes.add().action.CopyFrom(_action(0.9, 2.0, 0.3))
        # The rate of the link, and slightly less with a growing queue.
        table.nodes.add().action.CopyFrom(_action(1.0 - 0.02 * child, 1.0 + child % 3, 0.4))
    return table


def _scale_free_table() -> rule_table_pb2.RuleTable:
    """A scale-free table with rules for senders without measurements, for queues, and by send_ratio
    and slow_rec_ratio."""
    send_ratio, rtt_ratio = rule_table_pb2.SIGNAL_SEND_RATIO, rule_table_pb2.SIGNAL_RTT_RATIO
    age = rule_table_pb2.SIGNAL_SLOW_REC_RATIO
    table = rule_table_pb2.RuleTable(
        signals=[send_ratio, rtt_ratio, age],
        domain_upper=163840.0,
        rules=rule_table_pb2.RULES_SCALE_FREE,
    )
    table.nodes.add().split.thresholds.add(signal=rtt_ratio, value=0.5)
    table.nodes.add().action.CopyFrom(_action(0.0, 8.0, 0.5))
    table.nodes.add().split.thresholds.add(signal=rtt_ratio, value=1.25)
    measured = table.nodes.add().split.thresholds
    measured.add(signal=send_ratio, value=0.97)
    measured.add(signal=age, value=0.3)
    for child in range(4):
        table.nodes.add().action.CopyFrom(_action(0.7 + 0.05 * child, 33.0, 0.8 + 0.04 * child))
    table.nodes.add().action.CopyFrom(_action(0.7, 24.0, 1.1))
    return table


def _request_of_signals(
    rules: rule_table_pb2.Rules, recording: evaluation_pb2.Recording
) -> evaluation_pb2.EvaluationRequest:
    """The networks of `_request`, one with noise as in kernels, and the same with ECN marks."""
    request = _request(_table_of_signals(rules), recording)
    marked = _kernels()
    marked.bottleneck.queue.name = "threshold-marking"
    marked.bottleneck.queue.parameters.add(name="threshold_packets", value=1.0)
    request.specimens.extend([_kernels(), marked])
    return request


def _table_of_signals(rules: rule_table_pb2.Rules) -> rule_table_pb2.RuleTable:
    """A table with a rule for senders without measurements, and a split on each extended signal."""
    is_absolute = rules == rule_table_pb2.RULES_ABSOLUTE
    # Marks first: a queue with marks also has a high utilization.
    extended_axes = sorted(
        (axis for axis in range(BASIC_AXES, AXES) if form_of(axis, rules).usual_value),
        key=lambda axis: signals.AXES[axis].told_by != signals.ToldBy.MARKS,
    )
    thresholds = {axis: form_of(axis, rules).usual_value for axis in extended_axes}
    if rules == rule_table_pb2.RULES_SCALE_FREE_REMEMBERING:
        thresholds[1] = 20.0
    table = rule_table_pb2.RuleTable(
        signals=[signal_of(axis, rules) for axis in sorted({2, *thresholds})],
        domain_upper=163840.0,
        rules=rules,
    )
    divisions = [(2, 0.5), *thresholds.items()]
    for number, (axis, value) in enumerate(divisions):
        table.nodes.add().split.thresholds.add(signal=signal_of(axis, rules), value=value)
        if number == 0:
            table.nodes.add().action.CopyFrom(_action(0.0, 8.0, 0.5))
    for child in range(len(divisions)):
        increment, pace = (3.0, 0.6) if is_absolute else (33.0, 0.8)
        table.nodes.add().action.CopyFrom(
            _action(0.8 - 0.03 * child, increment, pace + 0.06 * child)
        )
    return table


def _action(multiple: float, increment: float, intersend_ms: float) -> rule_table_pb2.Action:
    return rule_table_pb2.Action(
        window_multiple=multiple, window_increment=increment, intersend_ms=intersend_ms
    )


def _senders(count: int, traffic: evaluation_pb2.Traffic) -> evaluation_pb2.SenderGroup:
    return evaluation_pb2.SenderGroup(count=count, table=0, traffic=traffic)
