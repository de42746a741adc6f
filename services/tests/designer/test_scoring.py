"""Paired scores and their means."""

import math
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remy_farm.v1 import evaluation_pb2, spec_pb2
from remy_services.designer import OutcomeError, scoring

_VALUES = st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=50)


def _scores(rows: list[list[float | None]]) -> list[list[float]]:
    """paired_scores where candidate i has rows[i][j] on specimen j."""
    request = evaluation_pb2.EvaluationRequest(
        candidates=[evaluation_pb2.Candidate() for _ in rows],
        specimens=[evaluation_pb2.Specimen(key=key) for key in range(len(rows[0]))],
        duration_ms=1000,
    )
    values = [value for row in rows for value in row]
    outcome = evaluation_pb2.EvaluationOutcome(
        outcomes=[evaluation_pb2.SpecimenOutcome(packets_sent=[n]) for n in range(len(values))]
    )

    def score(
        _objective: spec_pb2.Objective,
        specimen: evaluation_pb2.Specimen,
        outcome: evaluation_pb2.SpecimenOutcome,
        duration_ms: float,
    ) -> float | None:
        assert specimen.key == outcome.packets_sent[0] % len(rows[0])
        assert duration_ms == 1000
        return values[outcome.packets_sent[0]]

    return scoring.paired_scores(request, outcome, spec_pb2.Objective(), score)


def test_a_specimen_that_cannot_be_scored_is_left_out_for_all_candidates() -> None:
    assert _scores([[1, None, 3], [4, 5, 6]]) == [[1, 3], [4, 6]]


def test_no_specimen_may_be_left() -> None:
    assert _scores([[1, None], [None, 2]]) == [[], []]
    assert scoring.estimate([]) is None
    assert not scoring.compare([], []).accepted
    assert not scoring.compare([], []).HasField("gain")


@pytest.mark.parametrize("score", [math.nan, math.inf, -math.inf])
def test_a_score_that_is_not_finite_is_refused(score: float) -> None:
    with pytest.raises(OutcomeError, match=r"candidate 1 scored .* on specimen 0"):
        _scores([[1, 2], [score, 2]])


@given(_VALUES)
def test_mean_and_standard_error_are_those_of_the_textbook(values: list[float]) -> None:
    estimate = scoring.estimate(values)

    assert estimate is not None
    assert estimate.mean == statistics.fmean(values)
    error = statistics.stdev(values) / math.sqrt(len(values))
    assert estimate.standard_error == pytest.approx(error, rel=1e-6, abs=1e-9)
    assert estimate.specimens == len(values)


def test_one_value_has_no_standard_error() -> None:
    estimate = scoring.estimate([2.0])
    assert estimate is not None
    assert estimate.mean == 2
    assert not estimate.HasField("standard_error")


@given(_VALUES, st.randoms(use_true_random=False))
def test_the_order_of_specimens_does_not_change_a_mean(values: list[float], random: object) -> None:
    shuffled = list(values)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert scoring.mean(shuffled) == scoring.mean(values)


def test_what_all_specimens_have_in_common_does_not_blur_a_gain() -> None:
    before = [-100.0, 0.0, 100.0, 200.0]
    after = [value + 1 for value in before]

    comparison = scoring.compare(before, after)

    assert comparison.accepted
    assert comparison.gain.mean == 1
    assert comparison.gain.standard_error == 0
    assert comparison.before.standard_error > 50


def test_no_gain_is_not_accepted() -> None:
    assert not scoring.compare([1.0, 2.0], [1.0, 2.0]).accepted
    assert not scoring.compare([1.0, 2.0], [2.0, 0.5]).accepted
