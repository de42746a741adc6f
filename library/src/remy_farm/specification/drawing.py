"""Drawing: the networks that a specification's models stand for (section 4.3, "16 or more network
specimens")."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Final

import remy_simulator
from remy_farm.specification.distributions import Quantity, is_varied, quantiles
from remy_farm.specification.links import (
    BUFFER_OF_A_LINK,
    DROP_TAIL,
    MOST_BUFFER_PACKETS,
    USUAL_PACKET_BYTES,
    buffer_packets,
    buffer_size,
    chosen,
    distributions,
    in_packets,
    kilobits_per_packet,
    link_message,
    mean_rate_mbps,
    number_of_size,
    with_values,
)
from remy_farm.specification.models import (
    Model,
    designs,
    given_texts,
    models,
    paths_of,
    transport_of,
)
from remy_farm.specification.specimens import (
    LOAD_QUANTITIES,
    NOISES,
    drawn_of_load,
    noise,
    set_group,
    set_measurement,
    set_route,
    set_traffic,
)
from remy_proto.v1 import evaluation_pb2, spec_pb2
from remy_simulator.registry import Registry
from remy_simulator.throughput import counts_flows

_BELOW_ONE: Final = 1 - 2**-53

# Numpy is loaded by who draws: most commands only read what a specification says.
if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from remy_farm.specification.distributions import Numbers


# Quantities of a group are numbered behind these, and behind those of the groups before.
_GROUPS: Final = 1000
_A_GROUP: Final = 100
# Quantities of links are numbered behind those of all groups. The first link of a network has the
# draws of a dumbbell's one link.
_LINKS: Final = 1_000_000
_A_LINK: Final = 100_000
_DELAY: Final = spec_pb2.LinkModel.DELAY_MS_FIELD_NUMBER
_FIRST_LINK: Final = {
    spec_pb2.LinkModel.RATE_MBPS_FIELD_NUMBER: Quantity.LINK_RATE,
    BUFFER_OF_A_LINK: Quantity.BUFFER,
    spec_pb2.LinkModel.LOSS_PROBABILITY_FIELD_NUMBER: Quantity.LOSS,
}


class Networks:
    """Draws specimens of a specification: its models, and what is computed of them once."""

    def __init__(self, spec: spec_pb2.DesignSpec) -> None:
        self.models = models(spec)
        self.paths = [paths_of(model.network) for model in self.models]
        self.designs = designs(spec)
        self.given = given_texts(spec)
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
        #: The number of specimens that variates are drawn for.
        self.count = count if places is None else len(places)

    def by_model(self, mixture: Sequence[Model]) -> list[_Draws]:
        """Divides the specimens among the models of a mixture, by the models' weights."""
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
        """Draws the keys of the specimens, 8 bytes each."""
        return remy_simulator.mixed(self._seed, self._first, self._all, Quantity.KEY)

    def values(self, distribution: spec_pb2.Distribution, quantity: int) -> Numbers:
        """One a specimen. What does not vary takes no draw: draws are named, so none is shifted."""
        import numpy as np

        if not is_varied(distribution):
            return np.full(self.count, distribution.exact)
        return quantiles(distribution, self._uniform(quantity))

    def _uniform(self, quantity: int) -> Numbers:
        """Draws a variate in [0, 1) for each specimen."""
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


#: The key by which specimens are of one kind: the model's number, the values of `noise`, those of
#: `drawn_of_load` for each load, those of links and RTTs, and which groups have senders.
_Kind = tuple[float, ...]


class _Drawn:
    """The values that were drawn for the specimens of one model."""

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
        self.rtts_ms = draws.values(network.rtt_ms, Quantity.RTT)
        self._paths = networks.paths[number]
        own_rtts = [
            draws.values(path.rtt, _GROUPS + _A_GROUP * place + Quantity.RTT)
            if group.HasField("rtt_ms") or path.there_ms is not None
            else self.rtts_ms
            for place, (group, path) in enumerate(zip(self._groups, self._paths, strict=True))
        ]
        longest_ms: Numbers = np.maximum.reduce(
            [
                rtt
                + sum(self._links[number][_DELAY] for number in (*path.links, *path.return_links))
                for rtt, path in zip(own_rtts, self._paths, strict=True)
            ]
        )
        if network.links or not network.HasField("rtt_ms"):
            self.rtts_ms = longest_ms
        self._kilobits = kilobits_per_packet(network)
        #: The rate of the slowest link.
        self.rates_packets_per_ms = self.rates_mbps / self._kilobits
        packet_ms = self._kilobits / self.rates_mbps
        size = None if network.links else buffer_size(network.buffer)
        if size is not None:
            drawn = draws.values(size, Quantity.BUFFER)
            self.buffers = self._packets(network.buffer, drawn, self.rates_mbps, longest_ms) + 1
        for link, columns in zip(network.links, self._links, strict=True):
            if in_packets(link) is not link:
                key = number_of_size(link)
                rates = self._mean_rates_mbps(link, columns)
                columns[key] = self._packets(link.buffer, columns[key], rates, longest_ms)
        self._quantities = (
            [*noise(network.measurement, draws.values, packet_ms)]
            if network.HasField("measurement")
            else [np.zeros(draws.count)] * NOISES
        )
        #: By group, the senders of each specimen.
        self.counts = [
            draws.values(
                group.count,
                Quantity.SENDERS + (_GROUPS + _A_GROUP * place if network.sender_groups else 0),
            ).astype(np.int64)
            for place, group in enumerate(self._groups)
        ]
        #: The model's load, then those of groups that have their own; each with what its quantities
        #: are numbered behind.
        own = [
            (group.traffic, _GROUPS + _A_GROUP * place)
            for place, group in enumerate(self._groups)
            if group.HasField("traffic")
        ]
        shared = sum(
            count
            for group, count in zip(self._groups, self.counts, strict=True)
            if not group.HasField("traffic")
        )
        counts = {_GROUPS + _A_GROUP * place: count for place, count in enumerate(self.counts)}
        for load, behind in ((network.traffic, 0), *own):
            self._quantities += drawn_of_load(
                load,
                lambda of, quantity: draws.values(of, behind + quantity),  # noqa: B023
                counts.get(behind, shared),
                self.rates_mbps,
            )
        self._first_link = len(self._quantities)
        self._quantities += [column for link in self._links for column in link.values()]
        self._first_rtt = len(self._quantities)
        #: The groups that have a way of their own.
        self._routed = [bool(network.links) or group.HasField("rtt_ms") for group in self._groups]
        self._quantities += [
            rtt for rtt, is_routed in zip(own_rtts, self._routed, strict=True) if is_routed
        ]

    def _packets(
        self, buffer: spec_pb2.Buffer, size: Numbers, rates_mbps: Numbers, rtts_ms: Numbers
    ) -> Numbers:
        """Whole packets that a buffer of each size holds, on links of these rates and RTTs."""
        import numpy as np

        packets: Numbers = buffer_packets(
            buffer,
            size,
            rate_packets_per_ms=rates_mbps / self._kilobits,
            rtt_ms=rtts_ms,
            packet_bytes=self._network.packet_bytes or USUAL_PACKET_BYTES,
        )
        return np.minimum(np.floor(packets), MOST_BUFFER_PACKETS)

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
        """The first of `kinds_and_counts`, for specimens that are all of one kind."""
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
        """Fills in the kind of the specimens with these quantities, and with the groups whose count
        is above 0."""
        measured, loads = quantities[:NOISES], quantities[NOISES : self._first_link]
        network = self._network
        if network.HasField("measurement"):
            message.measurement.SetInParent()
            set_measurement(message.measurement, network.measurement, measured)
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
            exact = with_values(in_packets(link), [next(values) for _ in drawn])
            message.links.add().CopyFrom(link_message(exact, lambda mbps: mbps / self._kilobits))
        size = LOAD_QUANTITIES
        of_model, *own = (loads[place : place + size] for place in range(0, len(loads), size))
        groups = zip(self._groups, counts, self._paths, self._routed, strict=True)
        for group, count, path, is_routed in groups:
            load = own.pop(0) if group.HasField("traffic") else of_model
            rtt_ms = next(values) if is_routed else None
            if count > 0:
                senders = message.senders.add()
                self._set_group(senders, group)
                set_traffic(senders.traffic, self._model.traffic_of(group), *load)
                if rtt_ms is not None:
                    set_route(senders.route, path, rtt_ms)

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
        set_group(message, group)
