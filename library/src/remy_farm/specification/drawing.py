"""Draws specimens, concrete networks, from the network models of a specification.

TCP ex Machina, section 4.3, calls for "16 or more network specimens" per design step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Final

import remy_simulator
from remy_farm.specification.distributions import Quantity, is_varied, quantiles
from remy_farm.specification.links import (
    DEFAULT_PACKET_BYTES,
    DROP_TAIL,
    LINK_BUFFER_NUMBER,
    MAX_BUFFER_PACKETS,
    buffer_packets,
    buffer_size,
    buffer_size_number,
    distributions,
    kilobits_per_packet,
    link_message,
    mean_rate_mbps,
    parse_choice,
    with_buffer_in_packets,
    with_values,
)
from remy_farm.specification.models import (
    Model,
    designed_tables,
    fixed_table_texts,
    models,
    paths_of,
    transport_of,
)
from remy_farm.specification.specimens import (
    MEASUREMENT_QUANTITIES,
    TRAFFIC_QUANTITIES,
    measurement_quantities,
    set_measurement,
    set_route,
    set_sender_group,
    set_traffic,
    traffic_quantities,
)
from remy_proto.v1 import evaluation_pb2, spec_pb2
from remy_simulator.registry import Registry
from remy_simulator.throughput import counts_flows

_BELOW_ONE: Final = 1 - 2**-53

# Numpy is imported inside the functions that draw, because most commands only read a specification.
if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from remy_farm.specification.distributions import Numbers


# Numbers of the quantities of sender groups: group i starts at _GROUP_OFFSET + i * _GROUP_STRIDE.
_GROUP_OFFSET: Final = 1000
_GROUP_STRIDE: Final = 100
# Numbers of the quantities of links: link i starts at _LINK_OFFSET + i * _LINK_STRIDE, except that
# the first link shares the draws of a dumbbell's bottleneck.
_LINK_OFFSET: Final = 1_000_000
_LINK_STRIDE: Final = 100_000
_DELAY: Final = spec_pb2.LinkModel.DELAY_MS_FIELD_NUMBER
_FIRST_LINK: Final = {
    spec_pb2.LinkModel.RATE_MBPS_FIELD_NUMBER: Quantity.LINK_RATE,
    LINK_BUFFER_NUMBER: Quantity.BUFFER,
    spec_pb2.LinkModel.LOSS_PROBABILITY_FIELD_NUMBER: Quantity.LOSS,
}


class Networks:
    """Draws specimens of a specification. Holds what is computed once from its models."""

    def __init__(self, spec: spec_pb2.DesignSpec) -> None:
        self.models = models(spec)
        self.paths = [paths_of(model.network) for model in self.models]
        self.designs = designed_tables(spec)
        self.fixed_tables = fixed_table_texts(spec)
        #: Per model: whether an objective counts completed flows.
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
        """Draws the specimens `first_index`, `first_index` + 1, ... of the stream named by `seed`.

        `seed` has 64 bits: a number from the user, or remy_simulator.mix(search.seed, purpose,
        ...). Without `stratified`, a specimen depends on its seed and index alone. With it, the
        draws are a Latin hypercube: each quantity has one value in each of `count` equally probable
        strata, in a random order, which makes the mean over the specimens less noisy.
        """
        import numpy as np

        draws = _Draws(seed, first_index, count, stratified)
        columns = evaluation_pb2.SpecimenColumns(keys=draws.keys())
        mixture = [
            (_ModelSamples(self, number, of_model), of_model.indices)
            for number, of_model in enumerate(draws.by_model(self.models))
        ]

        def column(values_of: Callable[[_ModelSamples], Numbers]) -> Numbers:
            if len(mixture) == 1:
                return values_of(mixture[0][0])
            whole = np.empty(count)
            for samples, indices in mixture:
                whole[indices] = values_of(samples)
            return whole

        columns.link_rates_packets_per_ms = (
            column(lambda samples: samples.rates_packets_per_ms)
        ).tobytes()
        columns.rtts_ms = column(lambda samples: samples.rtts_ms).tobytes()
        losses = column(lambda samples: samples.losses)
        if losses.any():
            columns.loss_probabilities = losses.tobytes()
        buffers = column(lambda samples: samples.buffers)
        if buffers.any():
            columns.buffers.extend(buffers.astype(np.int64).tolist())
        first = mixture[0][0]
        if len(mixture) == 1 and first.share_one_kind():
            first.set_kind(columns.kinds.add(), *first.first_kind_and_counts())
            columns.sender_counts.extend(np.array(first.counts).T.ravel().tolist())
            return columns
        rows: list[tuple[_ModelSamples, Sequence[float], Sequence[int]]] = [
            (samples, quantities, counts)
            for samples, _ in mixture
            for quantities, counts in samples.kinds_and_counts()
        ]
        if len(mixture) > 1:
            order = np.argsort(np.concatenate([indices for _, indices in mixture]), kind="stable")
            rows = [rows[index] for index in order.tolist()]
        _set_kinds(columns, rows)
        return columns


def _set_kinds(
    columns: evaluation_pb2.SpecimenColumns,
    rows: Sequence[tuple[_ModelSamples, Sequence[float], Sequence[int]]],
) -> None:
    """Fills in the kinds and sender counts of the columns.

    A row holds a specimen's model, the quantities of its kind, and the senders of each group.
    """
    numbers: dict[_Kind, int] = {}
    kind = []
    for samples, quantities, counts in rows:
        key = (samples.number, *quantities, *(count > 0 for count in counts))
        number = numbers.setdefault(key, len(numbers))
        kind.append(number)
        if number == len(columns.kinds):
            samples.set_kind(columns.kinds.add(), quantities, counts)
    columns.sender_counts.extend(count for _, _, counts in rows for count in counts if count > 0)
    if len(numbers) > 1:
        columns.kind.extend(kind)


class _Draws:
    """Draws uniform variates per quantity, and converts them to values of distributions.

    The draws of one model in a mixture cover only the specimens at `indices`, and their strata
    divide those specimens alone.
    """

    def __init__(
        self,
        seed: int,
        first_index: int,
        count: int,
        stratified: bool,
        model: int | None = None,
        indices: NDArray[np.intp] | None = None,
    ) -> None:
        self._seed = seed
        self._first = first_index
        self._all = count
        self._stratified = stratified
        self._model = () if model is None else (model,)
        #: Indices of the model's specimens among all; None if all specimens are of one model.
        self.indices = indices
        #: The number of specimens that variates are drawn for.
        self.count = count if indices is None else len(indices)

    def by_model(self, mixture: Sequence[Model]) -> list[_Draws]:
        """Divides the specimens at random among the models of a mixture, by the models' weights."""
        import numpy as np

        if len(mixture) == 1:
            return [self]
        total = sum(model.weight for model in mixture)
        ends, end = [], 0.0
        for model in mixture:
            end += model.weight / total
            ends.append(end)
        # Rounding may leave the last end below 1, so the last model that has weight ends at 1.
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
        """Returns one value per specimen.

        A constant needs no draw. Skipping it changes no other draw, because each draw has a name.
        """
        import numpy as np

        if not is_varied(distribution):
            return np.full(self.count, distribution.exact)
        return quantiles(distribution, self._uniform(quantity))

    def _uniform(self, quantity: int) -> Numbers:
        """Draws a variate in [0, 1) for each specimen."""
        import numpy as np

        variates = np.array(remy_simulator.uniforms(self._seed, self._first, self._all, quantity))
        if self.indices is not None:
            variates = variates[self.indices]
        if not self._stratified:
            return variates
        order = remy_simulator.shuffled(
            self.count, self._seed, self._first, Quantity.SHUFFLE, quantity, *self._model
        )
        stratified: Numbers = np.minimum((np.array(order) + variates) / self.count, _BELOW_ONE)
        return stratified


#: Identifies a kind of specimens: the model's number, the values of `measurement_quantities`, of
#: `traffic_quantities` for each traffic, of links and of RTTs, and which groups have senders.
_Kind = tuple[float, ...]


class _ModelSamples:
    """The values drawn for the specimens of one model, as one array per quantity."""

    def __init__(self, networks: Networks, number: int, draws: _Draws) -> None:
        import numpy as np

        self.number = number
        self._networks = networks
        model = self._model = networks.models[number]
        self._groups = model.groups
        network = self._network = model.network
        #: Packets that each buffer holds, plus one; 0 means that it is infinite.
        self.buffers = np.zeros(draws.count)
        self.losses = np.zeros(draws.count)
        # The values of each link, by the numbers that `distributions` gives to its quantities.
        self._links = [
            {
                number: draws.values(
                    each,
                    _FIRST_LINK.get(number, number + _LINK_OFFSET)
                    if index == 0
                    else number + _LINK_OFFSET + _LINK_STRIDE * index,
                )
                for number, each in distributions(link)
            }
            for index, link in enumerate(network.links)
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
            draws.values(path.rtt, _GROUP_OFFSET + _GROUP_STRIDE * index + Quantity.RTT)
            if group.HasField("rtt_ms") or path.forward_ms is not None
            else self.rtts_ms
            for index, (group, path) in enumerate(zip(self._groups, self._paths, strict=True))
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
        #: Rate of the slowest link.
        self.rates_packets_per_ms = self.rates_mbps / self._kilobits
        packet_ms = self._kilobits / self.rates_mbps
        size = None if network.links else buffer_size(network.buffer)
        if size is not None:
            drawn = draws.values(size, Quantity.BUFFER)
            self.buffers = self._packets(network.buffer, drawn, self.rates_mbps, longest_ms) + 1
        for link, columns in zip(network.links, self._links, strict=True):
            if with_buffer_in_packets(link) is not link:
                key = buffer_size_number(link)
                rates = self._mean_rates_mbps(link, columns)
                columns[key] = self._packets(link.buffer, columns[key], rates, longest_ms)
        self._quantities = (
            [*measurement_quantities(network.measurement, draws.values, packet_ms)]
            if network.HasField("measurement")
            else [np.zeros(draws.count)] * MEASUREMENT_QUANTITIES
        )
        #: Per group: the number of its senders in each specimen.
        self.counts = [
            draws.values(
                group.count,
                Quantity.SENDERS
                + (_GROUP_OFFSET + _GROUP_STRIDE * index if network.sender_groups else 0),
            ).astype(np.int64)
            for index, group in enumerate(self._groups)
        ]
        # The traffic of groups that have their own, and the offset of its quantities' numbers.
        own_traffic = [
            (group.traffic, _GROUP_OFFSET + _GROUP_STRIDE * index)
            for index, group in enumerate(self._groups)
            if group.HasField("traffic")
        ]
        shared = sum(
            count
            for group, count in zip(self._groups, self.counts, strict=True)
            if not group.HasField("traffic")
        )
        counts = {
            _GROUP_OFFSET + _GROUP_STRIDE * index: count for index, count in enumerate(self.counts)
        }
        for traffic, offset in ((network.traffic, 0), *own_traffic):
            self._quantities += traffic_quantities(
                traffic,
                lambda each, quantity: draws.values(each, offset + quantity),  # noqa: B023
                counts.get(offset, shared),
                self.rates_mbps,
            )
        self._first_link = len(self._quantities)
        self._quantities += [column for link in self._links for column in link.values()]
        self._first_rtt = len(self._quantities)
        # Per group: whether it has a route of its own.
        self._routed = [bool(network.links) or group.HasField("rtt_ms") for group in self._groups]
        self._quantities += [
            rtt for rtt, is_routed in zip(own_rtts, self._routed, strict=True) if is_routed
        ]

    def _packets(
        self, buffer: spec_pb2.Buffer, size: Numbers, rates_mbps: Numbers, rtts_ms: Numbers
    ) -> Numbers:
        """Whole packets that buffers of the given sizes hold, at the given rates and RTTs."""
        import numpy as np

        packets: Numbers = buffer_packets(
            buffer,
            size,
            rate_packets_per_ms=rates_mbps / self._kilobits,
            rtt_ms=rtts_ms,
            packet_bytes=self._network.packet_bytes or DEFAULT_PACKET_BYTES,
        )
        return np.minimum(np.floor(packets), MAX_BUFFER_PACKETS)

    def _mean_rates_mbps(self, link: spec_pb2.LinkModel, drawn: dict[int, Numbers]) -> Numbers:
        import numpy as np

        has_constant_rate = link.HasField("rate_mbps") and not (
            link.HasField("schedule") or link.HasField("walk")
        )
        if has_constant_rate:
            return drawn[spec_pb2.LinkModel.RATE_MBPS_FIELD_NUMBER]
        rows = [*zip(*(column.tolist() for column in drawn.values()), strict=True)]
        means: dict[tuple[float, ...], float] = {}
        for row in rows:
            if row not in means:
                means[row] = mean_rate_mbps(with_values(link, row))
        return np.array([means[row] for row in rows])

    def share_one_kind(self) -> bool:
        """Whether the specimens are of one kind, and each has senders of every group."""
        return all(
            # Comparing bytes is faster than numpy's comparison for so few values.
            values.tobytes() == values[:1].tobytes() * len(values)
            for values in self._quantities
        ) and all(column.all() for column in self.counts)

    def first_kind_and_counts(self) -> tuple[Sequence[float], Sequence[int]]:
        """The first element of `kinds_and_counts`, without computing the others."""
        return [float(each[0]) for each in self._quantities], [int(each[0]) for each in self.counts]

    def kinds_and_counts(self) -> Iterable[tuple[Sequence[float], Sequence[int]]]:
        """Per specimen: the quantities of its kind, and the number of senders of each group."""
        counts = zip(*(column.tolist() for column in self.counts), strict=True)
        quantities = zip(*(column.tolist() for column in self._quantities), strict=True)
        return zip(quantities, counts, strict=True)

    def set_kind(
        self,
        message: evaluation_pb2.SpecimenKind,
        quantities: Sequence[float],
        counts: Sequence[int],
    ) -> None:
        """Fills in the kind of specimens that have these quantities. Groups with a count of 0 are
        left out."""
        measured, traffic_values = (
            quantities[:MEASUREMENT_QUANTITIES],
            quantities[MEASUREMENT_QUANTITIES : self._first_link],
        )
        network = self._network
        if network.HasField("measurement"):
            message.measurement.SetInParent()
            set_measurement(message.measurement, network.measurement, measured)
        if network.queue and (queue := parse_choice(Registry.QUEUE, network.queue)) != DROP_TAIL:
            message.bottleneck.queue.CopyFrom(queue)
        if network.packet_bytes not in (0, DEFAULT_PACKET_BYTES):
            message.bottleneck.packet_bytes = network.packet_bytes
        if network.ack_bytes:
            message.bottleneck.ack_bytes = network.ack_bytes
        if self._networks.count_flows[self.number]:
            # An explicit bottleneck, even an empty one, selects the simulator that counts flows.
            message.bottleneck.SetInParent()
        values = iter(quantities[self._first_link :])
        for link, drawn in zip(network.links, self._links, strict=True):
            exact = with_values(with_buffer_in_packets(link), [next(values) for _ in drawn])
            message.links.add().CopyFrom(link_message(exact, lambda mbps: mbps / self._kilobits))
        size = TRAFFIC_QUANTITIES
        of_network, *of_groups = (
            traffic_values[start : start + size] for start in range(0, len(traffic_values), size)
        )
        groups = zip(self._groups, counts, self._paths, self._routed, strict=True)
        for group, count, path, is_routed in groups:
            traffic = of_groups.pop(0) if group.HasField("traffic") else of_network
            rtt_ms = next(values) if is_routed else None
            if count > 0:
                senders = message.senders.add()
                self._set_group(senders, group)
                set_traffic(senders.traffic, self._model.traffic_of(group), *traffic)
                if rtt_ms is not None:
                    set_route(senders.route, path, rtt_ms)

    def _set_group(self, message: evaluation_pb2.SenderGroup, group: spec_pb2.GroupModel) -> None:
        if group.HasField("design"):
            message.table = self._networks.designs.index(group.design)
        elif group.HasField("table"):
            number = self._networks.fixed_tables.index(group.table.json)
            message.table = len(self._networks.designs) + number
        else:
            message.protocol.CopyFrom(parse_choice(Registry.PROTOCOL, group.protocol))
        if (transport := transport_of(group)) is not None:
            message.transport.CopyFrom(transport)
        set_sender_group(message, group)
