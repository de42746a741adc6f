"""Requests cut into slices."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remy_services.evaluation.tasks import Slicer, expected_packets
from remy_services.evaluation.tasks import Task as Slice
from services.tests.fleet.requests import numbered_request

_SIZES = st.integers(0, 12)
_RATES = st.lists(st.sampled_from([0.001, 0.5, 1.0, 10.0, 1000.0]), min_size=1, max_size=12)


def _pairs(piece: Slice) -> list[tuple[int, int]]:
    return [(candidate, specimen) for candidate in piece.candidates for specimen in piece.specimens]


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
    slicer = Slicer(request)
    pairs = []
    cuts = 0
    while not slicer.exhausted:
        piece, _ = slicer.cut(sizes[cuts % len(sizes)])
        pairs += _pairs(piece)
        cuts += 1

    assert sorted(pairs) == [(c, s) for c in range(candidates) for s in range(specimens)]
    assert 1 <= cuts <= max(candidates * specimens, 1)
    assert slicer.packets == 0


@given(st.integers(1, 12), st.integers(1, 12), _RATES, st.floats(1, 1e8))
def test_a_slice_is_as_large_as_asked_for_or_a_single_simulation_or_the_rest(
    candidates: int, specimens: int, rates: list[float], size: float
) -> None:
    request = numbered_request(candidates, specimens, rates)
    pieces = _cut_all(Slicer(request), size)
    for number, (piece, packets) in enumerate(pieces):
        weights = [
            expected_packets(request.specimens[specimen], request.duration_ms)
            for _, specimen in _pairs(piece)
        ]
        assert packets == pytest.approx(sum(weights))
        if piece.simulations > 1:
            # What is left at the end goes with the last slice rather than being one by itself.
            most = 2 * size if number == len(pieces) - 1 else size
            assert packets <= most * (1 + 1e-9)


def test_two_candidates_on_many_specimens_stay_together() -> None:
    """So that an antithetic pair is one task, and its specimen is sent once."""
    slicer = Slicer(numbered_request(2, 16))
    pieces = [piece for piece, _ in _cut_all(slicer, 6.5e6)]
    assert all(piece.candidates == range(2) for piece in pieces)
    assert [piece.specimens for piece in pieces[:2]] == [range(3), range(3, 6)]


def test_many_candidates_on_few_specimens_keep_their_specimens_together() -> None:
    slicer = Slicer(numbered_request(100, 4))
    piece, _ = slicer.cut(9.5e6)
    assert piece == Slice(range(2), range(4))
