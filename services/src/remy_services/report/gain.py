"""What a design gained: its first table and its last on the same fresh specimens."""

from __future__ import annotations

from dataclasses import dataclass

import remy_simulator
from remy_farm.v1 import spec_pb2
from remy_services.report.trial import Estimate, Evaluate, Trial, estimate, try_table
from remy_services.spec import validation_specimens
from remy_simulator import RuleTable

# Names the report's networks under a design's seed. Those of the search are named by small numbers.
_REPORT = 0x7265706F7274


@dataclass(frozen=True, slots=True)
class Gain:
    """Two tables on the same networks, which the search has not seen."""

    first: Trial
    final: Trial
    seed: int
    """Draws the networks: `remy-farm evaluate` with this seed makes the trials again."""

    def score(self) -> Estimate | None:
        """Mean over specimens of the difference in score, final minus first."""
        return estimate(
            [
                after.score - before.score
                if before.score is not None and after.score is not None
                else None
                for before, after in zip(self.first.results, self.final.results, strict=True)
            ]
        )


def measure_gain(
    spec: spec_pb2.DesignSpec,
    first: RuleTable,
    final: RuleTable,
    *,
    evaluate: Evaluate,
) -> Gain:
    """Tries both tables on as many fresh specimens as the search validates its epochs on."""
    seed = remy_simulator.mix(spec.search.seed, _REPORT)
    specimens = validation_specimens(spec)
    return Gain(
        first=try_table(spec, first, seed=seed, specimens=specimens, evaluate=evaluate),
        final=try_table(spec, final, seed=seed, specimens=specimens, evaluate=evaluate),
        seed=seed,
    )
