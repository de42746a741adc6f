"""Tests how requests are cut into slices, and how their cost is estimated."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from library.tests.evaluation.requests import numbered_outcome, numbered_request, slice_outcome
from remy_farm.evaluation.tasks import CostModel, Slicer, nominal_packets
from remy_proto.v1 import evaluation_pb2
from remy_simulator.columns import Slice, assemble

_SIZES = st.integers(0, 12)
_RATES = st.lists(st.sampled_from([0.001, 0.5, 1.0, 10.0, 1000.0]), min_size=1, max_size=12)


def _pairs(piece: Slice) -> list[tuple[int, int]]:
    return [(candidate, specimen) for candidate in piece.candidates for specimen in piece.specimens]


def _expected(model: CostModel, request: evaluation_pb2.EvaluationRequest) -> NDArray[np.float64]:
    return model.expected_packets(nominal_packets(request))


def _slicer(request: evaluation_pb2.EvaluationRequest) -> Slicer:
    return Slicer(len(request.candidates), _expected(CostModel(), request))


def _cut_all(slicer: Slicer, packets: float) -> list[tuple[Slice, float]]:
    cuts = []
    while not slicer.exhausted:
        cuts.append(slicer.cut(packets))
    return cuts


@given(_SIZES, _SIZES, _RATES, st.lists(st.floats(0, 1e8), min_size=1, max_size=8))
def test_slices_of_any_sizes_cover_the_request_once(
    candidates: int, specimens: int, rates: list[float], sizes: list[float]
) -> None:
    request = numbered_request(candidates, specimens, rates)
    slicer = _slicer(request)
    pairs = []
    cuts = 0
    while not slicer.exhausted:
        piece, _ = slicer.cut(sizes[cuts % len(sizes)])
        pairs += _pairs(piece)
        cuts += 1

    assert sorted(pairs) == [(c, s) for c in range(candidates) for s in range(specimens)]
    assert 1 <= cuts <= max(candidates * specimens, 1)
    assert slicer.packets == 0


@given(
    st.integers(1, 12),
    st.integers(1, 12),
    st.floats(1, 1e8),
    st.randoms(use_true_random=False),
)
def test_outcomes_of_slices_assemble_in_any_order(
    candidates: int, specimens: int, size: float, order: random.Random
) -> None:
    request = numbered_request(candidates, specimens)
    parts = [
        (piece, slice_outcome(request, piece)) for piece, _ in _cut_all(_slicer(request), size)
    ]
    order.shuffle(parts)
    assert assemble(request, parts) == numbered_outcome(request)


@given(st.integers(1, 12), st.integers(1, 12), _RATES, st.floats(1, 1e8))
def test_a_slice_has_at_most_the_requested_cost(
    candidates: int, specimens: int, rates: list[float], size: float
) -> None:
    request = numbered_request(candidates, specimens, rates)
    pieces = _cut_all(_slicer(request), size)
    expected = _expected(CostModel(), request)
    for number, (piece, packets) in enumerate(pieces):
        weights = [expected[specimen] for _, specimen in _pairs(piece)]
        assert packets == pytest.approx(sum(weights))
        if piece.simulations > 1:
            # A short remainder is part of the last slice.
            limit = 2 * size if number == len(pieces) - 1 else size
            assert packets <= limit * (1 + 1e-9)


def test_slices_keep_two_candidates_together() -> None:
    """An antithetic pair is then one task, and its specimen is sent once."""
    slicer = _slicer(numbered_request(2, 16))
    pieces = [piece for piece, _ in _cut_all(slicer, 6.5e6)]
    assert all(piece.candidates == range(2) for piece in pieces)
    assert [piece.specimens for piece in pieces[:2]] == [range(3), range(3, 6)]


def test_slices_keep_few_specimens_together() -> None:
    slicer = _slicer(numbered_request(100, 4))
    piece, _ = slicer.cut(9.5e6)
    assert piece == Slice(range(2), range(4))


def test_the_cost_model_learns_packets_by_specimen_size() -> None:
    """Half of the links are fully used, the other half for a hundredth of what they carry."""
    request = numbered_request(2, 4, [1.0, 1000.0])
    model = CostModel()
    guessed = _expected(model, request)
    assert guessed[1] > 500 * guessed[0]
    nominal, sent = nominal_packets(request), [1_000_000, 10_000_000] * 4
    model.learn(nominal, sent, float(2 * guessed.sum()), cpu_seconds=2.2)

    learned = _expected(model, request)
    assert learned[1] / learned[0] == pytest.approx(10, rel=0.01)
    # The CPU time per packet converges to the measured one.
    model.learn(nominal, sent, float(2 * learned.sum()), cpu_seconds=2.2)
    for _ in range(200):
        model.learn(nominal, sent, float(2 * learned.sum()), cpu_seconds=2.2)
    assert model.seconds_per_packet * 2 * learned.sum() == pytest.approx(2.2)


def test_unmeasured_sizes_are_estimated_from_the_utilization_of_others() -> None:
    seen, unseen = numbered_request(1, 1, [1.0]), numbered_request(1, 1, [64.0])
    model = CostModel()
    model.learn(nominal_packets(seen), [250_000], 1e6, cpu_seconds=1.0)
    (expected,) = _expected(model, unseen)
    assert 0.1 * 64e6 < expected < 64e6
