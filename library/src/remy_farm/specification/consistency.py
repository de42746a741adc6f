"""Checks that the parts of a network fit together: links, routes, senders, traffic and mixtures."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

import remy_simulator
from remy_farm.specification.distributions import extent
from remy_farm.specification.links import (
    buffer_size,
    distributions,
    link_index,
    link_message,
    link_names,
    parse_choice,
    with_values_of,
)
from remy_farm.specification.models import (
    designed_tables,
    groups_of,
    models,
    paths_of,
    transport_of,
)
from remy_farm.specification.modes import MODES, mode_of
from remy_farm.specification.referenced_files import problem_with_table
from remy_farm.specification.schema import Bounds, Violation, child_path, show
from remy_farm.specification.specimens import arrivals_of, set_when_on
from remy_farm.specification.traces import LinkTrace
from remy_proto.v1 import evaluation_pb2, spec_pb2
from remy_simulator import registry, signals
from remy_simulator.messages import AXES, form_of
from remy_simulator.registry import Registry
from remy_simulator.signals import ToldBy
from remy_simulator.throughput import MEASURES, counts_flows

_MAX_SENDERS: Final = 10_000
_PLAIN_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_SHA256: Final = re.compile(r"[0-9a-f]{64}")
_PLAIN_QUEUE: Final = "drop-tail"
#: The queue that marks packets whatever its parameters.
_MARKING_QUEUE: Final = "threshold-marking"
#: Kinds of traffic whose on periods have a length in time, so that no flow completes.
_BY_TIME: Final = ("exponential_time", "always", "intervals")
_KINDS: Final = {
    "queue": Registry.QUEUE,
    "transport": Registry.TRANSPORT,
    "protocol": Registry.PROTOCOL,
}


def network_violations(
    network: spec_pb2.NetworkModel, path: str, bounds: Bounds
) -> Iterator[Violation]:
    """Checks that senders are given in one way, and that what they run fits the network."""
    if network.HasField("senders") and network.sender_groups:
        yield Violation(
            path, "has senders both as a number and as a list, but must have one of them"
        )
    yield from _choice_violations(network, "queue", path)
    bad_transport = [*_choice_violations(network, "transport", path)]
    yield from bad_transport
    if network.links:
        found = [*_link_list_violations(network, path), *_route_violations(network, path)]
        yield from found
        # Violations of single links are reported by the check of LinkModel.
        if not found and not any([*link_violations(link, "", bounds)] for link in network.links):
            yield from _zero_rtt_violations(network, path)
            yield from _simulated_link_violations(network, child_path(path, "links"))
    elif any(group.HasField("route") for group in network.sender_groups):
        yield Violation(
            child_path(path, "senders"), "have a route, but the network has no links to go over"
        )
    if bad_transport:
        return
    if network.sender_groups:
        yield from _senders_violations(network, child_path(path, "senders"))
    elif network.transport:
        (group,) = groups_of(network)
        yield from _group_violations(network, group, path)


def _link_list_violations(network: spec_pb2.NetworkModel, path: str) -> Iterator[Violation]:
    """Checks that names of links are distinct, and that no key describes a second bottleneck."""
    is_given_by_key = {
        "rate_mbps": network.HasField("rate_mbps"),
        "buffer": buffer_size(network.buffer) is not None,
        "loss_probability": extent(network.loss_probability)[1] > 0,
        "queue": bool(network.queue),
    }
    if given := [name for name, is_given in is_given_by_key.items() if is_given]:
        keys = " and ".join(given)
        yield Violation(path, f"has links and {keys}, but must give {keys} per link")
    names = link_names(network.links)
    for number in range(len(names)):
        where = f"{child_path(path, 'links')}[{number}]"
        if names.index(names[number]) < number:
            yield Violation(
                child_path(where, "name"),
                f"is {show(names[number])}, but another link has that name",
            )


def link_violations(link: spec_pb2.LinkModel, path: str, _: Bounds) -> Iterator[Violation]:
    """Checks that the queue and the trace of a link are known, and that it varies in one way."""
    yield from _choice_violations(link, "queue", path)
    if link.HasField("schedule") and link.HasField("walk"):
        yield Violation(path, "has schedule and walk, but must have one of them")
    if link.HasField("trace"):
        yield from _trace_violations(link.trace, child_path(path, "trace"))


def _trace_violations(trace: spec_pb2.TraceModel, path: str) -> Iterator[Violation]:
    if not trace.sha256:
        yield Violation(path, "must have path, the file of a trace, or sha256")
    elif not _SHA256.fullmatch(trace.sha256):
        yield Violation(
            child_path(path, "sha256"),
            f"is {show(trace.sha256)}, but must be 64 hexadecimal digits",
        )
    elif not trace.HasField("mean_rate_mbps"):
        yield Violation(
            child_path(path, "sha256"),
            f"is {show(trace.sha256)}, but no such trace is in the folder traces beside the "
            "specification, nor is its mean_rate_mbps given",
        )


def _route_violations(network: spec_pb2.NetworkModel, path: str) -> Iterator[Violation]:
    known = link_names(network.links)
    for number, group in enumerate(network.sender_groups):
        where = f"{child_path(path, 'senders')}[{number}].route"
        for key in ("links", "return_links"):
            for name in getattr(group.route, key):
                try:
                    link_index(name, known)
                except ValueError:
                    yield Violation(
                        f"{where}.{key}",
                        f"has {show(name)}, but the network's links are {', '.join(known)}",
                    )
        for key in ("delay_ms", "return_delay_ms"):
            if group.HasField("rtt_ms") and group.route.HasField(key):
                yield Violation(f"{where}.{key}", "is given beside rtt_ms, but only one is allowed")
        if group.route.return_links and not group.route.links:
            yield Violation(f"{where}.links", "is missing, and must be given beside return_links")


def _zero_rtt_violations(network: spec_pb2.NetworkModel, path: str) -> Iterator[Violation]:
    for number, each in enumerate(paths_of(network)):
        if not each.rtt_ms(lambda quantity: extent(quantity)[0]) > 0:
            where = f"{child_path(path, 'senders')}[{number}]"
            group = where if network.sender_groups else path
            yield Violation(
                group, "may have an RTT of 0 ms, but must have an rtt_ms or links with a delay_ms"
            )


def _simulated_link_violations(network: spec_pb2.NetworkModel, path: str) -> Iterator[Violation]:
    """Checks that the simulator accepts the links with their smallest and their largest values."""
    # Stands for any trace, because traces are checked when they are read.
    trace = LinkTrace((1000).to_bytes(8, "little"))
    for end in (0, 1):
        links = []
        for link in network.links:
            message = link_message(with_values_of(link, lambda each: extent(each)[end]))  # noqa: B023
            if message.HasField("trace"):
                message.trace.sha256 = trace.sha256
            links.append(message)
        always = evaluation_pb2.Traffic()
        always.always.SetInParent()
        if problem := _simulator_problem(always, links, [trace.message()]):
            yield Violation(path, f"cannot be simulated: {problem}")
            return


def _simulator_problem(
    traffic: evaluation_pb2.Traffic,
    links: Sequence[evaluation_pb2.Link] = (),
    traces: Sequence[evaluation_pb2.Trace] = (),
) -> str | None:
    """The simulator's reason to refuse a sender with this traffic and links; None if it accepts."""
    sender = evaluation_pb2.SenderGroup(count=1, protocol={"name": "cubic"}, traffic=traffic)
    network = evaluation_pb2.Specimen(
        link_rate_packets_per_ms=1.0, rtt_ms=1.0, senders=[sender], links=links
    )
    request = evaluation_pb2.EvaluationRequest(
        candidates=[{}], specimens=[network], duration_ms=0.001, traces=traces
    )
    try:
        remy_simulator.evaluate_columns(request)
    except remy_simulator.InvalidRequest as problem:
        return str(problem)
    return None


def traffic_violations(traffic: spec_pb2.TrafficModel, path: str, _: Bounds) -> Iterator[Violation]:
    """Checks that traffic has one kind of on and off times, and that the simulator accepts it."""
    kinds = [name for name in ("poisson", "periodic", "barrier") if traffic.HasField(name)]
    if len(kinds) > 1:
        yield Violation(path, f"has {' and '.join(kinds)}, but must have one of them")
    on = traffic.WhichOneof("on")
    if kinds and on in _BY_TIME:
        yield Violation(path, f"has {kinds[0]} and {on}, but must have flows by bytes")
    other = arrivals_of(traffic) or (on if on in ("always", "intervals") else None)
    if traffic.HasField("load") and on != "exponential_bytes":
        yield Violation(path, f"has load and {on}, but load needs exponential_bytes")
    if traffic.HasField("load") and traffic.HasField("mean_off_ms"):
        yield Violation(path, "has mean_off_ms and load, but must have one of them")
    for name in ("mean_off_ms", "load", "first_off_factor"):
        if other and traffic.HasField(name):
            yield Violation(path, f"has {name} and {other}, but must have one of them")
    if on in ("intervals", "empirical_bytes"):
        message = evaluation_pb2.Traffic(mean_off_ms=1.0)
        set_when_on(message, traffic)
        problem, name = _simulator_problem(message), message.empirical_bytes.name
        if problem and name:
            yield Violation(f"{path}.empirical_bytes.name", f"is {show(name)}: {problem}")
        elif problem:
            reason = problem.removeprefix("specimen.traffic.")
            yield Violation(path, f"cannot be simulated: {reason}")


def _choice_violations(
    message: spec_pb2.NetworkModel | spec_pb2.GroupModel | spec_pb2.LinkModel, name: str, path: str
) -> Iterator[Violation]:
    """A violation if the registry does not know the choice that a field names."""
    text = getattr(message, name)
    if message.HasField(name):
        try:
            parse_choice(_KINDS[name], text)
        except ValueError as error:
            yield Violation(child_path(path, name), f"is {show(text)}: {error}")


def _senders_violations(network: spec_pb2.NetworkModel, path: str) -> Iterator[Violation]:
    ends = [extent(group.count) for group in network.sender_groups]
    if sum(low for low, _ in ends) < 1:
        yield Violation(
            path,
            "may leave a network without senders; the smallest counts must add up to at least 1",
        )
    most = sum(high for _, high in ends)
    if most > _MAX_SENDERS:
        yield Violation(
            path, f"may add up to {most:.0f} senders, but must be at most {_MAX_SENDERS} together"
        )
    for number, group in enumerate(groups_of(network)):
        yield from _group_violations(network, group, f"{path}[{number}]")


def _group_violations(
    network: spec_pb2.NetworkModel, group: spec_pb2.GroupModel, path: str
) -> Iterator[Violation]:
    broken = [
        *_choice_violations(group, "protocol", path),
        *_choice_violations(group, "transport", path),
        *_choice_violations(network, "queue", path),
        *(each for link in network.links for each in _choice_violations(link, "queue", path)),
    ]
    # A bad queue is reported once, with the network.
    yield from (each for each in broken if not each.path.endswith("queue"))
    if broken or group.WhichOneof("controller") is None:
        return
    # A file that cannot be read has been reported already.
    if group.HasField("table") and not group.table.HasField("path"):
        problem = problem_with_table(group.table.json) if group.table.json else "is missing"
        if problem is not None:
            where = child_path(child_path(path, "table"), "json")
            yield Violation(where, problem)
    is_protocol = group.HasField("protocol")
    transport = transport_of(group)
    name = transport.name if transport is not None else "tcp" if is_protocol else "datagram"
    traits = registry.entries(Registry.TRANSPORT)[name].traits
    if (registry.RUNS_PROTOCOLS if is_protocol else registry.RUNS_TABLES) not in traits:
        carried = "RemyCCs only" if is_protocol else "protocols only"
        yield Violation(child_path(path, "transport"), f"is {show(name)}, but that runs {carried}")
    if _has_noise_of_datagrams(network) and registry.MEASURES not in traits:
        yield Violation(
            child_path(path, "transport"),
            f"is {show(name)}, but must be one that simulates measurement noise, such as datagram, "
            "because network.measurement has more than RTT offsets and reordering",
        )
    if not is_protocol:
        return
    needs = registry.entries(Registry.PROTOCOL)[
        parse_choice(Registry.PROTOCOL, group.protocol).name
    ].traits
    queue_texts = [link.queue for link in network.links] or [network.queue]
    queues = [parse_choice(Registry.QUEUE, each or _PLAIN_QUEUE).name for each in queue_texts]
    queue = " and ".join(dict.fromkeys(queues))
    is_router = any(
        registry.IS_XCP_ROUTER in registry.entries(Registry.QUEUE)[each].traits for each in queues
    )
    if registry.NEEDS_XCP_ROUTER in needs and not is_router:
        yield Violation(
            child_path(path, "protocol"),
            f"is {show(group.protocol)}, which needs an XCP router, but the network's queue is "
            f"{queue}",
        )
    others = any(
        each.WhichOneof("controller") != "protocol" or each.protocol != group.protocol
        for each in network.sender_groups
    )
    if registry.IS_ALONE in needs and others:
        yield Violation(
            child_path(path, "protocol"),
            f"is {show(group.protocol)}, which cannot share its link with other senders",
        )


def mixture_violations(spec: spec_pb2.DesignSpec, path: str) -> Iterator[Violation]:
    """Checks that some network has weight, and that some sender is designed and some is scored."""
    if spec.HasField("network") and spec.models:
        yield Violation(path, "has network and models, but must have one of them")
        return
    network = child_path(path, "network")
    where = child_path(path, "models") if spec.models else child_path(network, "senders")
    if spec.models and not any(model.weight > 0 for model in spec.models):
        yield Violation(where, "have weights that are all 0, but one must be positive")
        return
    drawn = [model for model in models(spec) if model.weight > 0]
    groups = [group for model in drawn for group in model.groups]
    # The senders of a model without groups are designed and scored.
    if all(model.network.sender_groups for model in drawn):
        if not any(group.HasField("design") and extent(group.count)[1] > 0 for group in groups):
            yield Violation(
                where, "have no group to design; one group with senders must have the key design"
            )
        elif not any(_is_scored(group) for group in groups):
            yield Violation(where, "have weights that are all 0, but one must be positive")
    mode = mode_of(spec)
    if len(names := designed_tables(spec)) > 1 and mode and not mode.designs_together:
        able = " or ".join(each.name for each in MODES if each.designs_together)
        yield Violation(
            where, f"design {' and '.join(names)} together, which needs search.mode {able}"
        )
    for name in names:
        if not _PLAIN_NAME.fullmatch(name):
            yield Violation(
                where,
                f"design {show(name)}, but names of tables must consist of letters, digits, dots, "
                "dashes and underscores, with a letter or digit first",
            )
    yield from _throughput_violations(spec, path)
    yield from _signal_violations(spec, path)


def _is_scored(group: spec_pb2.GroupModel) -> bool:
    weight = group.weight if group.HasField("weight") else 1.0
    return weight > 0 and extent(group.count)[1] > 0


def _throughput_violations(spec: spec_pb2.DesignSpec, path: str) -> Iterator[Violation]:
    for model in models(spec):
        for group in model.groups:
            objective = group.objective if group.HasField("objective") else spec.objective
            if (
                counts_flows(objective)
                and model.traffic_of(group).WhichOneof("on") in _BY_TIME
                and _is_scored(group)
            ):
                name = MEASURES[objective.throughput].name
                yield Violation(
                    child_path(child_path(path, "objective"), "throughput"),
                    f"is {name}, which needs flows that complete; use exponential_bytes or "
                    "flow_lengths",
                )
                return


def signals_told_by(spec: spec_pb2.DesignSpec, told_by: ToldBy) -> list[str]:
    """Names of the specification's signals that a sender learns from `told_by`."""
    forms = (
        form_of(axis, spec.rules) for axis in range(AXES) if signals.AXES[axis].told_by == told_by
    )
    return [form.name for form in forms if form.number in spec.signals]


def _signal_violations(spec: spec_pb2.DesignSpec, path: str) -> Iterator[Violation]:
    marks = signals_told_by(spec, ToldBy.MARKS)
    if marks and not any(_marks_packets(model.network) for model in models(spec)):
        yield Violation(
            child_path(path, "signals"),
            f"has {marks[0]}, but no queue marks packets; give network.queue: {_MARKING_QUEUE}",
        )


def _marks_packets(network: spec_pb2.NetworkModel) -> bool:
    """Whether a queue marks packets of ECN-capable senders."""
    texts = [link.queue for link in network.links] or [network.queue]
    return any(_is_marking(each or _PLAIN_QUEUE) for each in texts)


def _is_marking(text: str) -> bool:
    try:
        queue = parse_choice(Registry.QUEUE, text)
    except ValueError:
        # The check of the network reports this queue.
        return True
    given = {each.name: each.value for each in queue.parameters}
    variant = registry.entries(Registry.QUEUE)[queue.name].variant(queue.variant)
    usual = {each.name: each.default for each in variant.parameters}
    return queue.name == _MARKING_QUEUE or (usual | given).get("ecn", 0) != 0


def _has_noise_of_datagrams(network: spec_pb2.NetworkModel) -> bool:
    measurement = network.measurement
    """Whether the measurement model has noise that only datagram transports simulate."""
    noiseless = {"timestamp_resolution_ms": 0, "bunch_packets": 1, "delayed_ack_ms": 0}
    quantities = {name: getattr(measurement, name) for name in noiseless}
    jitter_ms = [extent(each)[1] for _, each in distributions(measurement.jitter)]
    return network.HasField("measurement") and (
        any(each > 0 for each in jitter_ms)
        or any(not each.HasField("exact") for each in quantities.values())
        or any(quantities[name].exact != value for name, value in noiseless.items())
    )
