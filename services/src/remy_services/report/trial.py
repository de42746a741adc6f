"""Trying a table on networks drawn from a specification that no search has seen."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import remy_simulator
from remy_farm.v1 import evaluation_pb2, spec_pb2
from remy_services.report import measures
from remy_services.report.measures import SpecimenMeasures
from remy_services.spec import draw_specimens
from remy_simulator import RuleTable
from remy_simulator.messages import from_native
from remy_simulator.objective import specimen_score

_MS_PER_SECOND = 1000.0

# The last element of a stream's path: the simulations must not share draws with the model.
_SIMULATION = 0
_NETWORK = 1

Evaluate = Callable[[evaluation_pb2.EvaluationRequest], evaluation_pb2.EvaluationOutcome]


@dataclass(frozen=True, slots=True)
class SpecimenResult:
    """What a table did on one specimen."""

    specimen: evaluation_pb2.Specimen
    score: float | None
    """The specification's objective; None if no sender could be scored."""
    measures: SpecimenMeasures


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean with its standard error (None of fewer than two values)."""

    mean: float
    standard_error: float | None
    count: int


@dataclass(frozen=True, slots=True)
class Summary:
    """What some specimens have in common."""

    score: Estimate | None
    """None if no specimen could be scored."""
    specimens: int
    throughput_over_link_rate: float | None
    """Median over the specimens in which packets were received."""
    delay_over_rtt: float | None
    """Likewise."""


@dataclass(frozen=True, slots=True)
class Trial:
    """One table on a number of specimens, in the order they were drawn."""

    results: Sequence[SpecimenResult]
    digest: str
    """Of every sender's exact results."""
    packets_received: int
    rule_uses: Sequence[int]
    """Look-ups by rule, over all specimens."""

    def summary(self) -> Summary:
        """Of all specimens."""
        return summarize(self.results)

    def by_senders(self) -> dict[int, Summary]:
        """Of the specimens with each number of senders, by increasing number."""
        groups: dict[int, list[SpecimenResult]] = {}
        for result in self.results:
            groups.setdefault(result.measures.senders, []).append(result)
        return {senders: summarize(groups[senders]) for senders in sorted(groups)}


def summarize(results: Sequence[SpecimenResult]) -> Summary:
    """Mean score and medians over specimens."""
    return Summary(
        score=estimate([result.score for result in results]),
        specimens=len(results),
        throughput_over_link_rate=measures.median(
            present(result.measures.throughput_over_link_rate for result in results)
        ),
        delay_over_rtt=measures.median(
            present(result.measures.delay_over_rtt for result in results)
        ),
    )


def try_table(
    spec: spec_pb2.DesignSpec,
    table: RuleTable,
    *,
    seed: int,
    specimens: int,
    evaluate: Evaluate,
) -> Trial:
    """Simulates the table on `specimens` networks that `seed` draws from the specification.

    Equal seeds give equal networks and equal random numbers in them, whatever the table, so that
    two trials compare specimen by specimen.
    """
    drawn = draw_specimens(spec, seed=remy_simulator.mix(seed, _NETWORK), count=specimens)
    request = evaluation_pb2.EvaluationRequest(
        tables=[from_native(table)],
        candidates=[evaluation_pb2.Candidate()],
        specimens=drawn,
        duration_ms=spec.search.simulated_seconds * _MS_PER_SECOND,
        seed=remy_simulator.mix(seed, _SIMULATION),
        recording=evaluation_pb2.RECORDING_USES,
    )
    outcome = evaluate(request)
    return Trial(
        results=[
            SpecimenResult(
                specimen=specimen,
                score=specimen_score(spec.objective, specimen, result, request.duration_ms),
                measures=measures.measure_specimen(specimen, measures.measure_senders(result)),
            )
            for specimen, result in zip(drawn, outcome.outcomes, strict=True)
        ],
        digest=remy_simulator.digest(outcome),
        packets_received=sum(sum(result.packets_received) for result in outcome.outcomes),
        rule_uses=_add_up([result.rule_uses for result in outcome.outcomes]),
    )


def estimate(values: Sequence[float | None]) -> Estimate | None:
    """The mean of the values that are not None, with its standard error."""
    known = present(values)
    centre = measures.mean(known)
    if centre is None:
        return None
    return Estimate(centre, measures.standard_error(known), len(known))


def present(values: Iterable[float | None]) -> list[float]:
    """The values that are not None."""
    return [value for value in values if value is not None]


def _add_up(rows: Sequence[Sequence[int]]) -> list[int]:
    return [sum(column) for column in zip(*rows, strict=True)]
