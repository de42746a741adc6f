"""How many actors there should be, without a cluster to ask."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Node:
    """A machine of the cluster that is alive."""

    node_id: str
    #: What the node has in all, by Ray's names; CPUs are "CPU".
    resources: dict[str, float]
    #: Where its raylet listens.
    address: str = ""
    port: int = 0


@dataclass(frozen=True)
class Sizing:
    """What actors take, and how many are wanted."""

    #: CPUs of each actor, and threads that it simulates in.
    threads: int = 1
    #: A resource that nodes must have to be used; empty: any node.
    resource: str = ""
    #: So many, wherever Ray finds room or makes some; None: as many as the nodes have CPUs for.
    actors: int | None = None

    def capacity(self, nodes: Sequence[Node]) -> int:
        """How many actors these nodes have CPUs for."""
        return sum(int(node.resources.get("CPU", 0.0) // self.threads) for node in self.of(nodes))

    def of(self, nodes: Sequence[Node]) -> list[Node]:
        """Those of the nodes that may be used."""
        if not self.resource:
            return list(nodes)
        return [node for node in nodes if node.resources.get(self.resource, 0.0) > 0]

    def missing(
        self, nodes: Sequence[Node], *, started: int, pending: int, free_cpus: float
    ) -> int:
        """How many more actors to start; negative: how many of those that wait are too many.

        `pending` of the `started` actors wait for room still. Without a number of its own a fleet
        takes what is free: an actor that waits would have the cluster's autoscaler add a node,
        whose CPUs would be filled in turn.
        """
        if self.actors is not None:
            return self.actors - started
        wanted = self.capacity(nodes) - started
        if wanted <= 0:
            return max(wanted, -pending)
        return max(0, min(wanted, int(free_cpus // self.threads) - pending))
