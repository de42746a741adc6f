"""Where tables are measured: always on the same specimens, so that they compare one by one."""

from __future__ import annotations

from dataclasses import dataclass, replace

import remy_simulator
from remy_farm.v1 import spec_pb2
from remy_services.report.gain import Gain
from remy_services.report.trial import Estimate, Evaluate, Trial, try_table
from remy_simulator import RuleTable

# Names the specimens on which what was chosen on others is measured again.
_FRESH = 0x6672657368


@dataclass(frozen=True)
class Bench:
    """Networks that `seed` draws from a specification, and who simulates on them.

    The networks are those of `remy-farm evaluate` with the same seed.
    """

    spec: spec_pb2.DesignSpec
    seed: int
    specimens: int
    evaluate: Evaluate

    def trial(self, table: RuleTable) -> Trial:
        """The table on every specimen."""
        return try_table(
            self.spec,
            table,
            seed=self.seed,
            specimens=self.specimens,
            evaluate=self.evaluate,
        )

    def difference(self, before: Trial, after: Trial) -> Estimate | None:
        """Mean over specimens of the score's difference, after minus before, of trials made here.

        None if no specimen could be scored under both.
        """
        return Gain(before, after, self.seed).score()

    def fresh(self) -> Bench:
        """As many other specimens of the same specification."""
        return replace(self, seed=remy_simulator.mix(self.seed, _FRESH))
