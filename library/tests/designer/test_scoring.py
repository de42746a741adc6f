"""Tests paired scores, their means and standard errors, and comparisons."""

import math
import statistics
from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remy_farm.designer import OutcomeError, scoring
from remy_proto.v1 import evaluation_pb2, spec_pb2
from remy_simulator.columns import pack_specimens, specimen_outcomes, unpack_specimens
from remy_simulator.objective import specimen_score

_SENDER = evaluation_pb2.SenderGroup(
    count=1,
    traffic=evaluation_pb2.Traffic(
        exponential_time=evaluation_pb2.Traffic.ExponentialTime(mean_ms=1000), mean_off_ms=1000
    ),
)
_VALUES = st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=50)


def _scores(rows: list[list[float | None]]) -> list[list[float]]:
    """Returns paired scores if candidate i has the score rows[i][j] on specimen j."""
    request = _request(len(rows), len(rows[0]))
    request.objective.SetInParent()
    values = [math.nan if value is None else value for row in rows for value in row]
    outcome = evaluation_pb2.EvaluationOutcome(scores=array("d", values).tobytes())
    return scoring.paired(scoring.scores(request, outcome, spec_pb2.Objective()))


def _request(candidates: int, specimens: int) -> evaluation_pb2.EvaluationRequest:
    return evaluation_pb2.EvaluationRequest(
        candidates=[evaluation_pb2.Candidate() for _ in range(candidates)],
        specimen_columns=pack_specimens(
            evaluation_pb2.Specimen(
                key=key, link_rate_packets_per_ms=1, rtt_ms=100, senders=[_SENDER]
            )
            for key in range(specimens)
        ),
        duration_ms=1000,
    )


def test_a_specimen_that_cannot_be_scored_is_left_out_for_all_candidates() -> None:
    assert _scores([[1, None, 3], [4, 5, 6]]) == [[1, 3], [4, 6]]


def test_without_common_specimens_nothing_is_accepted() -> None:
    assert _scores([[1, None], [None, 2]]) == [[], []]
    assert scoring.estimate([]) is None
    assert not scoring.compare([], []).accepted
    assert not scoring.compare([], []).HasField("gain")


def _senders(delays_ms: list[float]) -> evaluation_pb2.EvaluationOutcome:
    """Returns simulations of one sender each; its ten packets have these delays in total."""
    ones = array("d", [1000.0] * len(delays_ms)).tobytes()
    return evaluation_pb2.EvaluationOutcome(
        packets_sent=[10] * len(delays_ms),
        senders=evaluation_pb2.SenderColumns(
            packets_received=[10] * len(delays_ms),
            packets_sent=[10] * len(delays_ms),
            packets_lost=[0] * len(delays_ms),
            on_ms=ones,
            share_ms=ones,
            delay_sum_ms=array("d", delays_ms).tobytes(),
            first_on_ms=bytes(len(ones)),
        ),
    )


_OBJECTIVE = spec_pb2.Objective(alpha=1, beta=1, delta=1)


def test_results_of_senders_have_the_simulators_scores() -> None:
    specimens = unpack_specimens(_request(2, 2).specimen_columns)
    outcome = _senders([1000.0, 2000.0, 3000.0, 4000.0])
    results = specimen_outcomes(_request(2, 2), outcome)
    expected = [
        [
            specimen_score(_OBJECTIVE, specimens[column], results[2 * row + column], 1000)
            for column in range(2)
        ]
        for row in range(2)
    ]
    assert scoring.scores(_request(2, 2), outcome, _OBJECTIVE) == expected
    assert None not in expected[0] + expected[1]


@pytest.mark.parametrize("delay_ms", [math.nan, math.inf, 0.0])
def test_a_score_that_is_not_finite_is_refused(delay_ms: float) -> None:
    outcome = _senders([1000.0, 1000.0, delay_ms, 1000.0])
    with pytest.raises(OutcomeError, match=r"candidate 1 scored .* on specimen 0"):
        scoring.scores(_request(2, 2), outcome, _OBJECTIVE)


@given(_VALUES)
def test_estimate_is_the_sample_mean_and_its_standard_error(values: list[float]) -> None:
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


def test_spread_between_specimens_does_not_widen_the_error_of_a_gain() -> None:
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
