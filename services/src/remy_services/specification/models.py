"""What a specification says of its networks: models, groups of senders, and the tables they run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain
from typing import Final

from remy_farm.v1 import evaluation_pb2, spec_pb2
from remy_services.specification.distributions import extent, quantile
from remy_simulator import registry
from remy_simulator.registry import Registry

# A packet of 1500 bytes is 12 kbit: 1 Mbit/s is a twelfth of a packet per millisecond.
KILOBITS_PER_PACKET: Final = 12
#: What the one table of a specification without groups is called.
USUAL_TABLE: Final = "remycc"

_USUAL_BODIES: Final = {"design": "datagram", "protocol": "tcp"}
_MEDIAN: Final = 0.5


@dataclass(frozen=True, slots=True)
class Model:
    """Networks of one kind, and how many there are of them in proportion to others."""

    weight: float
    network: spec_pb2.NetworkModel
    traffic: spec_pb2.TrafficModel
    """Of groups that have none of their own."""

    def traffic_of(self, group: spec_pb2.GroupModel) -> spec_pb2.TrafficModel:
        """The load that senders of a group offer."""
        return group.traffic if group.HasField("traffic") else self.traffic

    @property
    def groups(self) -> Sequence[spec_pb2.GroupModel]:
        """Its senders; those of a model without groups are one."""
        if self.network.groups:
            return list(self.network.groups)
        group = spec_pb2.GroupModel(design=USUAL_TABLE, count=self.network.senders)
        return [group]


def models(spec: spec_pb2.DesignSpec) -> list[Model]:
    """What networks are drawn from, in the specification's order."""
    if not spec.models:
        return [Model(1.0, spec.network, spec.traffic)]
    return [
        Model(each.weight, each.network, each.traffic if each.HasField("traffic") else spec.traffic)
        for each in spec.models
    ]


def designs(spec: spec_pb2.DesignSpec) -> list[str]:
    """The names of the tables that are designed, in the order of their first mention."""
    groups = chain.from_iterable(model.groups for model in models(spec))
    return list(dict.fromkeys(group.design for group in groups if group.HasField("design")))


def body_of(group: spec_pb2.GroupModel) -> evaluation_pb2.Choice | None:
    """What carries a group's senders; None where it is what usually does. Raises ValueError."""
    if not group.body:
        return None
    body = chosen(Registry.BODY, group.body)
    usual = _USUAL_BODIES.get(group.WhichOneof("controller") or "")
    return None if body == evaluation_pb2.Choice(name=usual) else body


@cache
def chosen(kind: Registry, text: str) -> evaluation_pb2.Choice:
    """What words stand for; not to be changed. Raises ValueError with one sentence."""
    return registry.parse(kind, text)


def outline(spec: spec_pb2.DesignSpec) -> Model:
    """All models as one that has a number of senders: for guesses, bounds and descriptions.

    Where models differ in a quantity it has the ends and the median of each with equal probability.
    """
    every = models(spec)
    first = every[0]
    if len(every) == 1 and not first.network.groups:
        return first
    network = spec_pb2.NetworkModel()
    network.CopyFrom(first.network)
    network.ClearField("groups")
    for name in ("link_rate_mbps", "rtt_ms", "loss_probability"):
        network.ClearField(name)
        getattr(network, name).CopyFrom(_any_of([getattr(each.network, name) for each in every]))
    network.senders.list.values.extend(
        chain.from_iterable(map(sorted, zip(*map(_senders, every), strict=True)))
    )
    designed = [group for group in first.groups if group.HasField("design")]
    return Model(1.0, network, first.traffic_of((designed or first.groups)[0]))


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
