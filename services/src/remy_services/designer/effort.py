"""What an epoch has cost so far."""

from __future__ import annotations

from dataclasses import dataclass

from remy_farm.v1 import evaluation_pb2
from remy_services.designer.scoring import simulated_packets


@dataclass(frozen=True)
class Effort:
    """Simulations of one specimen under one candidate, and the packets sent in them."""

    evaluations: int = 0
    simulated_packets: int = 0

    def with_outcome(self, outcome: evaluation_pb2.EvaluationOutcome) -> Effort:
        """The same and what an outcome has cost."""
        return Effort(
            self.evaluations + len(outcome.outcomes),
            self.simulated_packets + simulated_packets(outcome),
        )


#: Where an epoch begins.
NO_EFFORT = Effort()
