"""Networks: what a specification says of them, and specimens drawn from that (section 4.3)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from google.protobuf import json_format

import remy_simulator
from remy_farm.specification.links import (
    BUFFER_OF_A_LINK,
    DROP_TAIL,
    USUAL_PACKET_BYTES,
    as_dumbbell,
    chosen,
    distributions,
    kilobits_per_packet,
    link_message,
    mean_rate_mbps,
    numbers_of,
    with_each,
    with_values,
)
from remy_proto.v1 import evaluation_pb2, rule_table_pb2, spec_pb2
from remy_simulator.registry import Registry
from remy_simulator.throughput import counts_flows

#: What the one table of a specification without groups is called.
USUAL_TABLE: Final = "remycc"

_USUAL_TRANSPORTS: Final = {"design": "datagram", "table": "datagram", "protocol": "tcp"}
_MEDIAN: Final = 0.5
_BELOW_ONE: Final = 1 - 2**-53
_NOTHING: Final = spec_pb2.Distribution()

# Numpy is loaded by who draws: most commands only read what a specification says.
if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    #: One number a specimen. What is done to all of them at a time has the bits of one by one.
    Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class Model:
    """Networks of one kind, and how many there are of them in proportion to others."""

    weight: float
    network: spec_pb2.NetworkModel

    def traffic_of(self, group: spec_pb2.GroupModel) -> spec_pb2.TrafficModel:
        """The load that senders of a group offer."""
        return group.traffic if group.HasField("traffic") else self.network.traffic

    @cached_property
    def groups(self) -> Sequence[spec_pb2.GroupModel]:
        """Its senders; those of a model without groups are one."""
        if self.network.sender_groups:
            return list(self.network.sender_groups)
        group = spec_pb2.GroupModel(design=USUAL_TABLE, count=self.network.senders)
        return [group]


def models(spec: spec_pb2.DesignSpec) -> list[Model]:
    """What networks are drawn from, in the specification's order."""
    if not spec.models:
        return [Model(1.0, _without_one_link(spec.network))]
    return [Model(each.weight, _without_one_link(each.network)) for each in spec.models]


def _without_one_link(network: spec_pb2.NetworkModel) -> spec_pb2.NetworkModel:
    return as_dumbbell(network) if network.links else network


def designs(spec: spec_pb2.DesignSpec) -> list[str]:
    """The names of the tables that are designed, in the order of their first mention."""
    groups = chain.from_iterable(model.groups for model in models(spec))
    return list(dict.fromkeys(group.design for group in groups if group.HasField("design")))


def given_tables(spec: spec_pb2.DesignSpec) -> list[rule_table_pb2.RuleTable]:
    """The tables that groups run and nobody designs: those of requests behind the designed ones."""
    return [json_format.Parse(text, rule_table_pb2.RuleTable()) for text in _given(spec)]


def _given(spec: spec_pb2.DesignSpec) -> list[str]:
    """As text, each once, in the order of their first mention."""
    groups = chain.from_iterable(model.groups for model in models(spec))
    return list(dict.fromkeys(group.table.json for group in groups if group.HasField("table")))


def transport_of(group: spec_pb2.GroupModel) -> evaluation_pb2.Choice | None:
    """What carries a group's senders; None where it is what usually does. Raises ValueError."""
    if not group.transport:
        return None
    transport = chosen(Registry.BODY, group.transport)
    usual = _USUAL_TRANSPORTS.get(group.WhichOneof("controller") or "")
    return None if transport == evaluation_pb2.Choice(name=usual) else transport


def outline(spec: spec_pb2.DesignSpec) -> Model:
    """All models as one that has a number of senders: for guesses, bounds and descriptions.

    Where models differ in a quantity it has the ends and the median of each with equal probability.
    """
    every = models(spec)
    first = every[0]
    if len(every) == 1 and not first.network.sender_groups and not first.network.links:
        return first
    network = spec_pb2.NetworkModel()
    network.CopyFrom(first.network)
    network.ClearField("sender_groups")
    network.ClearField("links")
    if first.network.links:
        network.loss_probability.CopyFrom(first.network.links[0].loss_probability)
        network.buffer.infinite.SetInParent()
    outlines = [_paths(each.network) for each in every]
    for name in ("rate_mbps", "rtt_ms", "loss_probability"):
        network.ClearField(name)
        getattr(network, name).CopyFrom(_any_of([getattr(each, name) for each in outlines]))
    network.senders.list.values.extend(
        chain.from_iterable(map(sorted, zip(*map(_senders, every), strict=True)))
    )
    designed = [group for group in first.groups if group.HasField("design")]
    network.traffic.CopyFrom(first.traffic_of((designed or first.groups)[0]))
    return Model(1.0, network)


def _paths(network: spec_pb2.NetworkModel) -> spec_pb2.NetworkModel:
    """A network whose paths differ as one bottleneck: the slowest link, and the ends and the median
    of what RTTs may be."""
    takes: list[Callable[[spec_pb2.Distribution], float]] = [
        lambda each: extent(each)[0],
        lambda each: quantile(each, _MEDIAN),
        lambda each: extent(each)[1],
    ]
    rtts = [group.rtt_ms for group in network.sender_groups if group.HasField("rtt_ms")]
    if not network.links and not rtts:
        return network
    found = spec_pb2.NetworkModel()
    found.rate_mbps.CopyFrom(network.rate_mbps)
    found.loss_probability.CopyFrom(network.loss_probability)
    shortest, usual, longest = ([path.rtt_ms(take) for path in paths_of(network)] for take in takes)
    ends = [min(shortest), sorted(usual)[len(usual) // 2], max(longest)]
    found.rtt_ms.list.values.extend(ends)
    if network.links:
        each = [[mean_rate_mbps(with_each(link, take)) for link in network.links] for take in takes]
        found.rate_mbps.list.values.extend(sorted(map(min, each)))
        found.loss_probability.CopyFrom(network.links[0].loss_probability)
    return found


@dataclass(frozen=True, slots=True)
class Path:
    """The way of a group's packets and of the ACKs for them."""

    rtt: spec_pb2.Distribution
    """Without that of links."""
    links: list[int]
    return_links: list[int]
    delays: list[spec_pb2.Distribution]
    """Of the links that packets and ACKs cross."""

    def rtt_ms(self, take: Callable[[spec_pb2.Distribution], float]) -> float:
        """Without queueing and service."""
        return take(self.rtt) + sum(map(take, self.delays))


def paths_of(network: spec_pb2.NetworkModel) -> list[Path]:
    """Of each group; of all senders where there are no groups. Raises ValueError for a route over a
    link that is not there."""
    paths = []
    for group in network.sender_groups or [spec_pb2.GroupModel()]:
        rtt = group.rtt_ms if group.HasField("rtt_ms") else network.rtt_ms
        if not network.links:
            paths.append(Path(rtt, [], [], []))
            continue
        there = numbers_of(group.route.links, network.links) or range(len(network.links))
        back = numbers_of(group.route.return_links, network.links)
        delays = [network.links[number].delay_ms for number in (*there, *back)]
        paths.append(Path(rtt, list(there), back, delays))
    return paths


def _senders(model: Model) -> tuple[float, float, float]:
    """The fewest, the median number and the most."""
    counts = [group.count for group in model.groups]
    ends = [extent(count) for count in counts]
    return (
        max(sum(low for low, _ in ends), 1.0),
        max(sum(quantile(count, _MEDIAN) for count in counts), 1.0),
        sum(high for _, high in ends),
    )


def _any_of(distributions: Sequence[spec_pb2.Distribution]) -> spec_pb2.Distribution:
    if all(each == distributions[0] for each in distributions):
        return distributions[0]
    values = chain.from_iterable((*extent(each), quantile(each, _MEDIAN)) for each in distributions)
    mixed = spec_pb2.Distribution()
    mixed.list.values.extend(sorted(values))
    return mixed


# Distributions: quantiles and ends of what a quantity may be


def is_varied(distribution: spec_pb2.Distribution) -> bool:
    """Whether draws from the distribution differ."""
    return distribution.WhichOneof("kind") not in (None, "exact")


def quantile(distribution: spec_pb2.Distribution, probability: float) -> float:
    """The value below which `probability`, in [0, 1), of the distribution lies.

    Never outside of the distribution's ends, whatever is rounded on the way.
    """
    import numpy as np

    return float(quantiles(distribution, np.array([probability]))[0])


def quantiles(distribution: spec_pb2.Distribution, probabilities: Numbers) -> Numbers:
    """The same for several probabilities."""
    import numpy as np

    match distribution.WhichOneof("kind"):
        case "uniform":
            low, high = distribution.uniform.low, distribution.uniform.high
            return np.clip(low + probabilities * (high - low), low, high)
        case "log_uniform":
            low, high = distribution.log_uniform.low, distribution.log_uniform.high
            width = remy_simulator.log(high) - remy_simulator.log(low)
            # Numpy's own exponential is not the same on all machines.
            growth = [remy_simulator.exp(each) for each in (probabilities * width).tolist()]
            return np.clip(low * np.array(growth), low, high)
        case "integer_uniform":
            first, last = distribution.integer_uniform.low, distribution.integer_uniform.high
            places = np.floor(probabilities * (last - first + 1))
            return np.asarray(np.minimum(first + places, last))
        case "list":
            values = np.array(distribution.list.values)
            place = (probabilities * len(values)).astype(np.intp)
            return values[np.minimum(place, len(values) - 1)]
        case _:
            return np.full(len(probabilities), distribution.exact)


def extent(distribution: spec_pb2.Distribution) -> tuple[float, float]:
    """The smallest and the largest value that can be drawn; 0 where nothing can."""
    match distribution.WhichOneof("kind"):
        case "uniform" | "log_uniform" | "integer_uniform" as kind:
            limits = getattr(distribution, kind)
            return limits.low, limits.high
        case "list":
            values = distribution.list.values or [0.0]
            return min(values), max(values)
        case _:
            return distribution.exact, distribution.exact


# Drawing: "16 or more network specimens" a step


class Quantity(IntEnum):
    """What a draw is for: the last element of its path, so that no two quantities share a draw.

    The numbers are part of what a seed means, and never change.
    """

    KEY = 0
    LINK_RATE = 1
    RTT = 2
    SENDERS = 3
    BUFFER = 4
    LOSS = 5
    ON = 6
    OFF = 7
    SHUFFLE = 8
    JITTER = 9
    TIMESTAMP_RESOLUTION = 10
    JITTER_PERCENTILE_99 = 11
    BUNCH = 12
    DELAYED_ACK = 13
    MODEL = 14
    ARRIVAL = 15
    RTT_OFFSET = 16
    REORDERING = 17
    REORDERING_DELAY = 18


# Quantities of a group are numbered behind these, and behind those of the groups before.
_GROUPS: Final = 1000
_A_GROUP: Final = 100
# Those of links behind these of all groups. The first link of a network has the draws of the one
# link of a dumbbell.
_LINKS: Final = 1_000_000
_A_LINK: Final = 100_000
_DELAY: Final = spec_pb2.LinkModel.DELAY_MS_FIELD_NUMBER
_FIRST_LINK: Final = {
    spec_pb2.LinkModel.RATE_MBPS_FIELD_NUMBER: Quantity.LINK_RATE,
    BUFFER_OF_A_LINK: Quantity.BUFFER,
    spec_pb2.LinkModel.LOSS_PROBABILITY_FIELD_NUMBER: Quantity.LOSS,
}


class Networks:
    """What specimens of a specification are drawn from, and what all draws have in common."""

    def __init__(self, spec: spec_pb2.DesignSpec) -> None:
        self.models = models(spec)
        self.paths = [paths_of(model.network) for model in self.models]
        self.designs = designs(spec)
        self.given = _given(spec)
        #: By model, whether flows are counted.
        self.count_flows = [
            any(
                counts_flows(objective)
                for objective in (spec.objective, *(group.objective for group in model.groups))
            )
            for model in self.models
        ]

    def draw(
        self, *, seed: int, count: int, first_index: int = 0, stratified: bool = False
    ) -> evaluation_pb2.SpecimenColumns:
        """Specimens `first_index`, `first_index` + 1, ... of the stream that `seed` names.

        `seed` is 64 bits: a number from the user, or remy_simulator.mix(search.seed, purpose, ...).
        Without `stratified` a specimen depends on its seed and index alone. With it, each quantity
        falls once into each of `count` equally probable strata, in an order of its own (a Latin
        hypercube), which makes the mean over the specimens less noisy.
        """
        import numpy as np

        draws = _Draws(seed, first_index, count, stratified)
        columns = evaluation_pb2.SpecimenColumns(keys=draws.keys())
        mixture = [
            (_Drawn(self, number, own), own.places)
            for number, own in enumerate(draws.by_model(self.models))
        ]

        def column(of: Callable[[_Drawn], Numbers]) -> Numbers:
            if len(mixture) == 1:
                return of(mixture[0][0])
            whole = np.empty(count)
            for drawn, places in mixture:
                whole[places] = of(drawn)
            return whole

        columns.link_rates_packets_per_ms = (
            column(lambda drawn: drawn.rates_packets_per_ms)
        ).tobytes()
        columns.rtts_ms = column(lambda drawn: drawn.rtts_ms).tobytes()
        losses = column(lambda drawn: drawn.losses)
        if losses.any():
            columns.loss_probabilities = losses.tobytes()
        buffers = column(lambda drawn: drawn.buffers)
        if buffers.any():
            columns.buffers.extend(buffers.astype(np.int64).tolist())
        first = mixture[0][0]
        if len(mixture) == 1 and first.are_of_one_kind():
            first.set_kind(columns.kinds.add(), *first.kind_and_counts())
            columns.sender_counts.extend(np.array(first.counts).T.ravel().tolist())
            return columns
        rows: list[tuple[_Drawn, Sequence[float], Sequence[int]]] = [
            (drawn, quantities, counts)
            for drawn, _ in mixture
            for quantities, counts in drawn.kinds_and_counts()
        ]
        if len(mixture) > 1:
            by_place = np.argsort(np.concatenate([places for _, places in mixture]), kind="stable")
            rows = [rows[place] for place in by_place.tolist()]
        _set_kinds(columns, rows)
        return columns


def _set_kinds(
    columns: evaluation_pb2.SpecimenColumns,
    rows: Sequence[tuple[_Drawn, Sequence[float], Sequence[int]]],
) -> None:
    """`rows` have a specimen's model, the quantities of its kind, and how many of each group."""
    numbers: dict[_Kind, int] = {}
    kind = []
    for drawn, quantities, counts in rows:
        name = (drawn.number, *quantities, *(number > 0 for number in counts))
        number = numbers.setdefault(name, len(numbers))
        kind.append(number)
        if number == len(columns.kinds):
            drawn.set_kind(columns.kinds.add(), quantities, counts)
    columns.sender_counts.extend(number for _, _, counts in rows for number in counts if number > 0)
    if len(numbers) > 1:
        columns.kind.extend(kind)


class _Draws:
    """Uniform variates by quantity, and what distributions make of them.

    Those of a model in a mixture are for some of the specimens: their places among all. Its
    quantities are stratified over these alone.
    """

    def __init__(
        self,
        seed: int,
        first_index: int,
        count: int,
        stratified: bool,
        model: int | None = None,
        places: NDArray[np.intp] | None = None,
    ) -> None:
        self._seed = seed
        self._first = first_index
        self._all = count
        self._stratified = stratified
        self._model = () if model is None else (model,)
        self.places = places
        #: How many specimens they are for.
        self.count = count if places is None else len(places)

    def by_model(self, mixture: Sequence[Model]) -> list[_Draws]:
        """Those of each model of a mixture, by the models' weights."""
        import numpy as np

        if len(mixture) == 1:
            return [self]
        total = sum(model.weight for model in mixture)
        ends, end = [], 0.0
        for model in mixture:
            end += model.weight / total
            ends.append(end)
        # Rounding may leave the last end below 1: what lies behind is the last's that has weight.
        ends[max(n for n, model in enumerate(mixture) if model.weight > 0) :] = [1.0]
        numbers = np.searchsorted(np.array(ends), self._uniform(Quantity.MODEL), side="right")
        shared = self._seed, self._first, self._all, self._stratified
        return [
            _Draws(*shared, number, np.flatnonzero(numbers == number))
            for number in range(len(mixture))
        ]

    def keys(self) -> bytes:
        """Of the specimens."""
        return remy_simulator.mixed(self._seed, self._first, self._all, Quantity.KEY)

    def values(self, distribution: spec_pb2.Distribution, quantity: int) -> Numbers:
        """One a specimen. What does not vary takes no draw: draws are named, so none is shifted."""
        import numpy as np

        if not is_varied(distribution):
            return np.full(self.count, distribution.exact)
        return quantiles(distribution, self._uniform(quantity))

    def _uniform(self, quantity: int) -> Numbers:
        """In [0, 1)."""
        import numpy as np

        variates = np.array(remy_simulator.uniforms(self._seed, self._first, self._all, quantity))
        if self.places is not None:
            variates = variates[self.places]
        if not self._stratified:
            return variates
        order = remy_simulator.shuffled(
            self.count, self._seed, self._first, Quantity.SHUFFLE, quantity, *self._model
        )
        spread: Numbers = np.minimum((np.array(order) + variates) / self.count, _BELOW_ONE)
        return spread


#: What specimens of a kind have in common beside the model: its number; what `_noise` gives; by
#: load mean time or bytes on (0 where it has the lengths of flows) and mean time off; which groups.
_Kind = tuple[float, ...]


class _Drawn:
    """What was drawn for the specimens of one model."""

    def __init__(self, networks: Networks, number: int, draws: _Draws) -> None:
        import numpy as np

        self.number = number
        self._networks = networks
        model = self._model = networks.models[number]
        self._groups = model.groups
        network = self._network = model.network
        #: One more than the packets of each, 0 where it is infinite.
        self.buffers = np.zeros(draws.count)
        self.losses = np.zeros(draws.count)
        # By link and by group, what was drawn for it.
        self._links = [
            {
                number: draws.values(
                    each,
                    _FIRST_LINK.get(number, number + _LINKS)
                    if place == 0
                    else number + _LINKS + _A_LINK * place,
                )
                for number, each in distributions(link)
            }
            for place, link in enumerate(network.links)
        ]
        if network.links:
            self.rates_mbps = np.minimum.reduce(
                [
                    self._mean_rates_mbps(*each)
                    for each in zip(network.links, self._links, strict=True)
                ]
            )
        else:
            self.rates_mbps = draws.values(network.rate_mbps, Quantity.LINK_RATE)
            self.losses = draws.values(network.loss_probability, Quantity.LOSS)
            if network.buffer.HasField("packets"):
                self.buffers = draws.values(network.buffer.packets, Quantity.BUFFER) + 1
        self.rtts_ms = draws.values(network.rtt_ms, Quantity.RTT)
        own_rtts = [
            draws.values(group.rtt_ms, _GROUPS + _A_GROUP * place + Quantity.RTT)
            if group.HasField("rtt_ms")
            else self.rtts_ms
            for place, group in enumerate(self._groups)
        ]
        self._paths = networks.paths[number]
        if network.links or not network.HasField("rtt_ms"):
            self.rtts_ms = np.maximum.reduce(
                [
                    rtt
                    + sum(
                        self._links[number][_DELAY] for number in (*path.links, *path.return_links)
                    )
                    for rtt, path in zip(own_rtts, self._paths, strict=True)
                ]
            )
        self._kilobits = kilobits_per_packet(network)
        #: How fast the bottleneck is.
        self.rates_packets_per_ms = self.rates_mbps / self._kilobits
        packet_ms = self._kilobits / self.rates_mbps
        self._quantities = (
            [*_noise(network.measurement, draws.values, packet_ms)]
            if network.HasField("measurement")
            else [np.zeros(draws.count)] * _NOISES
        )
        #: The model's load, then those of groups that have their own; each with what its quantities
        #: are numbered behind.
        own = [
            (group.traffic, _GROUPS + _A_GROUP * place)
            for place, group in enumerate(self._groups)
            if group.HasField("traffic")
        ]
        for load, behind in ((network.traffic, 0), *own):
            for of, quantity in zip(_quantities_of(load), _LOAD, strict=True):
                self._quantities.append(draws.values(of, behind + quantity))
        self._first_link = len(self._quantities)
        self._quantities += [column for link in self._links for column in link.values()]
        self._first_rtt = len(self._quantities)
        #: The groups that have a way of their own.
        self._routed = [bool(network.links) or group.HasField("rtt_ms") for group in self._groups]
        self._quantities += [
            rtt for rtt, is_routed in zip(own_rtts, self._routed, strict=True) if is_routed
        ]
        #: By group, the senders of each specimen.
        self.counts = [
            draws.values(
                group.count,
                Quantity.SENDERS + (_GROUPS + _A_GROUP * place if network.sender_groups else 0),
            ).astype(np.int64)
            for place, group in enumerate(self._groups)
        ]

    def _mean_rates_mbps(self, link: spec_pb2.LinkModel, drawn: dict[int, Numbers]) -> Numbers:
        import numpy as np

        plain = link.HasField("rate_mbps") and not (
            link.HasField("schedule") or link.HasField("walk")
        )
        if plain:
            return drawn[spec_pb2.LinkModel.RATE_MBPS_FIELD_NUMBER]
        rows = [*zip(*(column.tolist() for column in drawn.values()), strict=True)]
        means: dict[tuple[float, ...], float] = {}
        for row in rows:
            if row not in means:
                means[row] = mean_rate_mbps(with_values(link, row))
        return np.array([means[row] for row in rows])

    def are_of_one_kind(self) -> bool:
        """Whether specimens differ in numbers only, and all have senders of all groups."""
        return all(
            # Numpy takes longer to compare so few.
            values.tobytes() == values[:1].tobytes() * len(values)
            for values in self._quantities
        ) and all(column.all() for column in self.counts)

    def kind_and_counts(self) -> tuple[Sequence[float], Sequence[int]]:
        """The same as the first of `kinds_and_counts`."""
        return [float(each[0]) for each in self._quantities], [int(each[0]) for each in self.counts]

    def kinds_and_counts(self) -> Iterable[tuple[Sequence[float], Sequence[int]]]:
        """By specimen: the quantities of its kind, and the senders of each group."""
        counts = zip(*(column.tolist() for column in self.counts), strict=True)
        quantities = zip(*(column.tolist() for column in self._quantities), strict=True)
        return zip(quantities, counts, strict=True)

    def set_kind(
        self,
        message: evaluation_pb2.SpecimenKind,
        quantities: Sequence[float],
        counts: Sequence[int],
    ) -> None:
        """What specimens have in common that have such quantities, and groups where counts are."""
        measured, loads = quantities[:_NOISES], quantities[_NOISES : self._first_link]
        network = self._network
        if network.HasField("measurement"):
            message.measurement.SetInParent()
            _set_measurement(message.measurement, network.measurement, measured)
        if network.queue and (queue := chosen(Registry.QUEUE, network.queue)) != DROP_TAIL:
            message.bottleneck.queue.CopyFrom(queue)
        if network.packet_bytes not in (0, USUAL_PACKET_BYTES):
            message.bottleneck.packet_bytes = network.packet_bytes
        if network.ack_bytes:
            message.bottleneck.ack_bytes = network.ack_bytes
        if self._networks.count_flows[self.number]:
            # Where flows are counted is the general network, which has a bottleneck of any kind.
            message.bottleneck.SetInParent()
        values = iter(quantities[self._first_link :])
        for link, drawn in zip(network.links, self._links, strict=True):
            exact = with_values(link, [next(values) for _ in drawn])
            message.links.add().CopyFrom(link_message(exact, lambda mbps: mbps / self._kilobits))
        size = len(_LOAD)
        of_model, *own = (loads[place : place + size] for place in range(0, len(loads), size))
        groups = zip(self._groups, counts, self._paths, self._routed, strict=True)
        for group, count, path, is_routed in groups:
            load = own.pop(0) if group.HasField("traffic") else of_model
            rtt_ms = next(values) if is_routed else None
            if count > 0:
                senders = message.senders.add()
                self._set_group(senders, group)
                _set_traffic(senders.traffic, self._model.traffic_of(group), *load)
                if rtt_ms is not None:
                    _set_route(senders.route, path, rtt_ms)

    def _set_group(self, message: evaluation_pb2.SenderGroup, group: spec_pb2.GroupModel) -> None:
        if group.HasField("design"):
            message.table = self._networks.designs.index(group.design)
        elif group.HasField("table"):
            given = self._networks.given.index(group.table.json)
            message.table = len(self._networks.designs) + given
        else:
            message.protocol.CopyFrom(chosen(Registry.PROTOCOL, group.protocol))
        if (transport := transport_of(group)) is not None:
            message.body.CopyFrom(transport)
        if group.HasField("weight") and group.weight != 1:
            message.weight = group.weight
        if group.HasField("objective"):
            message.objective.CopyFrom(group.objective)


_NOISES: Final = 8


def _noise(model: spec_pb2.MeasurementModel, values: Callable[..., Any], packet_ms: Any) -> Any:
    """Jitter, a log-normal one's 99th percentile, resolution and delay of ACKs, ms; bunches; what
    offsets are at most, ms; how probable it is that packets are late, and by how many ms."""
    jitter, kind = model.jitter, model.jitter.WhichOneof("kind")
    log_normal = jitter.log_normal
    size = log_normal.median_ms if kind == "log_normal" else getattr(jitter, kind or "", _NOTHING)
    unit_ms = packet_ms if kind == "exponential_mean_packets" else 1.0
    return [
        values(size, Quantity.JITTER) * unit_ms,
        values(log_normal.percentile_99_ms, Quantity.JITTER_PERCENTILE_99),
        values(model.timestamp_resolution_ms, Quantity.TIMESTAMP_RESOLUTION),
        values(model.delayed_ack_ms, Quantity.DELAYED_ACK),
        values(model.bunch_packets, Quantity.BUNCH),
        values(model.rtt_offset_maximum_ms, Quantity.RTT_OFFSET),
        values(model.reordering.probability, Quantity.REORDERING),
        values(model.reordering.delay_ms, Quantity.REORDERING_DELAY),
    ]


def _set_measurement(
    message: evaluation_pb2.Measurement, model: spec_pb2.MeasurementModel, values: Iterable[float]
) -> None:
    jitter_ms, percentile_99_ms, resolution_ms, message.delayed_ack_ms, bunch, *rest = values
    message.rtt_offset_maximum_ms, message.reordering_probability, message.reordering_delay_ms = (
        rest
    )
    message.timestamp_resolution_ms = resolution_ms
    # Bunches of one are none.
    message.bunch_packets = int(bunch) if bunch > 1 else 0
    match model.jitter.WhichOneof("kind"):
        case "exponential_mean_ms" | "exponential_mean_packets":
            message.exponential_jitter_mean_ms = jitter_ms
        case "uniform_maximum_ms":
            message.uniform_jitter_maximum_ms = jitter_ms
        case "log_normal":
            message.log_normal_jitter.median_ms = jitter_ms
            message.log_normal_jitter.percentile_99_ms = percentile_99_ms


def typical_measurement(model: spec_pb2.MeasurementModel) -> evaluation_pb2.Measurement:
    """The median of each quantity of a model that has none in packet times."""
    message = evaluation_pb2.Measurement()
    _set_measurement(message, model, _noise(model, lambda each, _: quantile(each, 0.5), 1.0))
    return message


# Of a load, in the order of `_quantities_of`.
_LOAD: Final = (Quantity.ON, Quantity.OFF, Quantity.ARRIVAL)


def _quantities_of(load: spec_pb2.TrafficModel) -> tuple[spec_pb2.Distribution, ...]:
    """Mean time or bytes on, mean time off, and time from one flow to the next."""
    on = {
        "exponential_time": load.exponential_time.mean_ms,
        "exponential_bytes": load.exponential_bytes.mean_bytes,
        "constant_bytes": load.constant_bytes.bytes,
    }.get(load.WhichOneof("on") or "", _NOTHING)
    arrival = {
        "poisson": load.poisson.mean_interval_ms,
        "periodic": load.periodic.interval_ms,
        "barrier": load.barrier.pause_ms,
    }.get(arrivals_of(load) or "", _NOTHING)
    return on, load.mean_off_ms, arrival


def arrivals_of(load: spec_pb2.TrafficModel) -> str | None:
    """What says when flows come in place of an off time; None where that says it."""
    given = (name for name in ("poisson", "periodic", "barrier") if load.HasField(name))
    return next(given, None)


def _set_traffic(
    message: evaluation_pb2.Traffic,
    load: spec_pb2.TrafficModel,
    on: float,
    mean_off_ms: float,
    arrival_ms: float,
) -> None:
    set_when_on(message, load, on)
    match arrivals_of(load):
        case "poisson":
            message.poisson.mean_interval_ms = arrival_ms
        case "periodic":
            message.periodic.interval_ms = arrival_ms
        case "barrier":
            message.barrier.pause_ms = arrival_ms
    message.mean_off_ms = mean_off_ms
    if load.HasField("first_off_factor") and load.first_off_factor != 1:
        message.first_off_factor = load.first_off_factor


def set_when_on(
    message: evaluation_pb2.Traffic, load: spec_pb2.TrafficModel, drawn: float = 0.0
) -> None:
    """How long senders are on; `drawn` is the mean or constant of it, where there is one."""
    match load.WhichOneof("on"):
        case "exponential_time":
            message.exponential_time.mean_ms = drawn
        case "exponential_bytes":
            message.exponential_bytes.mean_bytes = drawn
        case "constant_bytes":
            message.constant_bytes.bytes = drawn
        case "empirical_bytes":
            lengths = load.empirical_bytes
            # Quantiles of one's own take the place of those that have a name.
            if not lengths.probabilities and not lengths.bytes:
                message.empirical_bytes.name = lengths.name
            message.empirical_bytes.probabilities.extend(lengths.probabilities)
            message.empirical_bytes.bytes.extend(lengths.bytes)
            message.empirical_bytes.extra_bytes = lengths.extra_bytes
        case "always":
            message.always.SetInParent()
        case "intervals":
            message.intervals.begin_ms.extend(load.intervals.begin_ms)
            message.intervals.end_ms.extend(load.intervals.end_ms)
        case _:
            flows = load.flow_lengths
            for name in ("scale_bytes", "shape", "shift_bytes", "extra_bytes", "maximum_bytes"):
                setattr(message.pareto_bytes, name, getattr(flows, name))


def _set_route(message: evaluation_pb2.Route, path: Path, rtt_ms: float) -> None:
    message.links.extend(path.links)
    message.return_links.extend(path.return_links)
    message.delay_ms = rtt_ms / 2
    message.return_delay_ms = rtt_ms - message.delay_ms
