"""The members of a campaign side by side: every one on specimens that the same seed draws."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import remy_simulator
from remy_farm.v1 import spec_pb2
from remy_services.report.trial import Estimate, Evaluate, estimate, try_table
from remy_services.spec import validation_specimens
from remy_simulator import RuleTable

# Names the comparison's specimens. The members' own seeds differ, and these must not.
_COMPARISON = 0x63616D706169676E


@dataclass(frozen=True)
class Comparison:
    """What a member's table does on networks that its search has not seen."""

    #: The member's own objective.
    score: Estimate | None
    #: log2(throughput / link rate) - log2(delay / RTT) over the senders that received packets.
    normalized_score: Estimate | None
    #: Medians over specimens.
    throughput_over_link_rate: float | None
    delay_over_rtt: float | None


def compare_member(
    spec: spec_pb2.DesignSpec, table: RuleTable, *, evaluate: Evaluate
) -> Comparison:
    """Tries a table on its own specification's networks.

    Members with the same networks and simulated time meet the same specimens. There are as many as
    the search validates on.
    """
    trial = try_table(
        spec,
        table,
        seed=remy_simulator.mix(_COMPARISON),
        specimens=validation_specimens(spec),
        evaluate=evaluate,
    )
    summary = trial.summary()
    return Comparison(
        score=summary.score,
        normalized_score=estimate(
            [result.measures.normalized_score_per_sender for result in trial.results]
        ),
        throughput_over_link_rate=summary.throughput_over_link_rate,
        delay_over_rtt=summary.delay_over_rtt,
    )


def undominated(points: Sequence[tuple[float, float] | None]) -> list[bool]:
    """Of (delay, throughput) points, whether no other has as much throughput at as little delay;
    False for None."""
    return [
        point is not None
        and not any(
            other is not None and other != point and other[0] <= point[0] and other[1] >= point[1]
            for other in points
        )
        for point in points
    ]
